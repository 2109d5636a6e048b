"""What waits for the owner."""

from dataclasses import replace

import pytest

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from tests.domains.owner.reception import Reception


async def test_agents_do_not_see_what_others_ask(reception: Reception) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await reception.call(reception.ada, "list_asks")
    assert caught.value.layer == "principal"


async def test_another_tenants_owner_sees_nothing(reception: Reception) -> None:
    row = await reception.opened()
    stranger = reception.stranger(as_owner=True)
    assert (await reception.call(stranger, "list_asks", status="all")).asks == []
    with pytest.raises(NotFound):
        await reception.call(stranger, "list_asks", ask_id=row.id)


@pytest.mark.parametrize("wrong", [{"status": "closed"}, {"limit": 0}, {"limit": 201}, {"ask_id": ""}], ids=str)
async def test_bad_filters_are_refused(reception: Reception, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParams):
        await reception.call(reception.owner, "list_asks", **wrong)


async def test_open_asks_come_oldest_first_with_all_that_is_needed_to_answer(reception: Reception) -> None:
    bob = await reception.agent("bob")
    rows = [await reception.opened(bob, question="first?", options=["yes", "no"], context="why")]
    reception.pass_hours(2)
    rows.append(await reception.opened(question="second?"))
    viewer = replace(reception.owner, role="viewer")
    found = (await reception.call(viewer, "list_asks")).asks
    assert [each["id"] for each in found] == [row.id for row in rows]
    assert found[0]["options"] == ["1. yes", "2. no"]
    assert (found[0]["agent"], found[0]["context"], found[0]["kind"]) == ("bob", "why", "question")
    assert 7200 <= found[0]["waited_s"] < 7300
    assert [each["id"] for each in (await reception.call(reception.owner, "list_asks", limit=1)).asks] == [rows[0].id]
    (one,) = (await reception.call(reception.owner, "list_asks", ask_id=rows[1].id[:8])).asks
    assert one["question"] == "second?"


async def test_asks_that_are_alike_are_counted(reception: Reception) -> None:
    for number in range(3):
        await reception.opened(reception.fleet.actor(session=f"ses-{number}"))
    await reception.opened(question="something else?")
    found = (await reception.call(reception.owner, "list_asks")).asks
    assert sorted(each["similar"] for each in found) == [0, 2, 2, 2]


async def test_what_was_answered_or_is_over_is_listed_on_request(reception: Reception) -> None:
    old = await reception.opened(question="too late?")
    reception.pass_hours(73)
    done = await reception.opened(question="in time?")
    await reception.answer(done)
    assert (await reception.call(reception.owner, "list_asks")).asks == []
    everything = (await reception.call(reception.owner, "list_asks", status="all")).asks
    assert {each["id"]: each["status"] for each in everything} == {old.id: "expired", done.id: "answered"}
    (answered,) = (await reception.call(reception.owner, "list_asks", status="answered")).asks
    assert (answered["answer"], answered["answered_by"]) == ("green", "owner")
