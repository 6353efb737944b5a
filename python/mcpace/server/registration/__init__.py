"""Definitions of tools, resources and prompts: functions and annotations become schemas and readers of arguments."""
