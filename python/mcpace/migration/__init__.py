"""Rewrites a project's imports from the official SDK or FastMCP to mcpace.

Design constraint: edits at positions of Python's own syntax tree, so that every byte outside an edit stays as it was.
Nothing of the project is imported or run, and no SDK has to be installed.
"""
