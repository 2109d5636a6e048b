"""The command itself: from its options to a plan, and from what happened to what is said."""

import contextlib
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from rookery.cli.connect.clients import CLIENTS, Client, Scope, entry_of, locations, own_command
from rookery.cli.connect.files import connect_files, read
from rookery.cli.connect.plans import Happens, Plan, plan, snippet_of
from rookery.cli.connect.servers import (
    NAME,
    Launch,
    Remote,
    Token,
    UnusableError,
    address_of,
    launch_of,
    make_token,
    revoke_token,
    running_program,
    token_command,
)

SETTLED = ("unchanged", "conflict")


@click.command()
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--print", "only_print", is_flag=True, help="Print the entry and its file; write nothing.")
@click.option("--agent", metavar="NAME", help="The agent whose sessions these are.")
@click.option("--agent-type", metavar="TYPE", help="The profile that the sessions have.")
@click.option("--project-id", metavar="ID", help="The project that the sessions belong to.")
@click.option("--scope", type=click.Choice(["user", "project"]), help="All your projects, or this folder.")
@click.option("--command", type=click.Path(exists=True, dir_okay=False), help="Start this program instead.")
@click.option("--http", is_flag=True, help="Reach the running server over HTTP, with a token made for it.")
@click.option("--url", metavar="URL", help="The address for --http, if not that of the settings.")
def connect(
    client: str,
    only_print: bool,
    agent: str | None,
    agent_type: str | None,
    project_id: str | None,
    scope: Scope | None,
    command: str | None,
    http: bool,
    url: str | None,
) -> None:
    """Let a client start `rookery stdio` for its sessions, by adding to its configuration.

    What the file already says stays as it is; an entry that differs is left alone, with exit code 1.
    """
    chosen = CLIENTS[client]
    scope = scope or ("user" if chosen.user else "project")
    bound = {"--agent": agent, "--agent-type": agent_type, "--project-id": project_id}
    try:
        launch = launch_of(command or running_program(), bound, Path.home(), os.environ)
        files = locations(chosen, scope, Path.home(), Path.cwd(), os.environ) if chosen.user or scope != "user" else []
        if http or url:
            happens = _over_http(client, scope, files, bound, url, only_print)
        else:
            happens = _by_starting(client, scope, files, launch, only_print)
    except UnusableError as error:
        raise click.ClickException(str(error)) from None
    if happens == "conflict":
        click.get_current_context().exit(1)


def _by_starting(client: str, scope: Scope, files: Sequence[Path], launch: Launch, only_print: bool) -> Happens:
    chosen, own = CLIENTS[client], own_command(client, scope, launch)
    _refuse_unknown_place(chosen, files, own)
    happens = _print(chosen, launch, files) if only_print else _write(chosen, launch, files, scope).happens
    if client == "claude":
        _show_http(scope, launch, replaces=not only_print)
    if own:
        click.echo(f"The same by its own command: {own}", err=True)
    return happens


def _show_http(scope: Scope, launch: Launch, *, replaces: bool) -> None:
    """The line that connects over HTTP instead. Its token is made when the line is run, not before."""
    from rookery.core.errors import ConfigurationError

    # Settings that cannot be read are for `rookery up` to complain about.
    with contextlib.suppress(UnusableError, ConfigurationError):
        url, wants_token = address_of(os.environ)
        agent = dict(zip(launch.args[1::2], launch.args[2::2], strict=True)).get("--agent")
        header = f' --header "Authorization: Bearer $({token_command(launch, "claude", agent)})"' if wants_token else ""
        line = f"{own_command('claude', scope, Remote(url))}{header}"
        first = f"claude mcp remove --scope {scope} {NAME}; " if replaces else ""
        click.echo(f"Over HTTP instead, while `{NAME} up` runs: {first}{line}", err=True)


def _over_http(
    client: str, scope: Scope, files: Sequence[Path], bound: dict[str, str | None], url: str | None, only_print: bool
) -> Happens:
    chosen, agent = CLIENTS[client], bound["--agent"]
    told = [flag for flag, value in bound.items() if value is not None and flag != "--agent"]
    if told:
        raise UnusableError(f"{told[0]} is for sessions that a client starts; over HTTP the token says who acts")
    found, wants_token = address_of(os.environ, url)
    remote = Remote(found, "TOKEN" if wants_token else "")
    if files and not only_print:
        planned = plan(chosen, remote, {file: read(file) for file in files})
        if planned.happens in SETTLED:
            return _say_settled(planned, token_too=wants_token)
    token = make_token(client, agent) if wants_token else None
    remote = remote._replace(token=token.secret if token else "")
    own = own_command(client, scope, remote)
    _refuse_unknown_place(chosen, files, own)
    if only_print:
        happens = _print(chosen, remote, files)
        if own:
            click.echo(f"The same by its own command: {own}", err=True)
        return happens
    return _write_remote(chosen, remote, files, scope, token)


def _write_remote(client: Client, remote: Remote, files: Sequence[Path], scope: Scope, token: Token | None) -> Happens:
    happens = _write(client, remote, files, scope).happens
    if token and happens in SETTLED:
        # Another run was faster, and its token is the one in the file.
        revoke_token(token)
    elif token and scope == "project":
        click.echo("The file now holds a token: keep it out of version control.")
    return happens


def _refuse_unknown_place(client: Client, files: Sequence[Path], own: str | None) -> None:
    if not files:
        raise UnusableError(f"only {client.title} knows where it keeps your servers; run: {own}")


def _print(client: Client, server: Launch | Remote, files: Sequence[Path]) -> Happens:
    file = next((file for file in files if file.exists()), files[0])
    click.echo(f"This belongs in {file}:", err=True)
    click.echo(snippet_of(client, (client.key,), entry_of(client, server)), nl=False)
    return "unchanged"


def _write(client: Client, server: Launch | Remote, files: Sequence[Path], scope: Scope) -> Plan:
    private = scope == "user" or (isinstance(server, Remote) and server.token)
    try:
        planned = connect_files(client, server, files, 0o600 if private else 0o666)
    except (UnusableError, OSError) as error:
        told = isinstance(error, UnusableError)
        reason = error if told else f"cannot write {error.filename or files[0]}: {error.strerror}"
        ours = snippet_of(client, (client.key,), entry_of(client, server))
        raise UnusableError(f"{reason}\nNothing was changed. This belongs there:\n\n{ours}") from None
    if planned.happens in SETTLED:
        _say_settled(planned)
        return planned
    verb = "Created" if planned.happens == "created" else f"Added {NAME} to"
    click.echo(f"{verb} {planned.path}: {client.title} {_does(server)} in its next session.")
    for note in (client.note, client.project_note if scope == "project" else ""):
        click.echo(note, nl=bool(note))
    return planned


def _does(server: Launch | Remote) -> str:
    if isinstance(server, Remote):
        return f"reaches {server.url}"
    return f"starts `{shlex.join([server.command, *server.args])}`"


def _say_settled(planned: Plan, *, token_too: bool = False) -> Happens:
    if planned.happens == "unchanged":
        token = ", its token included" if token_too else ""
        click.echo(f"{planned.path} already has this entry; nothing was changed{token}.")
    else:
        click.echo(f"{planned.path} has another {NAME} entry, which was left as it is.", err=True)
        click.echo(f"To use this one, put it there yourself:\n\n{planned.snippet}", err=True)
        if token_too:
            click.echo(f"`{NAME} token create` makes the TOKEN.", err=True)
    return planned.happens
