"""The `rookery` command. `rookery stdio` has to start in milliseconds: it is told apart before any import."""

import sys


def main() -> None:
    """Run the command in sys.argv and exit with its code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["stdio"] and "--help" not in arguments and "-h" not in arguments:
        from rookery import relay

        sys.exit(relay.main(arguments[1:]))
    from rookery.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
