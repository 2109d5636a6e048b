"""`rookery connect`: give a client the MCP configuration with which it starts `rookery stdio`.

A configuration file is never written anew: text is inserted, and what stood there stays byte for byte.
"""

import contextlib
import fcntl
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from errno import EACCES
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

import click

from rookery.cli.jsonc import JsonText

Happens = Literal["created", "added", "unchanged", "conflict"]
Scope = Literal["user", "project"]
Table = dict[str, Any]

NAME = "rookery"
ATTEMPTS = 20


class UnusableError(Exception):
    """The file cannot take the entry, or the launch cannot be written down; nothing was changed."""


class Launch(NamedTuple):
    """The process that a client starts for its session: absolute program, arguments, added environment."""

    command: str
    args: tuple[str, ...] = ("stdio",)
    env: Mapping[str, str] = MappingProxyType({})


class Plan(NamedTuple):
    """What connecting does to one file: its whole text afterwards, and the part that is ours."""

    path: Path
    happens: Happens
    text: str
    snippet: str


class Client(NamedTuple):
    """Where a client keeps its servers, and how it writes one down. `moved` counts if its variable is set."""

    title: str
    syntax: Literal["json", "jsonc", "toml"]
    key: str
    entry: Literal["typed", "plain", "joined"]
    project: str
    user: str = ""
    moved: str = ""
    note: str = ""
    project_note: str = ""


CLIENTS: dict[str, Client] = {
    "claude": Client(
        "Claude Code",
        "json",
        "mcpServers",
        "typed",
        project=".mcp.json",
        user=".claude.json",
        moved="CLAUDE_CONFIG_DIR/.claude.json",
        project_note="Claude Code asks once whether the servers of this project may start.",
    ),
    "codex": Client(
        "Codex",
        "toml",
        "mcp_servers",
        "plain",
        project=".codex/config.toml",
        user=".codex/config.toml",
        moved="CODEX_HOME/config.toml",
        project_note="Codex reads it in a trusted project only.",
    ),
    "gemini": Client(
        "Gemini CLI",
        "jsonc",
        "mcpServers",
        "plain",
        project=".gemini/settings.json",
        user=".gemini/settings.json",
        moved="GEMINI_CLI_HOME/.gemini/settings.json",
        note="Gemini CLI starts servers in a trusted folder only.",
    ),
    "opencode": Client(
        "opencode",
        "jsonc",
        "mcp",
        "joined",
        project="opencode.json",
        user=".config/opencode/opencode.json",
        moved="XDG_CONFIG_HOME/opencode/opencode.json",
    ),
    "cursor": Client("Cursor", "jsonc", "mcpServers", "typed", ".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": Client("VS Code", "jsonc", "servers", "typed", ".vscode/mcp.json"),
}
# What clients take for granted where an entry does not say it.
ASSUMED: Table = {"type": "stdio", "env": {}, "environment": {}, "enabled": True}


def entry_of(client: Client, launch: Launch) -> Table:
    """Our server as this client writes it down."""
    env = dict(launch.env)
    if client.entry == "joined":
        command = [launch.command, *launch.args]
        return {"type": "local", "command": command, "enabled": True} | ({"environment": env} if env else {})
    split: Table = {"command": launch.command, "args": list(launch.args)}
    typed: Table = {"type": "stdio"} if client.entry == "typed" else {}
    return typed | split | ({"env": env} if env or client.syntax == "json" else {})


def snippet_of(client: Client, keys: Sequence[str], entry: Table) -> str:
    """The smallest file of this client: nothing but our entry."""
    if client.syntax == "toml":
        lines = [f"{key} = {_toml(value)}" for key, value in entry.items()]
        return "\n".join([f"[{'.'.join(keys)}.{NAME}]", *lines, ""])
    for key in (NAME, *reversed(keys)):
        entry = {key: entry}
    return json.dumps(entry, ensure_ascii=False, indent=2) + "\n"


def plan(client: Client, launch: Launch, files: Mapping[Path, str | None]) -> Plan:
    """Say what connecting would do to these files, given by their text (None: not there); touches nothing.

    Of several files that the client reads, one that already has an entry counts, then the first that
    exists, then the first. A file that does not parse or has no room for the entry is `UnusableError`.
    """
    add = _add_to_toml if client.syntax == "toml" else _add_to_json
    existing = [path for path in files if files[path] is not None]
    plans = [add(client, launch, path, files[path] or "") for path in existing or list(files)[:1]]
    return next((each for each in plans if each.happens in ("unchanged", "conflict")), plans[0])


def _add_to_json(client: Client, launch: Launch, path: Path, text: str) -> Plan:
    source = JsonText(text, comments=client.syntax == "jsonc")
    keys, entry = (client.key,), entry_of(client, launch)
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


def _add_to_toml(client: Client, launch: Launch, path: Path, text: str) -> Plan:
    key, entry = client.key, entry_of(client, launch)
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
    same = isinstance(existing, dict) and ASSUMED | cast(Table, existing) == ASSUMED | entry
    return "unchanged" if same else "conflict"


def connect_files(client: Client, launch: Launch, files: Sequence[Path], fresh_mode: int) -> Plan:
    """Carry out the plan for these files, which share a folder, and return it.

    Runs beside each other wait; a file that something else changes meanwhile is read again. A file is
    replaced whole or not at all and keeps its mode; a link keeps pointing where it did.
    """
    files[0].parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(files[0].parent, os.O_RDONLY)
    try:
        # Some network file systems cannot lock a folder; _replace still looks before it writes.
        with contextlib.suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        for _ in range(ATTEMPTS):
            found = {path: _read(path) for path in files}
            planned = plan(client, launch, found)
            settled = planned.happens in ("unchanged", "conflict")
            if settled or _replace(planned, found[planned.path], fresh_mode):
                return planned
    finally:
        os.close(folder)
    raise UnusableError(f"{files[0]} keeps being changed by something else")


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise UnusableError(f"{path} is not UTF-8 text (byte {error.start})") from None


def _replace(planned: Plan, before: str | None, fresh_mode: int) -> bool:
    target = Path(os.path.realpath(planned.path))
    target.parent.mkdir(parents=True, exist_ok=True)
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(EACCES, "it is read-only", str(target))
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, fresh_mode), "wb") as stream:
            stream.write(planned.text.encode())
            stream.flush()
            if before is not None:
                status = target.stat()
                with contextlib.suppress(PermissionError):
                    os.fchown(stream.fileno(), status.st_uid, status.st_gid)
                os.fchmod(stream.fileno(), status.st_mode & 0o7777)
            os.fsync(stream.fileno())
        if _read(planned.path) != before:
            return False
        os.replace(draft, target)
        return True
    finally:
        draft.unlink(missing_ok=True)


