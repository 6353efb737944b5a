"""Connection of a server to the compiled part: the registry, the handlers and the calls within the process."""
