import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import ConfigurationError, InvalidParams, NotFound, PermissionDenied, ValidationFailed
from rookery.sessions.store import binding_of
from tests.domains.sessions.conftest import Desk
from tests.platform_fixtures import Fleet


async def start(desk: Desk, actor: Actor | None = None, **wanted: Any) -> dict[str, Any]:
    return (await desk.call("start_session", actor, **wanted)).model_dump()


@pytest.mark.parametrize("who", [{"agent": "ada"}, {"profile": "planner"}, {"as_owner": True, "scheduler": True}])
async def test_neither_an_agent_nor_a_schedule_opens_a_session(desk: Desk, who: dict[str, Any]) -> None:
    with pytest.raises(PermissionDenied):
        await start(desk, desk.fleet.actor(**who))
    assert (await desk.call("list_sessions")).sessions == []


async def test_a_session_of_a_person_that_nobody_attends_opens_none(desk: Desk) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await start(desk, replace(desk.fleet.owner, unattended=True))
    assert caught.value.layer == "unattended"


@pytest.mark.parametrize("where", ["..", "../elsewhere", "/", "link", "deep/../../elsewhere"])
async def test_a_folder_outside_the_roots_is_refused(desk: Desk, tmp_path: Path, where: str) -> None:
    os.symlink(tmp_path / "elsewhere", desk.folder / "link")
    with pytest.raises(PermissionDenied, match="outside the folders"):
        await start(desk, cwd=os.path.join(desk.folder, where))


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"cwd": "relative"}, InvalidParams),
        ({"agent": "nobody"}, NotFound),
        ({"project": "nowhere"}, NotFound),
        ({"issue": "SYM-404"}, NotFound),
        ({"runtime": "abacus"}, InvalidParams),
        ({"mode": "bypassPermissions"}, InvalidParams),
        ({"profile": "pirate"}, (InvalidParams, NotFound)),
        ({"model": "--dangerously-skip-permissions"}, InvalidParams),
        ({"model": "opus 5"}, InvalidParams),
        ({"title": "x" * 201}, InvalidParams),
        ({"message": " "}, ValidationFailed),
        ({"message": "x" * 1_000_001}, ValidationFailed),
        ({"servers": {}}, InvalidParams),
    ],
)
async def test_what_cannot_be_had_is_told_and_leaves_nothing(desk: Desk, wanted: dict[str, Any], error: Any) -> None:
    with pytest.raises(error):
        await start(desk, **wanted)
    assert (await desk.call("list_sessions")).sessions == []


async def test_a_project_that_is_closed_to_the_person_does_not_exist(desk: Desk) -> None:
    secret = desk.fleet.actor(as_owner=True, project="secret").project
    assert secret is not None
    outside = replace(desk.fleet.owner, closed=frozenset({secret}))
    with pytest.raises(NotFound, match="there is no project secret"):
        await start(desk, outside, project="secret")


async def test_a_server_without_a_runtime_says_what_to_set(database_url: str, make_fleet: Callable[..., Fleet]) -> None:
    fleet = make_fleet(database_url)
    with pytest.raises(ConfigurationError, match="starts no agents"):
        await fleet.call(fleet.owner, "start_session")


async def test_no_session_is_freer_than_its_agent_or_than_whoever_opens_it(desk: Desk) -> None:
    await desk.call("update_agent", agent="ada", mode="act")
    assert (await start(desk, agent="ada", mode="autonomy"))["session"]["mode"] == "act"
    strict = replace(desk.fleet.owner, mode="ask")
    assert (await start(desk, strict, agent="ada", mode="autonomy"))["session"]["mode"] == "ask"
    assert (await start(desk, agent="ada", mode="ask"))["session"]["mode"] == "ask"


async def test_a_session_has_no_more_scopes_than_the_token_that_opened_it(desk: Desk) -> None:
    scopes = frozenset({"sessions:*", "system:read"})
    made = await start(desk, replace(desk.fleet.owner, scopes=scopes), agent="ada")
    binding = binding_of(desk.row(made["session"]["id"]))
    resolver = desk.fleet.platform.resolver
    actor = desk.fleet.platform.database.direct(lambda tx: resolver.resolve(tx, binding)).actor
    assert actor.scopes == scopes
    assert "save_memory" not in desk.fleet.names(actor)
    assert "ping" in desk.fleet.names(actor)


async def test_everything_about_a_session_can_be_chosen(desk: Desk) -> None:
    issue = await desk.fleet.issue()
    made = await start(
        desk, agent="ada", issue=issue, profile="worker", cwd=f"{desk.folder}/deep", mode="ask",
        model="claude-opus-5.5[1m]", runtime="claude", title="mend it",
    )  # fmt: skip
    shown = made["session"]
    wanted = {
        "agent_name": "ada",
        "issue_id": issue,
        "cwd": f"{desk.folder}/deep",
        "mode": "ask",
        "model": "claude-opus-5.5[1m]",
    }
    assert wanted.items() <= shown.items()
    assert (shown["runtime"], shown["title"], shown["origin"], shown["state"]) == ("claude", "mend it", "user", "idle")
    assert shown["opened_by"] == desk.fleet.owner.subject
    assert made["message"] is None


async def test_the_first_message_is_queued_and_names_the_session(desk: Desk) -> None:
    made = await start(desk, message="mend\n the login  and tell me")
    assert made["session"]["title"] == "mend the login and tell me"
    queued = made["message"]
    assert (queued["session_id"], queued["state"], queued["queue_position"]) == (made["session"]["id"], "queued", 0)
    (message,) = desk.rows(lambda rows: rows.messages(made["session"]["id"]))
    assert (message.id, message.text) == (queued["message_id"], "mend\n the login  and tell me")
    assert message.sent_by == desk.fleet.owner.subject