def locations(client: Client, scope: Scope, home: Path, folder: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files in which the client looks for servers of this scope, the one for a fresh entry first."""
    variable, _, below = client.moved.partition("/")
    if scope == "project":
        file = folder / client.project
    elif moved := environ.get(variable):
        file = folder / Path(moved).expanduser() / below
    else:
        file = home / client.user
    return [file, file.with_suffix(".jsonc")] if client.entry == "joined" else [file]


def launch_of(command: str, bound: Mapping[str, str | None], home: Path, environ: Mapping[str, str]) -> Launch:
    """How a client starts this program with these flags, on the home folder of this environment."""
    for flag, value in bound.items():
        if value is not None and (not value or value.startswith("-")):
            raise UnusableError(f"{flag} wants a name, not {value!r}")
    args = [word for flag, value in bound.items() if value is not None for word in (flag, value)]
    default = os.path.abspath(home / ".rookery")
    chosen = os.path.abspath(os.path.expanduser(environ.get("ROOKERY_HOME") or default))
    env = {"ROOKERY_HOME": chosen} if chosen != default else {}
    launch = Launch(os.path.abspath(command), ("stdio", *args), env)
    for word in (launch.command, *args, *env.values()):
        # Clients replace `$NAME`, `${NAME}` and `{env:NAME}` before they start a server.
        if re.search(r"[\x00-\x1f\x7f\ud800-\udfff$]|\{(env|file):", word):
            raise UnusableError(f"a client would not pass {word!r} on as it is written")
    return launch


def running_program() -> str:
    """The program that is running, as a client can start it from any folder."""
    for candidate in (sys.argv[0], os.path.join(os.path.dirname(sys.executable), NAME)):
        if os.path.basename(candidate) == NAME and os.path.isfile(candidate):
            return os.path.abspath(candidate)
    raise UnusableError(f"cannot tell where the {NAME} program is; name it with --command")


def own_command(name: str, scope: Scope, launch: Launch) -> str | None:
    """The client's own command line for the same entry, where it has one that does not ask."""
    if name == "claude":
        env = [word for key, value in launch.env.items() for word in ("--env", f"{key}={value}")]
        words = ["claude", "mcp", "add", "--scope", scope, *env, "--transport", "stdio", NAME, "--"]
        return shlex.join([*words, launch.command, *launch.args])
    if name == "vscode" and scope == "user":
        server = {"name": NAME} | entry_of(CLIENTS[name], launch)
        return shlex.join(["code", "--add-mcp", json.dumps(server, ensure_ascii=False)])
    return None


@click.command()
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--print", "only_print", is_flag=True, help="Print the entry and its file; write nothing.")
@click.option("--agent", metavar="NAME", help="The agent whose sessions these are.")
@click.option("--agent-type", metavar="TYPE", help="The profile that the sessions have.")
@click.option("--project-id", metavar="ID", help="The project that the sessions belong to.")
@click.option("--scope", type=click.Choice(["user", "project"]), help="All your projects, or this folder.")
@click.option("--command", type=click.Path(exists=True, dir_okay=False), help="Start this program instead.")
def connect(
    client: str,
    only_print: bool,
    agent: str | None,
    agent_type: str | None,
    project_id: str | None,
    scope: Scope | None,
    command: str | None,
) -> None:
    """Let a client start `rookery stdio` for its sessions, by adding to its configuration.

    What the file already says stays as it is; an entry that differs is left alone, with exit code 1.
    """
    chosen, home = CLIENTS[client], Path.home()
    scope = scope or ("user" if chosen.user else "project")
    bound = {"--agent": agent, "--agent-type": agent_type, "--project-id": project_id}
    try:
        launch = launch_of(command or running_program(), bound, home, os.environ)
    except UnusableError as error:
        raise click.ClickException(str(error)) from None
    own = own_command(client, scope, launch)
    if scope == "user" and not chosen.user:
        raise click.ClickException(f"only {chosen.title} knows where it keeps your servers; run: {own}")
    files = locations(chosen, scope, home, Path.cwd(), os.environ)
    happens = _print(chosen, launch, files) if only_print else _write(chosen, launch, files, scope)
    if own:
        click.echo(f"The same by its own command: {own}", err=True)
    if happens == "conflict":
        click.get_current_context().exit(1)


def _print(client: Client, launch: Launch, files: Sequence[Path]) -> Happens:
    file = next((file for file in files if file.exists()), files[0])
    click.echo(f"This belongs in {file}:", err=True)
    click.echo(snippet_of(client, (client.key,), entry_of(client, launch)), nl=False)
    return "unchanged"


def _write(client: Client, launch: Launch, files: Sequence[Path], scope: Scope) -> Happens:
    try:
        planned = connect_files(client, launch, files, 0o600 if scope == "user" else 0o666)
    except (UnusableError, OSError) as error:
        told = isinstance(error, UnusableError)
        reason = error if told else f"cannot write {error.filename or files[0]}: {error.strerror}"
        ours = snippet_of(client, (client.key,), entry_of(client, launch))
        raise click.ClickException(f"{reason}\nNothing was changed. This belongs there:\n\n{ours}") from None
    match planned.happens:
        case "unchanged":
            click.echo(f"{planned.path} already has this entry; nothing was changed.")
        case "conflict":
            click.echo(f"{planned.path} has another {NAME} entry, which was left as it is.", err=True)
            click.echo(f"To use this one, put it there yourself:\n\n{planned.snippet}", err=True)
        case "created" | "added":
            verb = "Created" if planned.happens == "created" else f"Added {NAME} to"
            start = shlex.join([launch.command, *launch.args])
            click.echo(f"{verb} {planned.path}: {client.title} starts `{start}` in its next session.")
            for note in (client.note, client.project_note if scope == "project" else ""):
                click.echo(note, nl=bool(note))
    return planned.happens
