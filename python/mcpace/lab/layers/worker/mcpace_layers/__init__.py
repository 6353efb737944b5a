"""Worker that runs inside a user's environment and measures a server's layers. Each SDK has a probe in its own file."""
