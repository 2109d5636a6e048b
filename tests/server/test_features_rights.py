"""Who sees and gets which resources and prompts, at a real session of either era, and who hears when that changes."""

from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Place
from tests.server.feature_place import ERAS, Owner, connect, listed
from tests.server.feature_place import feature_plugin as feature_plugin
from tests.server.feature_place import home as home
from tests.server.feature_place import owner as owner
from tests.server.feature_trials import SECRET
from tests.server.processes import Client

QUIET_S = 1.6
NOT_FOUND = {"2025-11-25": -32002, "2026-07-28": -32602}
CHANGED = {f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")}


def failure(client: Client, method: str, **params: Any) -> dict[str, Any]:
    answer = client.request(method, **params)
    assert "error" in answer, answer
    assert SECRET not in str(answer)
    return answer["error"]


@pytest.mark.parametrize("era", ERAS)
def test_what_a_profile_may_not_have_is_as_if_it_were_not_there(home: Place, era: str) -> None:
    worker = connect(home, era, "--agent-type", "worker")
    for uri in ("judge://report", "nowhere://at/all", "topic://x", "rookery://servers", "judge://", "x" * 3000, ""):
        error = failure(worker, "resources/read", uri=uri)
        assert error == {"code": NOT_FOUND[era], "message": "Resource not found", "data": {"uri": uri}}
    for name in ("judgement", "no_such_prompt", "topic_overview"):
        error = failure(worker, "prompts/get", name=name)
        assert error == {"code": -32602, "message": f"Unknown prompt: {name}"}
    assert "report" not in listed(worker, "resources")
    assert "judgement" not in listed(worker, "prompts")
    assert "topic" not in listed(worker, "resources/templates")


@pytest.mark.parametrize("era", ERAS)
def test_a_profile_that_may_has_them(home: Place, era: str) -> None:
    judge = connect(home, era, "--agent-type", "judge")
    (part,) = judge.request("resources/read", uri="judge://report")["result"]["contents"]
    assert part["text"] == SECRET
    (message,) = judge.request("prompts/get", name="judgement")["result"]["messages"]
    assert message == {"role": "user", "content": {"type": "text", "text": SECRET}}
    assert {"report", "server"} <= listed(judge, "resources")
    assert {"judgement", "who_am_i"} <= listed(judge, "prompts")
    assert not {"echo", "topic"} & listed(judge, "resources/templates")


@pytest.mark.parametrize("era", ERAS)
def test_what_may_not_be_had_cannot_be_completed_either(home: Place, era: str) -> None:
    judge = connect(home, era, "--agent-type", "judge")
    argument = {"name": "language", "value": "p"}
    for name in ("code_review", "no_such_prompt"):
        error = failure(judge, "completion/complete", ref={"type": "ref/prompt", "name": name}, argument=argument)
        assert error == {"code": -32602, "message": f"Unknown prompt: {name}"}
    for uri in ("topic://{topic}", "nowhere://{topic}"):
        topic = {"name": "topic", "value": ""}
        error = failure(judge, "completion/complete", ref={"type": "ref/resource", "uri": uri}, argument=topic)
        assert error == {"code": NOT_FOUND[era], "message": "Resource not found", "data": {"uri": uri}}


def test_what_may_not_be_read_cannot_be_followed_either(home: Place) -> None:
    worker = connect(home, "2025-11-25", "--agent-type", "worker")
    for uri in ("judge://report", "nowhere://at/all", "files:///../x"):
        error = failure(worker, "resources/subscribe", uri=uri)
        assert error == {"code": -32002, "message": "Resource not found", "data": {"uri": uri}}
    assert "result" in worker.request("resources/subscribe", uri="echo://x")


def open_stream(client: Client, **wanted: Any) -> tuple[int, dict[str, Any]]:
    """A stream of changes as the newest revision opens it, and what the server says it will tell."""
    request = client.ask("subscriptions/listen", notifications=wanted)
    return request, client.until("notifications/subscriptions/acknowledged")["params"]["notifications"]


EVERYTHING = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


def hear(client: Client, count: int) -> set[str]:
    return {client.next()["method"] for _ in range(count)}


async def test_a_grant_adds_them_and_is_told_to_its_sessions_and_to_nobody_else(home: Place, owner: Owner) -> None:
    ada, bob = await owner.new_agent("ping"), await owner.new_agent("ping")
    old, other = (connect(home, "2025-11-25", "--agent", name) for name in (ada, bob))
    new, another = (connect(home, "2026-07-28", "--agent", name) for name in (ada, bob))
    for client in (old, other, new, another):
        assert listed(client, "prompts") == {"who_am_i"}
        assert listed(client, "resources") == listed(client, "resources/templates") == set()
        assert listed(client, "tools") == {"ping"}
    for client in (new, another):
        open_stream(client, **EVERYTHING)
    grant = await owner.call("grant_tool", agent=ada, tool="judge_things")
    assert hear(old, 3) == hear(new, 3) == CHANGED
    for client in (old, new):
        assert listed(client, "resources") == {"report"}
        assert listed(client, "prompts") == {"who_am_i", "judgement"}
        assert "result" in client.request("resources/read", uri="judge://report")
    await owner.call("revoke_grant", id=grant.id)
    assert hear(old, 3) == hear(new, 3) == CHANGED
    for client in (old, new):
        assert "error" in client.request("resources/read", uri="judge://report")
        assert listed(client, "resources") == set()
    assert other.silent(QUIET_S)
    assert another.silent(0)


async def test_only_lists_that_a_client_has_seen_or_asked_about_are_told(home: Place, owner: Owner) -> None:
    ada = await owner.new_agent("ping")
    old, new = (connect(home, era, "--agent", ada) for era in ERAS)
    assert listed(old, "prompts") == {"who_am_i"}
    open_stream(new, resourcesListChanged=True)
    await owner.call("grant_tool", agent=ada, tool="judge_things")
    assert old.next()["method"] == "notifications/prompts/list_changed"
    assert new.next()["method"] == "notifications/resources/list_changed"
    assert old.silent(QUIET_S)
    assert new.silent(0)


async def test_a_session_that_serves_itself_hears_too(home: Place, owner: Owner) -> None:
    ada = await owner.new_agent("ping")
    client = connect(home, "2025-11-25", "--agent", ada, direct=True)
    assert listed(client, "resources") == set()
    await owner.call("grant_tool", agent=ada, tool="judge_things")
    assert client.next()["method"] == "notifications/resources/list_changed"
    assert listed(client, "resources") == {"report"}


@pytest.mark.parametrize("era", ERAS)
def test_a_session_is_told_that_changes_are_told(home: Place, era: str) -> None:
    client = home.client()
    if era == "2026-07-28":
        capabilities = client.be_modern().request("server/discover")["result"]["capabilities"]
    else:
        capabilities = client.initialize(era)["result"]["capabilities"]
    assert capabilities["tools"] == capabilities["prompts"] == {"listChanged": True}
    assert capabilities["resources"] == {"listChanged": True, "subscribe": True}
    assert "completions" in capabilities


def test_a_scope_file_narrows_what_can_be_read(home: Place) -> None:
    Path(home.home / "narrow.json").write_text('["get_server_info"]')
    client = connect(home, "2025-11-25", "--tool-scope-file", "narrow.json")
    assert listed(client, "resources") == {"server"}
    assert listed(client, "prompts") == set()
    assert failure(client, "resources/read", uri="echo://x")["code"] == -32002
