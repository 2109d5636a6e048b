"""Asking the client for several things, in one round or many, in both eras; and what a client may send back."""

import base64
from typing import Any

import pytest
import sqlalchemy as sa

from tests.server.conftest import Place
from tests.server.feature_place import Owner, connect
from tests.server.feature_place import feature_plugin as feature_plugin
from tests.server.feature_place import home as home
from tests.server.feature_place import owner as owner
from tests.server.processes import Client, outcome

CAN = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}
OLD, NEW = "2025-11-25", "2026-07-28"
ROOTS = {"roots": [{"uri": "file:///home/ada/app", "name": "app"}]}
SAID = {"role": "assistant", "content": {"type": "text", "text": "well"}, "model": "m", "stopReason": "endTurn"}
INVALID_STATE = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


def named(name: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


def reply(client: Client, question: dict[str, Any], result: dict[str, Any]) -> None:
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": result})


@pytest.fixture(params=["relay", "direct"])
def direct(request: pytest.FixtureRequest) -> bool:
    return request.param == "direct"


@pytest.fixture
def old(home: Place, direct: bool) -> Client:
    return connect(home, OLD, direct=direct, **CAN)


@pytest.fixture
def new(home: Place, direct: bool) -> Client:
    return connect(home, NEW, direct=direct, **CAN)


EVERYTHING = "accept {'name': 'Ada'} well ['file:///home/ada/app']"


def test_everything_is_asked_at_once_before_2026(old: Client) -> None:
    asked = old.ask_tool("ask_everything")
    questions = [old.next() for _ in range(3)]
    answers = {"elicitation/create": named("Ada"), "sampling/createMessage": SAID, "roots/list": ROOTS}
    for question in reversed(questions):
        reply(old, question, answers.pop(question["method"]))
    assert outcome(old.answer_to(asked)) == {"said": EVERYTHING}


def test_one_refusal_takes_the_other_questions_back(old: Client) -> None:
    asked = old.ask_tool("ask_everything")
    questions = {question["method"]: question for question in (old.next() for _ in range(3))}
    refused = {"code": -1, "message": "no model today"}
    old.send({"jsonrpc": "2.0", "id": questions["sampling/createMessage"]["id"], "error": refused})
    error = outcome(old.answer_to(asked))["error"]
    assert (error["code"], "no model today" in error["message"]) == ("SERVICE_UNAVAILABLE", True)
    withdrawn = {each["params"]["requestId"] for each in old.seen if each["method"] == "notifications/cancelled"}
    assert withdrawn == {questions[method]["id"] for method in ("elicitation/create", "roots/list")}
    assert old.call("ping")["status"] == "pong"


def test_everything_is_asked_in_one_answer_from_2026_on(new: Client) -> None:
    asked = new.request("tools/call", name="ask_everything", arguments={})["result"]
    assert asked["resultType"] == "input_required"
    assert {key: each["method"] for key, each in asked["inputRequests"].items()} == {
        "who": "elicitation/create",
        "words": "sampling/createMessage",
        "where": "roots/list",
    }
    answers = {"who": named("Ada"), "words": SAID, "where": ROOTS}
    result = again(new, asked, answers, "ask_everything")
    assert result["structuredContent"] == {"said": EVERYTHING}
    assert new.seen == []


def again(
    client: Client, asked: dict[str, Any], answers: dict[str, Any], name: str, **arguments: Any
) -> dict[str, Any]:
    """Call once more with the answers and what the server gave along."""
    answer = client.request(
        "tools/call", name=name, arguments=arguments, inputResponses=answers, requestState=asked["requestState"]
    )
    return answer["result"]


def test_what_was_left_open_is_asked_again_and_the_rest_is_kept(new: Client) -> None:
    asked = new.request("tools/call", name="ask_everything", arguments={})["result"]
    asked = again(new, asked, {"who": named("Ada"), "other": named("x")}, "ask_everything")
    assert set(asked["inputRequests"]) == {"words", "where"}
    asked = again(new, asked, {"where": ROOTS, "who": named("Eve")}, "ask_everything")
    assert set(asked["inputRequests"]) == {"words"}
    result = again(new, asked, {"words": SAID}, "ask_everything")
    assert result["structuredContent"] == {"said": EVERYTHING}, "the first answer stands"


def test_an_answer_of_the_wrong_kind_is_asked_for_again(new: Client) -> None:
    asked = new.request("tools/call", name="ask_everything", arguments={})["result"]
    asked = again(new, asked, {"who": ROOTS, "words": named("Ada"), "where": ROOTS}, "ask_everything")
    assert set(asked["inputRequests"]) == {"who", "words"}


IN_ROUNDS = "hi ['Ada', 'Lovelace'] 1 well"


def test_rounds_go_on_from_what_was_answered(new: Client) -> None:
    given = {"elicitation/create": [named("Lovelace"), named("Ada")], "roots/list": [ROOTS]}
    asked = new.request("tools/call", name="ask_in_rounds", arguments={"message": "hi"})["result"]
    rounds = 0
    while asked["resultType"] == "input_required":
        ((key, question),) = asked["inputRequests"].items()
        answer = given[question["method"]].pop() if question["method"] in given else SAID
        asked = again(new, asked, {key: answer}, "ask_in_rounds", message="hi")
        rounds += 1
    assert (rounds, asked["structuredContent"]) == (4, {"said": IN_ROUNDS})


def test_the_same_handler_asks_one_after_the_other_before_2026(old: Client) -> None:
    asked = old.ask_tool("ask_in_rounds", message="hi")
    for method, answer in (
        ("elicitation/create", named("Ada")),
        ("roots/list", ROOTS),
        ("elicitation/create", named("Lovelace")),
        ("sampling/createMessage", SAID),
    ):
        reply(old, old.until(method), answer)
    assert outcome(old.answer_to(asked)) == {"said": IN_ROUNDS}


def test_a_handler_that_catches_errors_still_asks(new: Client, old: Client) -> None:
    asked = new.request("tools/call", name="ask_carelessly", arguments={})["result"]
    assert asked["resultType"] == "input_required"
    result = again(new, asked, {"input_1": named("Ada")}, "ask_carelessly")
    assert result["structuredContent"] == {"said": "{'name': 'Ada'}"}


def test_a_tool_that_calls_another_that_asks_asks_for_both(new: Client) -> None:
    asked = new.request("tools/call", name="ask_through_another", arguments={})["result"]
    asked = again(new, asked, {"input_1": named("Ada")}, "ask_through_another")
    assert set(asked["inputRequests"]) == {"input_2"}
    result = again(new, asked, {"input_2": named("Eve")}, "ask_through_another")
    assert "Ada" in result["structuredContent"]["said"]
    assert "Eve" in result["structuredContent"]["said"]


def test_resources_and_prompts_ask_too(new: Client, old: Client) -> None:
    for method, params in (
        ("resources/read", {"uri": "asked://hi"}),
        ("prompts/get", {"name": "asked_prompt", "arguments": {"message": "hi"}}),
    ):
        asked = new.request(method, **params)["result"]
        ((key, question),) = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        state = {"inputResponses": {key: named("Ada")}, "requestState": asked["requestState"]}
        done = new.request(method, **params, **state)["result"]
        assert done["resultType"] == "complete"
        assert "hi {'name': 'Ada'}" in str(done)
        request = old.ask(method, **params)
        reply(old, old.until("elicitation/create"), named("Ada"))
        assert "hi {'name': 'Ada'}" in str(old.answer_to(request)["result"])


def test_a_client_that_cannot_be_asked_gets_an_error_that_says_so(home: Place, direct: bool) -> None:
    old, new = connect(home, OLD, direct=direct), connect(home, NEW, direct=direct)
    error = new.request("resources/read", uri="asked://hi")["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"elicitation": {}}}
    error = old.request("resources/read", uri="asked://hi")["error"]
    assert (error["code"], error["data"]["code"]) == (-32000, "SERVICE_UNAVAILABLE")
    assert error["data"]["hint"]


def first_round(client: Client, name: str = "ask_in_rounds", **arguments: Any) -> dict[str, Any]:
    return client.request("tools/call", name=name, arguments=arguments or {"message": "hi"})["result"]


def sent_back(client: Client, state: Any, name: str = "ask_in_rounds", **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments or {"message": "hi"}}
    return client.request("tools/call", **params, inputResponses={"input_1": named("Ada")}, requestState=state)


def flipped(state: str) -> str:
    return state[:-8] + ("A" if state[-8] != "A" else "B") + state[-7:]


def test_a_state_that_was_altered_or_made_up_is_refused(new: Client) -> None:
    state = first_round(new)["requestState"]
    made_up = base64.urlsafe_b64encode(b'{"answers":{}}').decode().rstrip("=")
    for wrong in (flipped(state), state[:-1], state + "A", "", "v1.", f"v1.{made_up}", made_up, '{"answers":{}}'):
        assert sent_back(new, wrong)["error"] == INVALID_STATE
    assert sent_back(new, state)["result"]["resultType"] == "input_required"


def test_a_state_is_good_for_its_own_request_only(new: Client) -> None:
    state = first_round(new)["requestState"]
    assert sent_back(new, state, message="other")["error"] == INVALID_STATE
    assert sent_back(new, state, name="ask_everything")["error"] == INVALID_STATE
    for method, params in (
        ("resources/read", {"uri": "asked://hi"}),
        ("prompts/get", {"name": "asked_prompt", "arguments": {"message": "hi"}}),
    ):
        assert new.request(method, **params, requestState=state)["error"] == INVALID_STATE


async def test_a_state_of_another_identity_is_refused(home: Place, owner: Owner) -> None:
    tools = ("ask_in_rounds", "ping")
    ada, bob = await owner.new_agent(*tools), await owner.new_agent(*tools)
    hers = connect(home, NEW, "--agent", ada, **CAN)
    state = first_round(hers)["requestState"]
    for stranger in (("--agent", bob), (), ("--as-owner",)):
        assert sent_back(connect(home, NEW, *stranger, **CAN), state)["error"] == INVALID_STATE
    same = connect(home, NEW, "--agent", ada, **CAN)
    assert sent_back(same, state)["result"]["resultType"] == "input_required"


def test_a_state_says_nothing_to_its_client(new: Client) -> None:
    asked = first_round(new)
    asked = again(new, asked, {"input_1": named("Hieronymus")}, "ask_in_rounds", message="hi")
    state = asked["requestState"].removeprefix("v1.")
    assert b"Hieronymus" not in base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))


