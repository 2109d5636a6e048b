"""`rookery backup` and `rookery restore`: the database to a file and back."""

import os

import click

from rookery.cli.options import home_option
from rookery.core.errors import NotFound


@click.command()
@click.option("--to", "folder", metavar="FOLDER", help="Where the file goes; backups/ in the home if absent.")
@home_option
def backup(folder: str | None, home: str | None) -> None:
    """Copy the database to a file.

    Servers and agents may go on meanwhile. Prints the path of the file, which `rookery restore` takes.
    """
    from rookery.cli.stored import open_stored
    from rookery.settings import load_settings

    settings = load_settings(home)
    target = os.path.abspath(os.path.expanduser(folder)) if folder else settings.backups
    with open_stored(settings) as database:
        path = database.backup(target, "by-hand")
    if path is None:
        raise NotFound("the database is empty", hint="there is nothing to back up before rookery up")
    click.echo(path)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@home_option
def restore(file: str, home: str | None) -> None:
    """Replace the database by a backup; what was there is kept.

    Stop the server first. Refused for a file that is no backup of Rookery or comes from a newer version.
    """
    from rookery.app import load_domains
    from rookery.db.restore import restore as put_back
    from rookery.settings import load_settings

    settings = load_settings(home)
    plan = load_domains(plugins=settings.plugins).migrations
    done = put_back(settings.database_url, os.path.abspath(file), plan, home=settings.home, backups=settings.backups)
    for step in done.applied:
        click.echo(f"applied: {step}")
    click.echo(f"The database is now what it was in {file}")
    if done.kept is not None:
        click.echo(f"What it replaced is kept in {done.kept}")
