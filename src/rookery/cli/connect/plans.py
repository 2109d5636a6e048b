"""What connecting would do to a file, decided on its text alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from rookery.cli.connect.clients import Client, Table, entry_of, without_token
from rookery.cli.connect.servers import NAME, Launch, Remote, UnusableError
from rookery.cli.jsonc import JsonText

Happens = Literal["created", "added", "unchanged", "conflict"]
# What clients take for granted where an entry does not say it.
ASSUMED: Table = {"type": "stdio", "env": {}, "environment": {}, "enabled": True}


class Plan(NamedTuple):
    """What connecting does to one file: its whole text afterwards, and the part that is ours."""

    path: Path
    happens: Happens
    text: str
    snippet: str


def snippet_of(client: Client, keys: Sequence[str], entry: Table) -> str:
    """The smallest file of this client: nothing but our entry."""
    if client.syntax == "toml":
        lines = [f"{key} = {_toml(value)}" for key, value in entry.items()]
        return "\n".join([f"[{'.'.join(keys)}.{NAME}]", *lines, ""])
    for key in (NAME, *reversed(keys)):
        entry = {key: entry}
    return json.dumps(entry, ensure_ascii=False, indent=2) + "\n"


def plan(client: Client, server: Launch | Remote, files: Mapping[Path, str | None]) -> Plan:
    """Say what connecting would do to these files, given by their text (None: not there); touches nothing.

    Of several files that the client reads, one that already has an entry counts, then the first that
    exists, then the first. A file that does not parse or has no room for the entry is `UnusableError`.
    """
    add = _add_to_toml if client.syntax == "toml" else _add_to_json
    existing = [path for path in files if files[path] is not None]
    plans = [add(client, server, path, files[path] or "") for path in existing or list(files)[:1]]
    return next((each for each in plans if each.happens in ("unchanged", "conflict")), plans[0])


def _add_to_json(client: Client, server: Launch | Remote, path: Path, text: str) -> Plan:
    source = JsonText(text, comments=client.syntax == "jsonc")
    keys, entry = (client.key,), entry_of(client, server)
    if source.is_empty:
        ours, gap = snippet_of(client, keys, entry), "" if not text or text.endswith("\n") else "\n"
        return Plan(path, "added" if text.strip() else "created", text + gap + ours, ours)
    try:
        servers: Any = source.value()
        if client.entry == "joined" and _is_second_shape(servers):
            keys, entry = (*keys, "servers"), {key: entry[key] for key in entry if key != "enabled"}
        ours = snippet_of(client, keys, entry)
        for key in keys:
            servers = cast(Table, servers).get(key, {}) if isinstance(servers, dict) else {}
        if isinstance(servers, dict) and NAME in servers:
            return Plan(path, _compared(cast(Table, servers)[NAME], entry), text, ours)
        return Plan(path, "added", source.with_value((*keys, NAME), entry), ours)
    except ValueError as error:
        raise UnusableError(f"{path} is not JSON that {NAME} can add to: {error}") from None


def _is_second_shape(root: Table) -> bool:
    """Whether an opencode file is in the shape of its version 2: servers one level lower, no `enabled`."""
    mcp: Any = root.get("mcp")
    servers: Any = cast(Table, mcp).get("servers") if isinstance(mcp, dict) and NAME not in mcp else None
    # In version 1 this would be a server called "servers", and its type a string.
    return isinstance(servers, dict) and all(isinstance(each, dict) for each in cast(Table, servers).values())


def _add_to_toml(client: Client, server: Launch | Remote, path: Path, text: str) -> Plan:
    key, entry = client.key, entry_of(client, server)
    ours, before = snippet_of(client, (key,), entry), _toml_value(path, text)
    servers: Any = before.setdefault(key, {})
    if not isinstance(servers, dict):
        raise UnusableError(f"{key} in {path} is not a table")
    if NAME in servers:
        return Plan(path, _compared(cast(Table, servers)[NAME], entry), text, ours)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    after = text + gap + ours.replace("\n", newline)
    servers[NAME] = entry
    try:
        fits = _toml_value(path, after) == before
    except UnusableError:
        fits = False
    if not fits:
        raise UnusableError(f"{path} writes {key} as an inline table, and nothing can be appended to that")
    return Plan(path, "added" if text.strip() else "created", after, ours)


def _toml_value(path: Path, text: str) -> Table:
    import tomllib  # Costs as much as all the rest of this file, and only Codex needs it.

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnusableError(f"{path} is not valid TOML: {error}") from None


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in cast(Table, value).items())} }}"
    # The strings and lists of JSON are those of TOML as well.
    return json.dumps(value, ensure_ascii=False)


def _compared(existing: object, entry: Table) -> Happens:
    same = isinstance(existing, dict) and _comparable(cast(Table, existing)) == _comparable(entry)
    return "unchanged" if same else "conflict"


def _comparable(entry: Table) -> Table:
    return ASSUMED | without_token(entry)
