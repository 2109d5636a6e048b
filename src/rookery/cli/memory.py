"""`rookery memory`: what agents remember, and the key that seals it."""

import contextlib
import json
import os
import sys
from typing import Any, cast

import click

from rookery.cli.options import given, managing
from rookery.cli.session import call_as_owner, call_tool, flags_of, opened, owner_flags
from rookery.cli.show import fields, listing, print_json

agent_option = click.option("--agent", help="Whose memories; the default agent's if absent.")


@click.group()
def memory() -> None:
    """Memories of agents, and the key that seals them."""


def _as_agent(home: str | None, agent: str | None, tool: str, **arguments: Any) -> dict[str, Any]:
    return call_tool(flags_of({"home": home, "agent": agent}), tool, arguments).structured


@memory.command("list")
@click.argument("query", required=False)
@click.option("--limit", type=int, help="At most this many; 20 if absent.")
@agent_option
@managing
def list_(query: str | None, limit: int | None, agent: str | None, home: str | None, as_json: bool) -> None:
    """List an agent's newest memories, or those that have these words."""
    found = _as_agent(home, agent, "recall_memory", **given(query=query, limit=limit))["memories"]
    listing(found, ["key", "status", "content"], as_json=as_json, empty="no memories")


@memory.command()
@click.argument("key")
@agent_option
@managing
def show(key: str, agent: str | None, home: str | None, as_json: bool) -> None:
    """Show one memory of an agent."""
    found = _as_agent(home, agent, "recall_memory", key=key)["memories"]
    if not found:
        raise click.ClickException(f"there is no memory {key}")
    if as_json:
        print_json(found[0])
    else:
        click.echo(found[0]["content"])


@memory.command()
@click.argument("key")
@click.option("--archive", is_flag=True, help="Keep it, found by its key only.")
@agent_option
@managing
def forget(key: str, archive: bool, agent: str | None, home: str | None, as_json: bool) -> None:
    """Forget one memory of an agent."""
    fields(_as_agent(home, agent, "forget_memory", key=key, archive=archive), as_json=as_json)


@memory.command()
@managing
def report(home: str | None, as_json: bool) -> None:
    """Count memories by owner: duplicates, never recalled, expired, not sealed."""
    found = call_as_owner(home, "report_memories")["owners"]
    shown = ["owner", "memories", "archived", "expired", "duplicates", "never_recalled", "plain"]
    listing(found, shown, as_json=as_json, empty="no memories")


@memory.command("rotate-key")
@click.option("--old-mnemonic-file", type=click.Path(exists=True, dir_okay=False), help="A file with the old words.")
@click.option("--old-key-file", type=click.Path(exists=True, dir_okay=False), help="The old key file.")
@managing
def rotate_key(old_mnemonic_file: str | None, old_key_file: str | None, home: str | None, as_json: bool) -> None:
    """Seal everything with the key of the settings: what is plain, and what the old key sealed.

    Stop the server first. Killed half-way, it goes on when it is started again.
    """
    from rookery.app import make_platform
    from rookery.cli.session import settings_of
    from rookery.db.server_lock import server_lock
    from rookery.domains.memory.file_copies import repair_copies
    from rookery.domains.memory.file_store import MemoryFiles
    from rookery.domains.memory.rotation import rotate
    from rookery.domains.owner.channel_seal import ChannelSeal
    from rookery.sealing.keyring import Keyring, load_keyring
    from rookery.server.launch import only_owner

    settings = settings_of(owner_flags(home))
    only_owner(settings.home)
    new = load_keyring(settings)
    if new is None:
        raise click.ClickException("no key is set: ROOKERY_MNEMONIC or key_file is the one to change to")
    old = _old_keyring(old_mnemonic_file, old_key_file)
    platform = make_platform(settings, other_key=True)
    # A server that runs would go on sealing with its own key, or not at all.
    with contextlib.closing(platform), server_lock(settings.home, hint="stop it, then rotate the key"):
        database = platform.database
        files = 0
        while done := database.direct(lambda tx: MemoryFiles(tx, cast("Keyring | None", old)).reseal(new), write=True):
            files += done
        channels = 0
        while done := database.direct(lambda tx: ChannelSeal(tx, cast("Keyring | None", old)).reseal(new), write=True):
            channels += done
        # Last, since it takes away what is left of plain text in the database, that of the files too.
        resealed = rotate(database, old, new, hide_keys=settings.memory_hide_keys)
        repair_copies(database, settings.home)
    fields({"memories": resealed, "files": files, "channels": channels}, as_json=as_json)


def _old_keyring(mnemonic_file: str | None, key_file: str | None) -> Any:
    from rookery.sealing.keyring import load_keyring
    from rookery.settings import Settings

    if mnemonic_file is None and key_file is None:
        return None
    words = ""
    if mnemonic_file is not None:
        with open(mnemonic_file, encoding="utf-8") as file:
            words = file.read()
    path = os.path.abspath(key_file) if key_file is not None else ""
    return load_keyring(Settings(home="/", mnemonic=words, key_file=path))


@memory.command("import")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--passphrase-file", type=click.File(encoding="utf-8"), help="What sealed the texts; absent: plain.")
@agent_option
@managing
def import_(file: Any, passphrase_file: Any, agent: str | None, home: str | None, as_json: bool) -> None:
    """Take over memories of corvid-agent: a JSON list of {"key", "content"}, in either old cipher or plain."""
    from rookery.core.errors import RookeryError
    from rookery.sealing.legacy import LegacyReader

    try:
        found: Any = json.load(file)
        listed = cast("list[dict[str, str]]", found if isinstance(found, list) else [None])
        pairs = [(str(each["key"]), str(each["content"])) for each in listed]
    except (ValueError, TypeError, KeyError):
        raise click.ClickException('the file is no JSON list of {"key": …, "content": …}') from None
    reader = LegacyReader(passphrase_file.read()) if passphrase_file is not None else None
    flags = flags_of({"home": home, "agent": agent})
    done = 0
    with opened(flags) as platform:
        from rookery.cli.session import answer

        for key, content in pairs:
            try:
                plain = reader.read(content) if reader else content
                answer(platform, flags, "save_memory", {"key": key, "content": plain})
                done += 1
            except RookeryError as error:
                click.echo(f"{key}: {error.message}", err=True)
    fields({"imported": done, "refused": len(pairs) - done}, as_json=as_json)
    if done < len(pairs):
        sys.exit(1)
