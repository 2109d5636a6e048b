"""`rookery login`: a link that signs a browser in to the console."""

from typing import TYPE_CHECKING

import click

from rookery.cli.options import home_option

if TYPE_CHECKING:
    from rookery.app import Platform


@click.command()
@click.option("--person", metavar="NAME", help="Who is to be signed in; the owner if absent.")
@home_option
def login(person: str | None, home: str | None) -> None:
    """Print a link that opens the console and signs its browser in.

    It works once, within a quarter of an hour.
    """
    import asyncio

    from rookery.cli.session import opened, owner_flags
    from rookery.server.address import running_port

    with opened(owner_flags(home)) as platform:
        port = running_port(platform.settings.home) or platform.settings.port
        click.echo(asyncio.run(sign_in_address(platform, port, person)))


async def sign_in_address(platform: "Platform", port: int, person: str | None = None) -> str:
    """Where a browser has to go to be signed in as the owner, or as another person. Refused to agents' sessions."""
    from rookery.identity.binding import Binding
    from rookery.identity.browser_commands import make_sign_in_link
    from rookery.server.launch import only_owner

    only_owner(platform.settings.home)
    binding = Binding(as_owner=True, source="cli")
    actor = await platform.database.read(lambda tx: platform.resolver.resolve(tx, binding).actor)
    made = await platform.calls.run(actor, make_sign_in_link, {} if person is None else {"person": person})
    base = platform.settings.public_url or f"http://127.0.0.1:{port}"
    return base.rstrip("/") + made.structured["path"]
