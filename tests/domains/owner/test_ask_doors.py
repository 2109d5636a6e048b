"""No principal but a person who is there answers an ask, by any door and any argument."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from rookery.core.actor import Actor, Role, Source
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied, RookeryError
from rookery.core.tool import PROFILES
from rookery.identity.access import AccessStore
from tests.domains.owner.reception import Reception

NAMES = ("answer_ask", "corvid_answer_ask")
ALL = frozenset({"answer_ask"})


async def refused(reception: Reception, actor: Actor, row: Any) -> None:
    for name in NAMES:
        with pytest.raises(PermissionDenied):
            await reception.call(actor, name, ask_id=row.id, answer="yes")
    assert "answer_ask" not in reception.fleet.names(actor)
    assert reception.row(row.id).status == "open"


async def test_no_right_that_an_agent_can_be_given_lets_it_answer(reception: Reception) -> None:
    row = await reception.opened()
    ada = reception.ada
    for given in (
        {"grants": ALL},
        {"permissions": ALL},
        {"bundle_tools": ALL, "project_bundle_tools": ALL},
        {"scope_file": ALL, "allowed": ALL},
        {"scopes": frozenset({"*", "owner:*", "owner:answer", "tool:answer_ask"})},
        {"mode": "autonomy", "trust": 10**6},
        {"role": "owner", "grants": ALL},
        {"kind": "external", "grants": ALL, "role": "owner", "scopes": frozenset({"*"})},
    ):
        await refused(reception, replace(ada, **given), row)
    for profile in PROFILES.values():
        await refused(reception, replace(ada, profile=profile, grants=ALL), row)
    for source in get_args(Source):
        await refused(reception, replace(ada, source=source, grants=ALL), row)


async def test_the_owner_cannot_hand_the_right_to_an_agent(reception: Reception) -> None:
    row = await reception.opened()
    for tool, arguments in (
        ("grant_tool", {"agent": "default", "tool": "answer_ask"}),
        ("update_agent", {"agent": "default", "permissions": ["answer_ask"]}),
        ("set_profile_tools", {"profile": "judge", "allowed": ["answer_ask"]}),
        ("save_bundle", {"name": "all", "tools": ["answer_ask"]}),
        ("assign_bundle", {"bundle": "all", "agent": "default"}),
    ):
        try:
            await reception.platform.calls.call(reception.owner, tool, arguments)
        except RookeryError:
            continue
    for binding in ({}, {"profile": "judge"}):
        await refused(reception, reception.fleet.actor(**binding), row)


async def test_no_token_of_an_agent_or_an_outsider_lets_it_answer(reception: Reception) -> None:
    row = await reception.opened()
    scopes = ["*"]
    agent = reception.ada.agent
    assert agent is not None
    secret = reception.platform.database.direct(
        lambda tx: AccessStore(tx, "default").create_token("t", agent, "agent", scopes, "t", None)[1], write=True
    )
    for binding in ({"token": secret}, {"token": secret, "as_owner": True}):
        try:
            actor = reception.fleet.actor(**binding)
        except RookeryError:
            continue
        await refused(reception, actor, row)


@pytest.mark.parametrize("role", [role for role in (*get_args(Role), None) if role != "owner"])
async def test_of_people_only_the_owner_answers(reception: Reception, role: Role | None) -> None:
    row = await reception.opened()
    await refused(reception, replace(reception.owner, role=role), row)


@pytest.mark.parametrize("given", [{"scheduler": True}, {"unattended": True}], ids=str)
async def test_a_persons_session_without_the_person_does_not_answer(reception: Reception, given: Any) -> None:
    row = await reception.opened()
    with pytest.raises(PermissionDenied):
        await reception.call(replace(reception.owner, **given), "answer_ask", ask_id=row.id, answer="yes")
    assert reception.row(row.id).status == "open"


async def test_no_argument_makes_the_asker_the_one_who_answers(reception: Reception) -> None:
    row = await reception.opened()
    for tool, arguments in (
        ("check_answer", {"ask_id": row.id, "answer": "yes"}),
        ("check_answer", {"ask_id": row.id, "status": "answered"}),
        ("ask_owner", {"question": "Which colour?", "answer": "yes"}),
        ("ask_owner", {"question": "Which colour?", "answered_by": "owner"}),
        ("ask_owner", {"question": "Which colour?", "as_owner": True}),
    ):
        with pytest.raises(InvalidParams):
            await reception.call(reception.ada, tool, **arguments)
    with pytest.raises(PermissionDenied):
        await reception.call(
            reception.ada, "answer_ask", ask_id=row.id, answer="yes", person="owner", role="owner", as_owner=True
        )
    assert reception.row(row.id).status == "open"


async def test_a_tool_that_calls_tools_has_the_rights_of_its_caller(reception: Reception) -> None:
    row = await reception.opened()
    for name in ("answer_ask", "list_asks"):
        tool = reception.platform.registry.require(name)
        with pytest.raises(PermissionDenied):
            await reception.platform.calls.run(reception.ada, tool, {"ask_id": row.id, "answer": "yes"})
    assert reception.row(row.id).status == "open"


async def test_the_owner_of_another_tenant_is_nobody_here(reception: Reception) -> None:
    row = await reception.opened()
    with pytest.raises(NotFound):
        await reception.call(reception.stranger(as_owner=True), "answer_ask", ask_id=row.id, answer="yes")
    assert reception.row(row.id).status == "open"
