"""`rookery stdio` as the command line knows it: its help. The relay itself starts without any of this."""

import click

from rookery import relay
from rookery.cli.session import Bound, as_arguments, flag_options


@click.command()
@flag_options()
def stdio(**bound: Bound) -> None:
    """Serve one MCP session on standard input and output.

    Agents start this; `rookery connect` writes it into their configuration. It hands the session to the running
    server, or serves by itself if none is running. Without an agent, an agent type and a scope file the session is
    the default agent.
    """
    raise SystemExit(relay.main(as_arguments(bound)))