def test_any_server_on_the_same_database_goes_on_from_a_state(home: Place) -> None:
    first, second = (connect(home, NEW, direct=direct, **CAN) for direct in (True, False))
    asked = first_round(first)
    answers = iter([named("Ada"), ROOTS, named("Lovelace"), SAID])
    client = second
    while asked["resultType"] == "input_required":
        (key,) = asked["inputRequests"]
        asked = again(client, asked, {key: next(answers)}, "ask_in_rounds", message="hi")
        client = first if client is second else second
    assert asked["structuredContent"] == {"said": IN_ROUNDS}


def test_a_server_on_another_database_does_not(home: Place, feature_plugin: Any) -> None:
    elsewhere = Place(feature_plugin)
    try:
        stranger = connect(elsewhere, NEW, direct=True, **CAN)
        state = first_round(stranger)["requestState"]
        assert sent_back(connect(home, NEW, **CAN), state)["error"] == INVALID_STATE
    finally:
        elsewhere.close()


def test_a_round_that_asks_is_recorded_as_done(home: Place, owner: Owner) -> None:
    client = connect(home, NEW, "--session-id", "ses-rounds", **CAN)
    first_round(client)
    query = sa.text("SELECT tool, outcome, code FROM audit_log WHERE session = 'ses-rounds' ORDER BY id")
    rows = owner.platform.database.direct(lambda tx: [tuple(row) for row in tx.all(query)])
    assert rows == [("ask_in_rounds", "intent", None), ("ask_in_rounds", "done", "INPUT_REQUIRED")]
