"""Audit: who called what and how it ended, proof that nobody changed the record of it, and the record as a file."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import get_args

from starlette.responses import Response, StreamingResponse

from rookery.core.errors import InvalidParams, NotFound, RookeryError, ValidationFailed
from rookery.core.pages import encode_cursor
from rookery.core.record import RecordOutcome
from rookery.core.tool import Effect
from rookery.domains.audit.audit_proof import show_audit_record, verify_audit_part
from rookery.domains.audit.log_filter import LOOKED_AT
from rookery.domains.audit.new_records import count_new_records
from rookery.domains.audit.search_audit import export_audit, search_audit
from rookery.web.audit_files import KINDS, MOST, file_of
from rookery.web.chain_check import chain_check
from rookery.web.routing import Nav, action, page
from rookery.web.visit import Values, Visit

OUTCOMES: tuple[str, ...] = get_args(RecordOutcome)
EFFECTS: tuple[str, ...] = get_args(Effect)
FILTERS = {
    "q": "text",
    "who": "who",
    "tool": "tool",
    "effect": "effect",
    "outcome": "outcome",
    "in": "project",
    "issue": "issue",
    "session": "session",
    "request": "request",
    "from": "since_ms",
    "to": "until_ms",
}
"""What stands in the address, and which argument it is."""
SINCE = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
PAGE = 50
CHECKED_FOR_S = 0.8
"""So long one request goes on checking the chain."""


@page("/audit", nav=Nav("Audit", "Platform", 110, "audit"))
async def audit(visit: Visit) -> Response:
    """The records that the filters in the address leave, newest first, and whether the chain holds.

    The newest of all draw themselves anew. Where somebody has filtered or gone back, a line says that there are more.
    """
    if visit.wants_part == "chain":
        return await visit.render("audit.html", chain=await _chain(visit, CHECKED_FOR_S))
    chosen = _chosen(visit)
    if visit.wants_part == "news":
        return await visit.render("audit.html", chosen=chosen, **await _news(visit, chosen))
    rows = await _rows(visit, chosen)
    if visit.wants_part == "rows":
        return await visit.render("audit.html", **rows)
    return await visit.render(
        "audit.html",
        **rows,
        outcomes=OUTCOMES,
        effects=EFFECTS,
        agents=await _agents(visit),
        since={name: _minute(datetime.now(UTC) - back) for name, back in SINCE.items()},
        chain=await _chain(visit),
        most=MOST,
        after=rows["found"]["newest"],
        news=None,
    )


async def _rows(visit: Visit, chosen: dict[str, str]) -> Values:
    """What the list shows, or why it shows nothing."""
    problem: RookeryError | None = None
    found: Values = {"records": [], "next_cursor": None, "searched_to_ms": None, "newest": None}
    try:
        found = await visit.call(search_audit, {"limit": PAGE, **_arguments(chosen), **_cursor(visit)})
    except (NotFound, InvalidParams, ValidationFailed) as error:
        problem = error
    older, filtered, cursor = found["next_cursor"], any(chosen.values()), visit.query.get("cursor", "")
    return {
        "chosen": chosen,
        "filtered": filtered,
        "problem": problem,
        "found": found,
        "looked_at": LOOKED_AT,
        "cursor": cursor,
        "older": visit.url("/audit", **chosen, cursor=older) if older else None,
        "live": not (filtered or cursor),
    }


async def _news(visit: Visit, chosen: dict[str, str]) -> Values:
    """How many records like these have come since the page was made. It asks the same each time: see `Readings`."""
    after = visit.query.get("after", "")
    return {"after": after, "news": await visit.call(count_new_records, {**_arguments(chosen), "after": after})}


@page("/audit/export")
async def export(visit: Visit) -> Response:
    """What the filters leave, as a file: all of it, up to a limit."""
    name = visit.query.get("format", "jsonl")
    kind = KINDS.get(name)
    if kind is None:
        raise InvalidParams("there is no such kind of file", hint=f"take one of {', '.join(KINDS)}")
    wanted = _arguments(_chosen(visit))

    async def part(cursor: str) -> Values:
        return await visit.call(export_audit, {**wanted, "cursor": cursor})

    # The first part comes before the answer begins, so that whoever is refused is told so.
    first = await visit.call(export_audit, wanted)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {"Content-Disposition": f'attachment; filename="rookery-audit-{stamp}.{name}"'}
    return StreamingResponse(file_of(kind, first, part), 200, headers, f"{kind.media_type}; charset=utf-8")


@page("/audit/{id:int}")
async def record(visit: Visit) -> Response:
    """One record with all that is kept of the call, and its place in the chain."""
    found = await visit.call(show_audit_record, {"id": int(visit.path["id"])})
    here = visit.url("/audit", cursor=encode_cursor(str(found["record"]["id"] + 1)))
    return await visit.render("audit_record.html", **found, here_in_log=here)


@action("/audit/verify")
async def verify(visit: Visit) -> Response:
    """Compute the chain again, from the first record on."""
    await chain_check(visit.platform.database).begin(visit)
    chain = await _chain(visit, CHECKED_FOR_S)
    if visit.wants_part:
        return await visit.render("audit.html", chain=chain)
    return await visit.done("The chain is being computed again.", to=visit.url("/audit"))


async def _chain(visit: Visit, budget_s: float = 0.0) -> Values | None:
    """What is known of the chain, after checking another part of it. None for whoever may not know it."""
    if not await visit.may(verify_audit_part):
        return None
    check = chain_check(visit.platform.database)
    await check.go_on(visit, budget_s=budget_s)
    return {"result": check.result, "under_way": None if check.under_way is None else asdict(check.under_way)}


def _chosen(visit: Visit) -> dict[str, str]:
    return {name: visit.query.get(name, "").strip() for name in FILTERS}


def _arguments(chosen: dict[str, str]) -> Values:
    given: Values = {FILTERS[name]: value for name, value in chosen.items() if value}
    for name in ("since_ms", "until_ms"):
        if name in given:
            given[name] = _moment_ms(given[name])
    return given


def _cursor(visit: Visit) -> Values:
    return {"cursor": visit.query["cursor"]} if visit.query.get("cursor") else {}


def _moment_ms(text: str) -> int:
    """A time as a browser's field gives it, in UTC."""
    try:
        found = datetime.fromisoformat(text)
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise InvalidParams(
            "a time is a date with hours and minutes", hint="such as 2026-01-31T18:00, in UTC"
        ) from None


def _minute(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M")


async def _agents(visit: Visit) -> list[str]:
    if not await visit.may("list_agents"):
        return []
    return sorted(each["name"] for each in (await visit.call("list_agents"))["agents"])
