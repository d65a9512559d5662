"""The `zerothresh` command: `cli.app` is the command itself, and each subcommand has a module of its own."""
