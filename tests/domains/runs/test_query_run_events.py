import json
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.domains.runs.shown import PAGE_BYTES
from rookery.lifecycle.run_events import RunEvent
from tests.domains.runs.conftest import Ward
from tests.lifecycle.run_rows import RunRows, said, texts, used


async def query(ward: Ward, actor: Actor | None = None, **wanted: Any) -> Any:
    return await ward.fleet.call(actor or ward.actor(), "query_run_events", **wanted)


async def is_unknown(ward: Ward, actor: Actor, **wanted: str) -> str:
    """What somebody is told for whom there is nothing."""
    with pytest.raises(NotFound) as caught:
        await query(ward, actor, **wanted)
    return f"{caught.value.message} ({caught.value.hint})"


@pytest.mark.parametrize("profile", ["worker", "scanner", "planner", "intake"])
async def test_a_profile_that_does_not_look_into_runs_is_refused(ward: Ward, profile: str) -> None:
    run, actor = ward.start(), ward.actor(profile)
    assert "query_run_events" not in ward.fleet.names(actor)
    with pytest.raises(PermissionDenied) as caught:
        await query(ward, actor, run_id=run)
    assert caught.value.layer == "role"


async def test_an_agent_without_a_profile_is_refused(ward: Ward) -> None:
    with pytest.raises(PermissionDenied):
        await query(ward, ward.fleet.actor(), issue_id="SYM-1")


@pytest.mark.parametrize("profile", ["researcher", "judge", "architect"])
async def test_who_looks_into_runs_reads_them(ward: Ward, profile: str) -> None:
    run = ward.start()
    ward.rows.append(run, said("hello"))
    actor = ward.actor(profile)
    assert "query_run_events" in ward.fleet.names(actor)
    assert texts((await query(ward, actor, run_id=run)).events) == ["hello"]


async def test_another_tenants_runs_and_issues_are_told_apart_from_nothing(ward: Ward, stranger: Actor) -> None:
    run = ward.start()
    ward.rows.append(run, said("hello"))
    absent = await is_unknown(ward, stranger, run_id="run-0")
    assert await is_unknown(ward, stranger, run_id=run) == absent.replace("run-0", run)
    absent = await is_unknown(ward, stranger, issue_id="SYM-009")
    for name in ("SYM-001", ward.issue):
        assert await is_unknown(ward, stranger, issue_id=name) == absent.replace("SYM-009", name)


async def test_a_closed_projects_runs_and_issues_are_told_apart_from_nothing(ward: Ward) -> None:
    run = ward.start()
    ward.rows.append(run, said("hello"))
    await ward.fleet.call(ward.fleet.owner, "create_project", slug="open")
    await ward.close()
    judge = ward.fleet.actor(profile="judge", project="open")
    absent = await is_unknown(ward, judge, run_id="run-0")
    assert await is_unknown(ward, judge, run_id=run) == absent.replace("run-0", run)
    absent = await is_unknown(ward, judge, issue_id="SYM-009")
    assert await is_unknown(ward, judge, issue_id="sym-1") == absent.replace("SYM-009", "sym-1")
    assert texts((await query(ward, ward.fleet.owner, run_id=run)).events) == ["hello"]


async def test_what_a_moved_issue_went_through_in_a_closed_project_stays_there(ward: Ward) -> None:
    other = await ward.fleet.call(ward.fleet.owner, "create_project", slug="secret")
    here = ward.start()
    there = ward.rows.start(other.id, issue_id=ward.issue)
    ward.rows.append(there, said("secret"))
    ward.rows.append(here, said("open"))
    assert texts((await query(ward, issue_id="SYM-1")).events) == ["secret", "open"]
    await ward.close("secret")
    found = await query(ward, issue_id="SYM-1")
    assert (texts(found.events), found.total) == (["open"], 1)
    await is_unknown(ward, ward.actor(), run_id=there, issue_id="SYM-1")


@pytest.mark.parametrize("name", ["run-0", "nonsense", "SYM-001", "%", "run-0' OR 1=1 --"])
async def test_an_unknown_run_is_not_found(ward: Ward, name: str) -> None:
    assert f"there is no run {name} (" in await is_unknown(ward, ward.actor(), run_id=name)


@pytest.mark.parametrize("name", ["iss-0", "SYM-2", "SYM", "run-0", "SYM-00000000000000001", "SYM-1 "])
async def test_an_unknown_issue_is_not_found(ward: Ward, name: str) -> None:
    assert f"there is no issue {name} (" in await is_unknown(ward, ward.actor(), issue_id=name)


async def test_a_run_of_another_issue_is_not_found(ward: Ward) -> None:
    other = ward.rows.issue("SYM-002", ward.project)
    run, loose = ward.start(issue_id=other), ward.rows.start(ward.project)
    for each in (run, loose):
        assert f"the issue SYM-001 has no run {each}" in await is_unknown(
            ward, ward.actor(), run_id=each, issue_id="SYM-001"
        )
    await is_unknown(ward, ward.actor(), run_id=run, issue_id="SYM-9")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({}, "one of run_id and issue_id is needed"),
        ({"event_type": "assistant"}, "one of run_id and issue_id is needed"),
        ({"run_id": ""}, "run_id"),
        ({"run_id": "x" * 101}, "run_id"),
        ({"issue_id": "a\0"}, "issue_id"),
        ({"run_id": "run-0", "event_type": "thought"}, "event_type"),
        ({"run_id": "run-0", "event_subtype": "TEXT"}, "event_subtype"),
        ({"run_id": "run-0", "event_type": "user", "event_subtype": "text"}, "user has a subtype: tool_result"),
        ({"run_id": "run-0", "event_type": "result", "event_subtype": "text"}, "result has no subtype"),
        ({"run_id": "run-0", "limit": 0}, "limit"),
        ({"run_id": "run-0", "limit": 501}, "limit"),
        ({"run_id": "run-0", "offset": -1}, "offset"),
        ({"run_id": "run-0", "offset": 2**63}, "offset"),
        ({"run_id": "run-0", "project": "p"}, "project"),
    ],
)
async def test_a_question_that_makes_no_sense_is_told_so(ward: Ward, wanted: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParams, match=told):
        await query(ward, **wanted)


