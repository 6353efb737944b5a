"""Running a server: its object is found and prepared, then served over HTTP or stdio, by one process or by several.

Design constraint: light. Nothing here imports the command line, the lab, or a server's SDK that its author did not.
"""
