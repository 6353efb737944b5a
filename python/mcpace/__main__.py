"""`python -m mcpace`: the command, where its own script is not on the path."""

from mcpace.cli.main import main

if __name__ == "__main__":
    main()
