"""`search_audit` and `export_audit`: records by what they say, and as they are in the log."""

import time
from typing import Any

import pytest

from rookery.around.audit import append
from rookery.around.chain import next_hash, seal_pending
from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.core.record import COLUMNS, Record
from rookery.core.tool import Tool
from rookery.db.tx import Tx
from rookery.domains.audit import log_filter
from rookery.domains.audit.search_audit import export_audit, search_audit
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet

HOUR_MS = 3_600_000
NOW_MS = time.time_ns() // 1_000_000


async def read(fleet: Fleet, tool: Tool, actor: Actor | None = None, /, **wanted: Any) -> Any:
    return (await fleet.platform.calls.run(actor or fleet.owner, tool, wanted)).value


async def found(fleet: Fleet, actor: Actor | None = None, /, **wanted: Any) -> list[str]:
    """The tools of the records, without those of the search itself."""
    records = (await read(fleet, search_audit, actor, **wanted)).records
    return [each.tool for each in records if each.tool != "search_audit"]


def written(fleet: Fleet, *records: dict[str, Any]) -> None:
    """Records with these values, sealed."""
    actor = fleet.actor()
    usual: dict[str, Any] = {
        **dict.fromkeys(COLUMNS), "at_ms": NOW_MS, "tenant": "default", "kind": "agent", "subject": actor.subject,
        "agent": actor.agent, "project": actor.project, "source": "stdio", "request": "req-1", "tool": "ping",
        "effect": "read", "outcome": "allowed", "input_digest": "0" * 64, "duration_us": 700,
    }  # fmt: skip

    def work(tx: Tx) -> None:
        append(tx, [Record(**{**usual, **each}) for each in records])
        seal_pending(tx)

    fleet.platform.database.direct(work, write=True)


@pytest.mark.parametrize("tool", [search_audit, export_audit])
async def test_an_agent_neither_searches_nor_exports_the_log(fleet: Fleet, tool: Tool) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await read(fleet, tool, fleet.actor())
    assert caught.value.layer == "principal"
    assert tool.name not in fleet.names(fleet.owner)


async def test_another_tenant_finds_nothing_of_ours(fleet: Fleet) -> None:
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    stranger = fleet.actor(tenant="other", as_owner=True)
    await fleet.call(fleet.actor(), "ping")
    assert await found(fleet, stranger) == await found(fleet, stranger, text="ping") == []
    exported = await read(fleet, export_audit, stranger)
    assert {record[exported.fields.index("tenant")] for record in exported.records} == {"other"}
    with pytest.raises(NotFound):
        await found(fleet, stranger, project=fleet.actor().project)


async def test_records_are_found_by_what_they_say(fleet: Fleet) -> None:
    issue = await fleet.issue("login fails")
    await fleet.call(fleet.owner, "create_agent", name="heron")
    await fleet.call(fleet.actor(agent="heron", session="ses-9", issue=issue), "ping")
    with pytest.raises(PermissionDenied):
        await fleet.call(fleet.actor(), "grant_credits")
    for wanted in (
        {"tool": "ping"},
        {"who": "HERON"},
        {"who": "heron", "outcome": "allowed"},
        {"issue": "DEF-1", "tool": "ping"},
        {"issue": issue, "project": "default", "tool": "ping"},
        {"session": "ses-9"},
        {"text": "HERO", "tool": "ping"},
        {"text": "es-9"},
    ):
        assert await found(fleet, **wanted) == ["ping"], wanted
    assert await found(fleet, outcome="refused") == await found(fleet, text="PERMISSION_d") == ["grant_credits"]
    for nothing in ({"text": "%"}, {"text": "_ing"}, {"who": "nobody"}, {"issue": "DEF-9"}, {"tool": "pin"}):
        assert await found(fleet, **nothing) == [], nothing
    (record,) = (await read(fleet, search_audit, session="ses-9")).records
    assert (record.who, record.issue_name, record.project_slug) == ("heron", "DEF-001", "default")


async def test_whoever_names_what_is_not_there_or_no_cursor_of_ours_is_told(fleet: Fleet) -> None:
    with pytest.raises(NotFound):
        await found(fleet, project="nowhere")
    for wrong in ({"cursor": "!"}, {"limit": 0}, {"text": "x" * 201}, {"since_ms": -1}, {"text": " "}):
        with pytest.raises(InvalidParams):
            await found(fleet, **wrong)


async def test_a_time_is_found_though_long_calls_are_written_late(fleet: Fleet) -> None:
    # The third took two hours, so it stands among those that began after it.
    began = [(NOW_MS - 5 * HOUR_MS, 0), (NOW_MS - 3 * HOUR_MS, 0), (NOW_MS - 4 * HOUR_MS, 2 * HOUR_MS), (NOW_MS, 0)]
    written(
        fleet,
        *({"at_ms": at, "duration_us": took * 1000, "tool": f"tool_{n}"} for n, (at, took) in enumerate(began)),
    )
    since, until = NOW_MS - 4 * HOUR_MS, NOW_MS - 3 * HOUR_MS
    assert await found(fleet, since_ms=since, until_ms=until + 1) == ["tool_2", "tool_1"]
    assert await found(fleet, until_ms=since) == ["tool_0"]
    assert await found(fleet, since_ms=NOW_MS - HOUR_MS) == ["tool_3"]
    assert await found(fleet, since_ms=NOW_MS + 9 * HOUR_MS) == []


async def test_pages_lead_through_every_record_once(fleet: Fleet) -> None:
    written(fleet, *({"request": f"req-{n}", "tool": "counted"} for n in range(7)))
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(4):
        page = await read(fleet, search_audit, tool="counted", limit=2, cursor=cursor)
        seen += [each.request for each in page.records]
        cursor = page.next_cursor
    assert cursor is None
    assert seen == [f"req-{n}" for n in reversed(range(7))]


@pytest.mark.parametrize("tool", [search_audit, export_audit])
async def test_a_search_ends_somewhere_and_goes_on_there(
    fleet: Fleet, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(fleet, {"tool": "rare"}, *({} for _ in range(30)))
    monkeypatch.setattr(log_filter, "LOOKED_AT", 12)
    page = await read(fleet, tool, tool="rare")
    answers = 1
    while not page.records and page.next_cursor:
        assert tool is export_audit or page.searched_to_ms
        page = await read(fleet, tool, tool="rare", cursor=page.next_cursor)
        answers += 1
    assert (len(page.records), answers > 2) == (1, True)


async def test_an_exported_record_proves_itself(fleet: Fleet) -> None:
    written(fleet, *({"request": f"req-{n}", "tool": "counted"} for n in range(5)))
    exported = await read(fleet, export_audit, tool="counted", limit=3)
    rest = await read(fleet, export_audit, tool="counted", limit=3, cursor=exported.next_cursor)
    assert (len(exported.records), len(rest.records), rest.next_cursor) == (3, 2, None)
    for record in (*exported.records, *rest.records):
        named = dict(zip(exported.fields, record, strict=True))
        values = [named[name] for name in COLUMNS]
        assert named["hash"] == next_hash(named["previous"], named["position"], values)
