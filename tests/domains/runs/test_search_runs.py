"""`search_runs`: runs by what they are, and by what happened in them."""

from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.domains.runs import run_search
from rookery.domains.runs.run_search import search_runs
from tests.domains.runs.conftest import Ward
from tests.domains.runs.told import called, read, told
from tests.lifecycle.run_rows import said


async def found(ward: Ward, actor: Actor | None = None, **wanted: Any) -> list[str]:
    return [run.id for run in (await read(ward.fleet, search_runs, actor, **wanted)).runs]


async def test_agents_do_not_search_and_other_tenants_find_nothing(ward: Ward, stranger: Actor) -> None:
    run = ward.start()
    ward.rows.append(run, said("the secret word"))
    with pytest.raises(PermissionDenied):
        await found(ward, ward.actor())
    assert await found(ward, stranger) == await found(ward, stranger, text="secret") == []
    with pytest.raises(NotFound):
        await found(ward, stranger, issue_id="SYM-001")


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"status": "odd"}, {"cursor": "!"}, {"text": "x" * 201}, {"agent": ""}]
)
async def test_wrong_values_are_refused(ward: Ward, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await found(ward, **wrong)


async def test_whoever_names_what_is_not_there_is_told(ward: Ward) -> None:
    unknowns: list[dict[str, Any]] = [{"agent": "nobody"}, {"issue_id": "SYM-9"}, {"project": "nowhere"}]
    for unknown in unknowns:
        with pytest.raises(NotFound):
            await found(ward, **unknown)


async def test_runs_are_found_by_what_they_are(ward: Ward) -> None:
    agent = ward.fleet.actor(agent="default").agent
    assert agent is not None
    plain = ward.start()
    worked = ward.start(agent=agent, kind="work")
    ward.rows.change(lambda runs: runs.move(plain, "failed", error="No space left"))
    assert await found(ward) == [worked, plain]
    assert await found(ward, status="failed") == [plain]
    assert await found(ward, agent="default") == await found(ward, kind="work") == [worked]
    assert await found(ward, issue_id="SYM-001", project="default") == [worked, plain]
    assert await found(ward, text="no SPACE") == await found(ward, text=plain) == [plain]


async def test_a_text_is_found_in_what_happened_and_where_it_stands_is_shown(ward: Ward) -> None:
    run, other = ward.start(), ward.start()
    ward.rows.append(run, said("nothing"), told("text_delta", text='Ärger with "the login" \u2013 again\nand again'))
    ward.rows.append(other, *called("c1", "Bash", 0, 10))
    answer = await read(ward.fleet, search_runs, text='"THE login" \u2013')
    assert [(each.id, each.event) for each in answer.runs] == [(run, 2)]
    assert 'with "the login" \u2013 again and' in answer.runs[0].found
    assert answer.searched == 5
    assert await found(ward, text="src/login.py") == [other]
    assert await found(ward, text="100% of_it") == []


async def test_a_search_looks_through_so_much_and_goes_on_with_the_cursor(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_search, "MOST_EVENTS", 2)
    runs = [ward.start() for _ in range(3)]
    for run in runs:
        ward.rows.append(run, said("needle" if run == runs[0] else "hay"), said("hay"))
    answer = await read(ward.fleet, search_runs, text="needle")
    assert (answer.runs, answer.searched, answer.next_cursor is not None) == ([], 2, True)
    for _ in range(2):
        answer = await read(ward.fleet, search_runs, text="needle", cursor=answer.next_cursor)
    assert [each.id for each in answer.runs] == [runs[0]]


async def test_pages_have_each_run_once(ward: Ward) -> None:
    runs = [ward.start() for _ in range(5)]
    seen, cursor = list[str](), None
    while True:
        answer = await read(ward.fleet, search_runs, limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [each.id for each in answer.runs]
        cursor = answer.next_cursor
        if cursor is None:
            break
    assert seen == runs[::-1]


async def test_a_run_under_way_shows_what_its_tool_said_last(ward: Ward) -> None:
    run = ward.start()
    lines = [told("tool_status", at, call_id="c1", tool="Bash", text=f"{at} tests") for at in (1, 2)]
    ward.rows.append(run, *called("c1", "Bash", 0, 9)[:2], *lines)
    assert (await read(ward.fleet, search_runs)).runs[0].line == "2 tests"
    ward.rows.change(lambda runs: runs.move(run, "cancelled"))
    assert (await read(ward.fleet, search_runs)).runs[0].line is None