async def test_a_run_is_told_from_its_beginning_page_by_page(ward: Ward) -> None:
    run = ward.start()
    ward.rows.append(run, *(said(str(number)) for number in range(1, 251)))
    first = await query(ward, run_id=run)
    assert (len(first.events), first.total, first.next_offset) == (100, 250, 100)
    assert first.events[0] == {
        "run_id": run, "number": 1, "type": "assistant", "subtype": "text", "payload": {"text": "1"},
        "at_ms": first.events[0]["at_ms"],
    }  # fmt: skip
    last = await query(ward, run_id=run, offset=200)
    assert (texts(last.events), last.next_offset) == ([str(number) for number in range(201, 251)], None)
    everything = await query(ward, run_id=run, limit=500)
    assert [event["number"] for event in everything.events] == [*range(1, 251)]
    beyond = await query(ward, run_id=run, offset=250)
    assert (beyond.events, beyond.total, beyond.next_offset) == ([], 250, None)


async def test_types_and_subtypes_narrow_what_is_told_and_counted(ward: Ward) -> None:
    run = ward.start()
    start, end = RunEvent("system", "init", {"text": "init"}), RunEvent("result", None, {"text": "end"})
    ward.rows.append(
        run, start, said("a"), used("ls"), RunEvent("user", "tool_result", {"text": "files"}), said("b"), end
    )
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"event_type": "assistant", "event_subtype": "text"}, ["a", "b"]),
        ({"event_subtype": "text"}, ["a", "b"]),
        ({"event_subtype": "init"}, ["init"]),
        ({"event_type": "result"}, ["end"]),
        ({"event_type": "rate_limit_event"}, []),
    ]
    for wanted, told in cases:
        found = await query(ward, run_id=run, **wanted)
        assert (texts(found.events), found.total, found.next_offset) == (told, len(told), None)
    page = await query(ward, issue_id="SYM-1", event_type="assistant", limit=2)
    assert ([event["number"] for event in page.events], page.total, page.next_offset) == ([2, 3], 3, 2)


async def test_an_issue_is_told_by_all_its_runs_however_it_is_called(ward: Ward) -> None:
    one, two = ward.start(), ward.start()
    other = ward.start(issue_id=ward.rows.issue("SYM-002", ward.project))
    for run, text in ((one, "first"), (two, "second"), (other, "other"), (one, "third")):
        ward.rows.append(run, said(text))
    for name in (ward.issue, "SYM-001", "SYM-1", "sym-0001"):
        found = await query(ward, issue_id=name)
        assert texts(found.events) == ["first", "second", "third"]
        assert [(event["run_id"], event["number"]) for event in found.events] == [(one, 1), (two, 1), (one, 2)]
    both = await query(ward, issue_id="SYM-1", run_id=one)
    assert texts(both.events) == ["first", "third"]


async def test_a_page_ends_before_it_is_too_much_for_one_answer(ward: Ward) -> None:
    run, long = ward.start(), "x" * (PAGE_BYTES // 5)
    ward.rows.append(run, *(said(f"{number}{long}") for number in range(9)))
    offset, pages = 0, list[int]()
    while offset is not None:
        page = await query(ward, run_id=run, offset=offset)
        assert len(json.dumps(page.events)) < PAGE_BYTES + 2000
        pages.append(len(page.events))
        offset = page.next_offset
        assert len(pages) < 10
    assert pages == [4, 4, 1]


async def test_what_an_agent_says_cannot_make_its_record_unreadable(ward: Ward) -> None:
    run, deep = ward.start(), {"in": list[Any]()}
    for _ in range(400):
        deep = {"in": [deep]}
    odd = {"text": "a\ud800b\0", "big": 10**4000, "tiny": float("nan"), "\udfff": 1}
    ward.rows.append(run, RunEvent("result", None, deep), RunEvent("result", None, odd), said("fine"))
    result = await ward.fleet.platform.calls.call(ward.actor(), "query_run_events", {"run_id": run})
    assert json.loads(result.text.encode())["events"][2]["payload"] == {"text": "fine"}
    (part,) = await ward.fleet.platform.calls.read(ward.actor(), f"run://{run}/events")
    assert isinstance(part.text, str)
    assert len(part.text.encode().splitlines()) == 3


async def test_a_stranger_with_an_issue_of_the_same_name_reads_its_own(ward: Ward, stranger: Actor) -> None:
    ward.rows.append(ward.start(), said("ours"))
    theirs = RunRows(ward.fleet.platform.database, "other")
    assert stranger.project is not None
    run = theirs.start(stranger.project, issue_id=theirs.issue("SYM-001", stranger.project))
    theirs.append(run, said("theirs"))
    assert texts((await query(ward, stranger, issue_id="SYM-001")).events) == ["theirs"]
    assert texts((await query(ward, issue_id="SYM-001")).events) == ["ours"]
