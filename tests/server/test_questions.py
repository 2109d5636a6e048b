"""Questions from a handler to the client's person and model, in both protocol eras."""

from typing import Any

import pytest

from tests.server.conftest import Place
from tests.server.processes import Client, outcome


def asking(place: Place, direct: bool, **capabilities: Any) -> Client:
    client = place.client(direct=direct)
    client.initialize("2025-11-25", **capabilities)
    return client


def reply(client: Client, question: dict[str, Any], **result: Any) -> None:
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": result})


def test_a_person_is_asked_and_answers(client: Client) -> None:
    asked = client.ask_tool("ask_person")
    question = client.until("elicitation/create")
    assert question["params"]["message"] == "Which colour?"
    assert question["params"]["requestedSchema"]["properties"] == {"colour": {"type": "string"}}
    reply(client, question, action="accept", content={"colour": "green"})
    assert outcome(client.answer_to(asked)) == {"done": "green"}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_may_decline(client: Client, action: str) -> None:
    asked = client.ask_tool("ask_person")
    reply(client, client.until("elicitation/create"), action=action)
    assert outcome(client.answer_to(asked)) == {"done": "declined"}


def test_two_questions_at_once_get_their_own_answers(client: Client) -> None:
    asked = [client.ask_tool("ask_person") for _ in range(2)]
    questions = [client.until("elicitation/create") for _ in range(2)]
    for question, colour in zip(reversed(questions), ("red", "blue"), strict=True):
        reply(client, question, action="accept", content={"colour": colour})
    assert {outcome(answer)["done"] for answer in client.answers_to(asked)} == {"red", "blue"}


def test_a_question_answered_with_an_error_is_a_clear_error(client: Client) -> None:
    asked = client.ask_tool("ask_person")
    question = client.until("elicitation/create")
    client.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "not now"}})
    error = outcome(client.answer_to(asked))["error"]
    assert (error["code"], "not now" in error["message"]) == ("SERVICE_UNAVAILABLE", True)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"action": "maybe"},
        {"action": "accept", "content": [1]},
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {},
    ],
    ids=["action", "content", "no content", "no field", "empty"],
)
def test_an_answer_that_makes_no_sense_costs_only_its_call(client: Client, nonsense: dict[str, Any]) -> None:
    asked = client.ask_tool("ask_person")
    reply(client, client.until("elicitation/create"), **nonsense)
    answer = client.answer_to(asked)
    assert answer["result"]["isError"] or outcome(answer) == {"done": "declined"}
    assert "validation" not in str(answer)
    assert "Traceback" not in str(answer)
    assert client.call("ping")["status"] == "pong"


def test_a_model_is_asked_and_answers(client: Client) -> None:
    asked = client.ask_tool("ask_model")
    question = client.until("sampling/createMessage")
    assert question["params"]["messages"][0]["content"]["text"] == "Say something"
    said = {"type": "text", "text": "something"}
    reply(client, question, role="assistant", content=said, model="m", stopReason="endTurn")
    assert outcome(client.answer_to(asked)) == {"done": "something"}


CANNOT = {"ask_person": "elicitation", "ask_model": "sampling", "ask_folders": "roots"}


@pytest.mark.parametrize("name", CANNOT)
def test_a_client_that_cannot_be_asked_is_told_so(shared: Place, direct: bool, name: str) -> None:
    client = asking(shared, direct)
    error = client.call(name)["error"]
    assert error["code"] == "SERVICE_UNAVAILABLE"
    assert error["hint"]
    assert client.call("ping")["status"] == "pong"


@pytest.mark.parametrize("name", CANNOT)
def test_the_newest_revision_says_which_capability_is_missing(shared: Place, direct: bool, name: str) -> None:
    client = shared.client(direct=direct).be_modern()
    error = client.request("tools/call", name=name, arguments={})["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {CANNOT[name]: {}}}
    assert client.call("ping")["status"] == "pong"


def again(client: Client, name: str, **responses: Any) -> dict[str, Any]:
    """Call once more with the answers, as the newest revision wants it."""
    return client.request("tools/call", name=name, arguments={}, inputResponses=responses)["result"]


def test_the_newest_revision_asks_by_its_answer(modern: Client) -> None:
    client = modern
    asked = client.request("tools/call", name="ask_person", arguments={})["result"]
    assert asked["resultType"] == "input_required"
    ((key, question),) = asked["inputRequests"].items()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Which colour?"
    accepted = again(client, "ask_person", **{key: {"action": "accept", "content": {"colour": "green"}}})
    assert (accepted["resultType"], accepted["structuredContent"]) == ("complete", {"done": "green"})
    assert again(client, "ask_person", **{key: {"action": "decline"}})["structuredContent"] == {"done": "declined"}
    assert client.seen == [], "nothing but answers was sent"


def test_the_newest_revision_asks_one_thing_after_the_other(modern: Client) -> None:
    client = modern
    given: dict[str, Any] = {}
    for name in ("Ada", "Lovelace"):
        ((key, _),) = again(client, "ask_twice", **given)["inputRequests"].items()
        assert key not in given
        given[key] = {"action": "accept", "content": {"name": name}}
    assert again(client, "ask_twice", **given)["structuredContent"] == {"done": "Ada Lovelace"}


def test_the_newest_revision_asks_the_model_by_its_answer(modern: Client) -> None:
    client = modern
    ((key, question),) = again(client, "ask_model")["inputRequests"].items()
    assert question["method"] == "sampling/createMessage"
    said = {"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m", "stopReason": "endTurn"}
    assert again(client, "ask_model", **{key: said})["structuredContent"] == {"done": "hello"}


def test_an_answer_to_the_wrong_question_is_asked_for_again(modern: Client) -> None:
    client = modern
    for wrong in ({"other": {"action": "decline"}}, {}):
        assert again(client, "ask_person", **wrong)["resultType"] == "input_required"
    refused = client.request("tools/call", name="ask_person", arguments={}, inputResponses={"input_1": {"action": 7}})
    assert refused["error"]["code"] == -32602 or refused["result"]["resultType"] == "input_required"


def test_a_call_that_ends_first_takes_its_question_back(client: Client) -> None:
    asked = client.ask_tool("ask_briefly")
    question = client.until("elicitation/create")
    assert outcome(client.answer_to(asked))["error"]["code"] == "TIMEOUT"
    (withdrawn,) = [message for message in client.seen if message.get("method") == "notifications/cancelled"]
    assert withdrawn["params"]["requestId"] == question["id"]
    reply(client, question, action="accept", content={"colour": "late"})
    assert client.call("ping")["status"] == "pong"


def test_a_question_that_is_never_answered_ends_with_the_session(shared: Place, direct: bool) -> None:
    client = asking(shared, direct, elicitation={})
    client.ask_tool("ask_person")
    client.until("elicitation/create")
    code, rest, _ = client.end()
    assert code == 0
    (answer,) = rest
    assert outcome(answer)["error"]["code"] == "SERVICE_UNAVAILABLE", "there is nobody left to answer it"


def test_a_question_asked_after_the_end_of_input_is_refused(shared: Place, direct: bool) -> None:
    client = asking(shared, direct, elicitation={})
    client.ask_tool("ask_late")
    code, rest, _ = client.end()
    assert code == 0
    (answer,) = rest
    assert outcome(answer)["error"]["code"] == "SERVICE_UNAVAILABLE"
