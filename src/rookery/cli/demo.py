"""`rookery demo`: a fleet at work, to be looked at."""

import shlex
import sys
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rookery.app import Platform

LIMIT_S = 120.0
COLOURS = {
    "you": "bright_white",
    "orchestrator": "cyan",
    "judge": "magenta",
    "worker": "green",
    "planner": "yellow",
    "architect": "blue",
    "researcher": "bright_blue",
    "intake": "bright_yellow",
    "scanner": "bright_black",
}


@click.command()
@click.option("--headless", is_flag=True, help="End after the story: with 0 if the change was merged, else with 1.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; any that is free if absent.")
@click.option("--keep", is_flag=True, help="Leave the home, the repository and the worktrees where they are.")
@click.option("--limit-s", type=click.FloatRange(1, 3600), default=LIMIT_S, help="How long the story may take; 120.")
def demo(headless: bool, port: int, keep: bool, limit_s: float) -> None:
    """Watch scripted agents take an issue from a request to a merged change, on a repository of their own.

    Everything is as it is with real agents, but for their words, which come from scripts. Nothing is needed, no key and
    no network, and nothing of yours is touched. Ctrl-C ends it.
    """
    from rookery.app import make_platform
    from rookery.cli.login import sign_in_address
    from rookery.demo.stage import built, play

    started = time.monotonic()
    with built(keep) as stage:
        click.echo(f"A fleet at work in {stage.folder}{'' if keep else ', which is removed at the end'}.\n")

        async def opened(platform: "Platform", port: int) -> None:
            link = await sign_in_address(platform, port)
            click.echo(f"Watch it in the console: {link} (signs one browser in)\n")
            sys.stdout.flush()

        def afterwards(port: int, issue: str) -> None:
            click.echo(invitation(stage.home, port, issue))
            sys.stdout.flush()

        played = play(
            stage,
            make_platform,
            say,
            port=port,
            limit_s=limit_s,
            opened=None if headless else opened,
            afterwards=None if headless else afterwards,
        )
    if played.error is not None:
        raise click.ClickException(f"the demo did not reach its end: {played.error}")
    click.echo(f"\nDone in {time.monotonic() - started:.0f} s.{f' It is kept in {stage.folder}.' if keep else ''}")


def say(seconds: float, who: str, what: str) -> None:
    """One line of what happens."""
    shown = click.style(f"{who:<13}", fg=COLOURS.get(who))
    click.echo(f"{max(seconds, 0):5.1f} s  {shown} {what}")
    sys.stdout.flush()


def invitation(home: str, port: int, issue: str) -> str:
    """What can be looked at while the server goes on."""
    rookery = f"ROOKERY_HOME={shlex.quote(home)} rookery"
    return "\n".join(
        [
            "",
            f"It is still served on http://127.0.0.1:{port}; the API is described at /api/openapi.json. Elsewhere try:",
            f"  {rookery} login                      (another link to the console)",
            f"  {rookery} issues show {issue}",
            f"  {rookery} orchestrator dispatches",
            f"  {rookery} audit list",
            "Ctrl-C ends it.",
        ]
    )
