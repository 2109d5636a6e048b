"""Nobody but an owner who is there answers, approves, denies or gives rights, by any tool and any argument."""

import pytest

from rookery.core.errors import RookeryError
from tests.security.keep import Keep

WAITS = {"ask_owner", "send_message"}
"""They wait for somebody; test_ways_around.py has them."""
THOROUGH = (
    "the default agent",
    "an agent with every grant",
    "a token with every scope",
    "an outsider who claims to be the owner",
    "an operator",
    "a viewer",
    "the owner's token in a schedule",
)


async def test_the_owner_can_do_what_the_others_try(keep: Keep) -> None:
    """Or the other tests would show nothing."""
    keep.actors()
    failed: list[str] = []
    for tool, arguments in keep.attacks():
        try:
            await keep.platform.calls.call(keep.fleet.owner, tool, arguments)
        except RookeryError as error:
            failed.append(f"{tool} {arguments}: {error.code}")
    # What was answered cannot be answered again, and the ticket is another's.
    assert {each.partition(" ")[0] for each in failed} <= {"answer_ask", "manage_schedule", "save_memory"}
    changed = keep.rights()
    assert len(changed["answered"]) == 3
    assert changed["channels"]


async def test_no_other_caller_succeeds_with_any_of_it(keep: Keep) -> None:
    actors = keep.actors()
    before = keep.rights()
    assert before["answered"] == before["used"] == before["decided"] == before["channels"] == []
    for name, actor in actors.items():
        for tool, arguments in keep.attacks():
            await keep.tried(actor, tool, arguments)
        assert keep.rights() == before, name
    await keep.work()
    assert keep.rights() == before


async def test_no_tool_does_it_by_whatever_it_is_told(lone_keep: Keep) -> None:
    keep = lone_keep
    actors = keep.actors()
    before = keep.rights()
    for name in THOROUGH:
        for tool in list(keep.platform.registry):
            if tool.name in WAITS:
                continue
            for arguments in keep.blind(tool):
                await keep.tried(actors[name], tool.name, arguments)
        assert keep.rights() == before, name
    await keep.work()
    assert keep.rights() == before


async def test_no_token_of_an_agent_opens_a_session_of_the_owner(keep: Keep) -> None:
    keep.actors()
    with pytest.raises(RookeryError):
        keep.fleet.actor(token=keep.secrets["agent"], as_owner=True)


@pytest.mark.parametrize("way", ["pass_on", "pass_on_here"])
async def test_no_tool_that_calls_tools_lends_rights(keep: Keep, way: str) -> None:
    actors = keep.actors()
    before = keep.rights()
    for name in ("the default agent", "an agent with every grant", "an operator", "the owner in a schedule"):
        for tool, arguments in keep.attacks():
            await keep.tried(actors[name], way, {"tool": tool, "arguments": arguments})
        assert keep.rights() == before, name


async def test_none_of_it_is_listed_for_who_cannot_do_it(keep: Keep) -> None:
    only_owners = {"answer_ask", "grant_tool", "update_agent", "create_token", "assign_bundle", "set_profile_tools"}
    for name, actor in keep.actors().items():
        assert keep.fleet.names(actor) & only_owners == set(), name
    assert only_owners <= keep.fleet.names(keep.fleet.owner)
