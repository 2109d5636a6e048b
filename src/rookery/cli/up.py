"""`rookery up`: start the server and say how to use it."""

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import click

from rookery.cli.options import home_option

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.settings import Settings


@click.command()
@click.option("--host", metavar="ADDRESS", help="The address to listen on; 127.0.0.1 if nothing else is set.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; $PORT or 4242 if absent, 0 for any.")
@click.option(
    "--auth",
    type=click.Choice(["local", "jwt", "oauth", "none"]),
    help="How HTTP clients prove who they are; local (tokens of `rookery token create`) if nothing else is set.",
)
@click.option(
    "--role",
    type=click.Choice(["all", "server"]),
    help="With server, deferred work is left to `rookery worker`; all, if nothing else is set, does it here too.",
)
@home_option
def up(host: str | None, port: int | None, auth: str | None, role: str | None, home: str | None) -> None:
    """Start the server on this machine and keep it running.

    Creates what is missing: the home folder, the database, the owner, a project and an agent. Ctrl-C ends it.
    """
    from rookery.app import make_platform
    from rookery.server.run import serve
    from rookery.settings import load_settings

    settings = load_settings(home, host=host, port=port, auth_mode=auth, role=role)
    made: list[Platform] = []

    def make(chosen: "Settings") -> "Platform":
        made.append(make_platform(chosen))
        return made[-1]

    async def announce(port: int) -> None:
        click.echo(announcement(settings.host, port, settings.home, await _sign_in_link(made[0], port)))

    serve(settings, make, announce)
    click.echo("Stopped.")


async def _sign_in_link(platform: "Platform", port: int) -> str | None:
    """The first link to the console; None for a server that an agent's session or another user has started."""
    from rookery.cli.login import sign_in_address
    from rookery.core.errors import PermissionDenied

    try:
        return await sign_in_address(platform, port)
    except PermissionDenied:
        return None


def announcement(host: str, port: int, home: str, sign_in: str | None) -> str:
    """What the terminal shows once every door is open."""
    shown = f"[{host}]" if ":" in host else host
    command = f"{_home_prefix(home)}{_program()}"
    console = f"{command} login" if sign_in is None else f"{sign_in}   (works once; then: {command} login)"
    return "\n".join(
        [
            f"Rookery listens on http://{shown}:{port}",
            f"  open the console  {console}",
            f"  home              {home}",
            f"  connect an agent  {command} connect claude   (or codex, gemini, opencode, cursor, vscode)",
            f"  see its tools     {command} tools",
            f"  check everything  {command} doctor",
            "  stop              Ctrl-C",
        ]
    )


def _home_prefix(home: str) -> str:
    """Another terminal finds the usual home by itself; any other has to be named there."""
    usual = os.path.abspath(os.path.expanduser("~/.rookery"))
    return "" if home == usual else f"ROOKERY_HOME={shlex.quote(home)} "


def _program() -> str:
    """This program as it can be typed: its name where the shell finds it, else its path."""
    running, found = os.path.realpath(sys.argv[0]), shutil.which("rookery")
    if os.path.basename(running) != "rookery" or (found and os.path.realpath(found) == running):
        return "rookery"
    return shlex.quote(os.path.relpath(sys.argv[0]))
