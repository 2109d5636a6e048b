"""`rookery migrate`: bring the database up to date on purpose, rather than with the next start."""

import sys
from typing import TYPE_CHECKING

import click

from rookery.cli.options import home_option

if TYPE_CHECKING:
    from rookery.settings import Settings


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if steps are missing.")
@home_option
def migrate(check: bool, home: str | None) -> None:
    """Bring the database up to date, after a backup."""
    from rookery.settings import load_settings

    settings = load_settings(home)
    if check:
        _check(settings)
    else:
        _apply(settings)


def _check(settings: "Settings") -> None:
    from rookery.app import load_domains
    from rookery.cli.stored import open_stored
    from rookery.db.migrate import pending

    plan = load_domains(plugins=settings.plugins).migrations
    with open_stored(settings) as database:
        missing = database.direct(lambda tx: pending(tx, plan))
    for domain, step in missing:
        click.echo(f"missing: {domain} {step.number:03d} {step.name}")
    if missing:
        sys.exit(1)
    click.echo("The database is up to date.")


def _apply(settings: "Settings") -> None:
    from rookery.app import make_platform
    from rookery.db.migrate import migrate as apply

    platform = make_platform(settings, prepare=False)
    try:
        done = apply(platform.database, platform.migrations, settings.backups)
    finally:
        platform.close()
    for step in done.applied:
        click.echo(f"applied: {step}")
    if not done.applied:
        click.echo("The database was up to date; nothing was done.")
    elif done.backup is not None:
        click.echo(f"The database as it was before is in {done.backup}")
    else:
        click.echo("The database was empty, so there was nothing to back up.")
