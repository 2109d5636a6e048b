"""`rookery sessions`: sessions of agents, opened and steered from a terminal."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from rookery import relay
from rookery.cli.options import ListByDefault, given, managing
from rookery.cli.session import actor_of, answer, call_as_owner, opened, owner_flags
from rookery.cli.show import fields, listing, print_json

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.core.actor import Actor
    from rookery.db.tx import Tx

LINE = ["id", "state", "agent_name", "runtime", "mode", "turns", "cost", "active", "title"]
MODES = ("ask", "act", "autonomy")
STATES = ("idle", "running", "waiting", "ended")
MOST = 200
session_argument = click.argument("session", metavar="ID")


@click.group(cls=ListByDefault)
def sessions() -> None:
    """Sessions of agents: open one, talk to it, watch it, end it."""


@sessions.command("list")
@click.option("--state", type=click.Choice(STATES), help="Only sessions in this state.")
@click.option("--agent", metavar="NAME", help="Only those of this agent.")
@click.option("--limit", type=int, help=f"At most this many, up to {MOST}; 50 if absent.")
@managing
def list_(state: str | None, agent: str | None, limit: int | None, home: str | None, as_json: bool) -> None:
    """List sessions, those that were active last first."""
    found = call_as_owner(home, "list_sessions", given(state=state, agent_id=agent, limit=limit))["sessions"]
    shown = found if as_json else [_brief(each) for each in found]
    listing(shown, LINE, as_json=as_json, empty="no sessions; open one: rookery sessions start MESSAGE")


@sessions.command()
@session_argument
@managing
def show(session: str, home: str | None, as_json: bool) -> None:
    """Show a session: its settings, what waits, and what was said."""
    import asyncio
    import json

    flags = owner_flags(home)
    with opened(flags) as platform:
        actor = actor_of(platform, {"source": "cli", **flags})
        parts = asyncio.run(platform.calls.read(actor, f"session://{_found(platform, actor, session)[0]}"))
    found: dict[str, Any] = json.loads(parts[0].text)
    if as_json:
        print_json(found)
        return
    from rookery.cli.spoken import tell_messages

    settings = {name: value for name, value in _brief(found).items() if not isinstance(value, list)}
    fields(settings, as_json=False)
    for message in found["queue"]:
        click.echo(f"\nqueued {message['id']}")
    tell_messages(found["messages"])


@sessions.command()
@click.argument("message", nargs=-1)
@click.option("--agent", metavar="NAME", help="Which agent; the default one if absent.")
@click.option("--project", metavar="SLUG", help="The project; the default one if absent.")
@click.option("--issue", metavar="ID", help="The issue that the session is bound to.")
@click.option("--profile", metavar="NAME", help="The agent type.")
@click.option("--cwd", metavar="FOLDER", help="Where the agent works; the project's folder if absent.")
@click.option("--mode", type=click.Choice(MODES), help="What needs your yes; never freer than the agent's own.")
@click.option("--model", help="The model, as the runtime calls it.")
@click.option("--runtime", metavar="NAME", help="What runs the agent; the server's own if absent.")
@click.option("--title", help="What it is about; the message if absent.")
@click.option("--follow", is_flag=True, help="Show what happens until the message is answered.")
@managing
def start(message: tuple[str, ...], follow: bool, home: str | None, as_json: bool, **wanted: str | None) -> None:
    """Open a session, and send it a first message if one is given; - reads it from standard input.

    The agent itself runs in the server, or in a worker.
    """
    if follow and not message:
        raise click.UsageError("give a message whose answer is to be followed")
    if wanted["cwd"] is not None:
        wanted["cwd"] = os.path.abspath(os.path.expanduser(wanted["cwd"]))
    flags = owner_flags(home)
    with opened(flags) as platform:
        first = _text(message) if message else None
        made = answer(platform, flags, "start_session", given(message=first, **wanted)).structured
        if follow:
            _follow(platform, flags, made["message"], 0, as_json=as_json)
            return
    queued = {"message_id": made["message"]["message_id"]} if made["message"] else {}
    shown = {name: made["session"][name] for name in ("id", "state", "agent_name", "runtime", "mode", "cwd")}
    fields(made if as_json else {**shown, **queued}, as_json=as_json)


@sessions.command()
@session_argument
@click.argument("message", nargs=-1, required=True)
@click.option("--follow", is_flag=True, help="Show what happens until it is answered.")
@managing
def send(session: str, message: tuple[str, ...], follow: bool, home: str | None, as_json: bool) -> None:
    """Send a message; - reads it from standard input. While a turn runs it waits in the queue.

    With --follow the exit code is 1 if the turn does not come to its proper end.
    """
    flags = owner_flags(home)
    with opened(flags) as platform:
        actor = actor_of(platform, {"source": "cli", **flags})
        session_id, seen = _found(platform, actor, session)
        arguments = {"session_id": session_id, "text": _text(message)}
        queued = answer(platform, flags, "send_session_message", arguments).structured
        if follow:
            _follow(platform, flags, queued, seen, as_json=as_json)
            return
    fields(queued, as_json=as_json)


@sessions.command()
@session_argument
@click.option(
    "--after", type=click.IntRange(min=0), help="Begin after the event of this number; the last turn if absent."
)
@managing
def watch(session: str, after: int | None, home: str | None, as_json: bool) -> None:
    """Follow a session live until it ends, or until Ctrl-C.

    What its agent asks is answered by typing: y, a (always), n, n: why or l (later) where it wants to use a tool; a
    number or your own words where it has a question.
    """
    from rookery.cli.session_watch import Watch
    from rookery.cli.session_watch import watch as follow

    flags = owner_flags(home)
    with opened(flags) as platform:
        actor = actor_of(platform, {"source": "cli", **flags})
        follow(Watch(platform, actor, _found(platform, actor, session)[0], as_json=as_json), after)


@sessions.command()
@session_argument
@managing
def interrupt(session: str, home: str | None, as_json: bool) -> None:
    """End the turn that runs; what is queued comes next."""
    _steer(home, "interrupt_session", session, as_json=as_json)


@sessions.command()
@session_argument
@click.argument("mode", type=click.Choice(MODES))
@managing
def mode(session: str, mode: str, home: str | None, as_json: bool) -> None:
    """Say what needs your yes from now on, also in a turn that runs."""
    _steer(home, "change_session", session, as_json=as_json, mode=mode)


@sessions.command()
@session_argument
@managing
def end(session: str, home: str | None, as_json: bool) -> None:
    """End a session for good; what is queued is dropped."""
    _steer(home, "end_session", session, as_json=as_json)


@sessions.command()
@click.option("--agent", metavar="NAME", help="Only of this agent.")
@managing
def stats(agent: str | None, home: str | None, as_json: bool) -> None:
    """Count sessions by state, and what they have used."""
    found = call_as_owner(home, "get_session_stats", given(agent_id=agent))
    if not as_json:
        found = {**found.pop("states"), **{name: value for name, value in _brief(found).items() if name != "active"}}
    fields(found, as_json=as_json)


def _steer(home: str | None, tool: str, session: str, *, as_json: bool, **more: str) -> None:
    flags = owner_flags(home)
    with opened(flags) as platform:
        actor = actor_of(platform, {"source": "cli", **flags})
        arguments = {"session_id": _found(platform, actor, session)[0], **more}
        shown = answer(platform, flags, tool, arguments).structured
    fields(shown if as_json else {name: shown[name] for name in ("id", "state", "mode")}, as_json=as_json)


def _follow(platform: "Platform", flags: relay.Flags, queued: dict[str, Any], seen: int, *, as_json: bool) -> None:
    """Show the turn of a message, whose events come after the `seen` ones."""
    from rookery.cli.session_watch import Watch, watch

    actor = actor_of(platform, {"source": "cli", **flags})
    watching = Watch(platform, actor, queued["session_id"], message=queued["message_id"], as_json=as_json)
    watch(watching, seen)
    if watching.reason not in (None, "completed"):
        sys.exit(1)


def _found(platform: "Platform", actor: "Actor", session: str) -> tuple[str, int]:
    """The whole id of the only session whose id begins so, and how many events it has; what is none is left as it is,
    for the tool to refuse."""
    from rookery.sessions.store import Row, SessionRows

    def look(tx: "Tx") -> list[Row]:
        rows = SessionRows(tx, actor.tenant, actor.closed)
        exact = rows.find(session)
        return [exact] if exact is not None else [row for row in rows.page(MOST) if row.id.startswith(session)]

    found = platform.database.direct(look)
    return (found[0].id, found[0].event_count) if len(found) == 1 else (session, 0)


def _text(words: tuple[str, ...]) -> str:
    return sys.stdin.read() if words == ("-",) else " ".join(words)


def _brief(each: dict[str, Any]) -> dict[str, Any]:
    """A session as a table shows it: cost in dollars, when it was active last."""
    from rookery.cli.jobs import moment

    shown = {name: value for name, value in each.items() if name != "cost_micros"}
    shown["cost"] = f"${each['cost_micros'] / 1_000_000:.4f}"
    times = {name: value for name, value in each.items() if name.endswith("_ms") and value is not None}
    shown |= {name.removesuffix("_ms"): moment(value) for name, value in times.items()}
    return {name: value for name, value in shown.items() if not name.endswith("_ms")}
