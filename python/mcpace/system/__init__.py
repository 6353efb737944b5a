"""The parts of mcpace that differ between Linux, macOS and Windows, one small module for each subject.

Design constraint: the standard library only, and no import that one of these systems lacks.
"""
