"""`rookery audit`: read the record of calls and prove that nobody changed it."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from rookery.cli.options import given, managing
from rookery.cli.session import answer, flags_of, opened
from rookery.cli.show import listing, print_json

if TYPE_CHECKING:
    from rookery.app import Platform


@click.group()
def audit() -> None:
    """The record of every call."""


@audit.command()
@click.option("--expect", metavar="HASH", help="A head that was printed before; it must still be in the chain.")
@managing
def verify(expect: str | None, home: str | None, as_json: bool) -> None:
    """Compute the chain of hashes again; exit with 1 if it is broken.

    Keep the head somewhere else and give it to --expect the next time: then records cannot be cut off at the end
    either.
    """
    flags = flags_of({"home": home, "as_owner": True})
    with opened(flags) as platform:
        state = answer(platform, flags, "verify_audit", {}).structured
        if expect is not None and state["intact"] and not _passes_through(platform, expect):
            state |= {"intact": False, "why": f"no record has the expected hash {expect}"}
    if as_json:
        print_json(state)
    else:
        _print_state(state)
    if not state["intact"]:
        sys.exit(1)


def _passes_through(platform: "Platform", wanted: str) -> bool:
    """Whether the chain, which was just found intact, has a record with this hash."""
    import sqlalchemy as sa

    from rookery.around.audit import audit_log

    found = sa.select(audit_log.c.id).where(audit_log.c.hash == wanted.strip().lower()).limit(1)
    return platform.database.direct(lambda tx: tx.scalar(found)) is not None


def _print_state(state: dict[str, Any]) -> None:
    if state["intact"]:
        waiting = f", {state['waiting']} more wait for their place" if state["waiting"] else ""
        click.echo(f"The chain is intact: {state['records']} records{waiting}.")
    else:
        at = f" at record {state['broken_at']}" if state["broken_at"] is not None else ""
        click.echo(f"The chain is broken{at}: {state['why']}.")
        click.echo(f"The {state['records']} records before that are as they were written.")
    click.echo(f"head {state['head']}")


@audit.command("list")
@click.option("--tool", help="Only calls of this tool.")
@click.option("--agent", help="Only calls of this agent, by name or id.")
@click.option("--outcome", help="Only this outcome: done, allowed, refused, invalid, failed, timeout, cancelled.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most this many.")
@managing
def list_(
    tool: str | None, agent: str | None, outcome: str | None, limit: int, home: str | None, as_json: bool
) -> None:
    """List recorded calls, newest first."""
    from rookery.core.tool import plain_name

    flags = flags_of({"home": home, "as_owner": True})
    with opened(flags) as platform:
        wanted = given(
            tool=plain_name(tool) if tool else None,
            agent=_agent_id(platform, agent) if agent else None,
            outcome=outcome,
            limit=limit,
        )
        found = answer(platform, flags, "list_audit_records", wanted).structured["records"]
    if not as_json:
        found = [{**record, "at": _moment(record["at_ms"])} for record in found]
    shown = ["at", "tool", "outcome", "code", "layer", "subject", "session", "duration_us"]
    listing(found, shown, as_json=as_json, empty="No call matches.")


def _agent_id(platform: "Platform", name: str) -> str:
    from rookery.identity.store import DEFAULT_TENANT, IdentityStore

    return platform.database.direct(lambda tx: IdentityStore(tx, DEFAULT_TENANT).agent(name)).id


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
