"""The `rookery` command line: one file a command."""
