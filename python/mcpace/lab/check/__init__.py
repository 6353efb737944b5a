"""Check of a host's configurations: how its servers start, and how much of a model's context they take."""
