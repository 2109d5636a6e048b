"""`rookery worker`: deferred work without a server, on any machine that reaches the database."""

import contextlib
import os
import sys
from typing import TYPE_CHECKING

import click

from rookery.cli.options import home_option, names

if TYPE_CHECKING:
    from rookery.app import Platform

GRACE_S = 10.0


@click.command()
@click.option(
    "--queues", metavar="NAMES", help="Only jobs of these queues, with commas between; all of them if absent."
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    help="How many jobs at a time; the setting worker_concurrency, or 16, if absent.",
)
@home_option
def worker(queues: str | None, concurrency: int | None, home: str | None) -> None:
    """Do deferred work, on this machine or any other that reaches the database.

    Any number of workers and servers may share a PostgreSQL; with SQLite they must be on one machine. Ctrl-C lets
    running jobs finish for ten seconds and gives the others back, a second Ctrl-C gives them back at once.
    """
    from rookery.app import make_platform
    from rookery.around.logs import configure_logs
    from rookery.around.timing import configure_tracing
    from rookery.server.loop import run
    from rookery.settings import load_settings

    chosen = _queues(queues)
    settings = load_settings(home, worker_concurrency=concurrency)
    os.makedirs(settings.home, mode=0o700, exist_ok=True)
    configure_logs(settings.log_level, folder=settings.logs, file="worker.log")
    configure_tracing("rookery")
    with contextlib.closing(make_platform(settings)) as platform:
        run(_work(platform, chosen))
    click.echo("Stopped.")


def _queues(text: str | None) -> tuple[str, ...]:
    chosen = () if text is None else tuple(names(text))
    if text is not None and not chosen:
        raise click.BadParameter("a worker of no queue would never do anything", param_hint="--queues")
    return chosen


async def _work(platform: "Platform", queues: tuple[str, ...]) -> None:
    import asyncio
    import signal

    from rookery.server.work import Work

    work = Work(platform, queues=queues, grace_s=GRACE_S)
    told: list[bool] = []

    def stop() -> None:
        work.stop(at_once=bool(told))
        told.append(True)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    click.echo(announcement(platform, queues))
    sys.stdout.flush()
    await asyncio.wait([work.ended])
    await work.end()
    work.check()


def announcement(platform: "Platform", queues: tuple[str, ...]) -> str:
    """What the terminal shows once jobs are taken. An address may have a password in it, so only its kind is told."""
    kind = "SQLite" if platform.settings.database_url.startswith("sqlite:") else "PostgreSQL"
    parts = [
        f"queues: {', '.join(queues) or 'all'}",
        f"{platform.settings.worker_concurrency} jobs at a time",
        f"kinds: {', '.join(sorted(platform.kinds)) or 'none'}",
    ]
    return f"Rookery works for {kind}; {'; '.join(parts)}"
