"""Real processes: an agent asks over stdio, and its owner answers there or by `rookery answer`, beside `rookery up`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.domains.owner.reception import QUESTION
from tests.jobs.nursery import until
from tests.server.conftest import MODES, Place
from tests.server.processes import PATIENCE_S, Client, outcome
from tests.warm import run


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A home with a running server."""
    place = Place(None)  # pyright: ignore[reportArgumentType]
    try:
        place.server()
        yield place
    finally:
        place.close()


@pytest.fixture(params=MODES)
def direct(request: pytest.FixtureRequest) -> bool:
    return request.param == "direct"


def rookery(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "rookery.entry", *words], env=place.environment(), limit_s=PATIENCE_S)


def open_asks(place: Place) -> list[dict[str, Any]]:
    done = rookery(place, "asks", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def agent(place: Place, direct: bool, session: str) -> Client:
    return place.client("--session-id", session, direct=direct)


def test_the_answer_typed_at_a_terminal_ends_the_agents_wait(place: Place, direct: bool) -> None:
    client = agent(place, direct, f"ses-cli-{direct}")
    client.initialize()
    asked = client.ask_tool("ask_owner", question=QUESTION, options=["red", "green"])
    found = until(lambda: open_asks(place), "the question is there")
    (ask,) = found
    assert (ask["question"], ask["options"]) == (QUESTION, ["1. red", "2. green"])
    for name in ("answer_ask", "corvid_answer_ask"):
        refused = client.call(name, ask_id=ask["id"], answer="1")["error"]
        assert (refused["code"], refused["layer"]) == ("PERMISSION_DENIED", "principal")
    done = rookery(place, "answer", ask["short"], "2")
    assert done.returncode == 0, done.stderr
    told = outcome(client.answer_to(asked))
    assert (told["answer"], told["option"], told["via"]) == ("green", 2, "cli")
    late = rookery(place, "answer", ask["short"], "1")
    assert (late.returncode, "already answered" in late.stderr) == (1, True)


def test_the_person_at_a_client_of_2025_answers(place: Place, direct: bool) -> None:
    client = agent(place, direct, f"ses-old-{direct}")
    client.initialize("2025-11-25", elicitation={})
    asked = client.ask_tool("ask_owner", question=QUESTION)
    question = client.until("elicitation/create")
    assert question["params"]["message"] == QUESTION
    result = {"action": "accept", "content": {"answer": "blue"}}
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": result})
    told = outcome(client.answer_to(asked))
    assert (told["answer"], told["via"]) == ("blue", "elicitation")
    assert told["answered_by"] == 'the person at the agent\'s client "test"'


def test_a_question_that_was_answered_elsewhere_is_taken_back_from_the_client(place: Place, direct: bool) -> None:
    client = agent(place, direct, f"ses-back-{direct}")
    client.initialize("2025-11-25", elicitation={})
    asked = client.ask_tool("ask_owner", question=QUESTION)
    question = client.until("elicitation/create")
    (ask,) = open_asks(place)
    assert rookery(place, "answer", ask["id"], "green").returncode == 0
    assert outcome(client.answer_to(asked))["answer"] == "green"
    (withdrawn,) = [message for message in client.seen if message.get("method") == "notifications/cancelled"]
    assert withdrawn["params"]["requestId"] == question["id"]


def test_the_person_at_a_client_of_2026_answers_and_nothing_is_asked_twice(place: Place, direct: bool) -> None:
    client = agent(place, direct, f"ses-new-{direct}").be_modern(elicitation={})
    arguments = {"question": QUESTION, "options": ["red", "green"]}
    asked = client.request("tools/call", name="ask_owner", arguments=arguments)["result"]
    assert asked["resultType"] == "input_required"
    ((key, question),) = asked["inputRequests"].items()
    assert question["params"]["message"] == f"{QUESTION}\n\n1. red\n2. green"
    (ask,) = open_asks(place)
    assert key == ask["id"]
    given = {key: {"action": "accept", "content": {"answer": "Red"}}}
    answer = client.request(
        "tools/call",
        name="ask_owner",
        arguments=arguments,
        inputResponses=given,
        requestState=asked["requestState"],
    )["result"]
    told = answer["structuredContent"]
    assert (told["ask_id"], told["answer"], told["option"]) == (ask["id"], "red", 1)
    assert open_asks(place) == []


def test_an_agent_that_is_killed_while_it_waits_finds_its_answer_later(place: Place, direct: bool) -> None:
    first = agent(place, direct, f"ses-dead-{direct}")
    first.initialize()
    first.ask_tool("ask_owner", question=QUESTION)
    found = until(lambda: open_asks(place), "the question is there")
    first.kill()
    assert rookery(place, "answer", found[0]["short"], "later").returncode == 0
    second = agent(place, direct, f"ses-dead-{direct}")
    second.initialize()
    told = second.call("ask_owner", question=QUESTION)
    assert (told["ask_id"], told["answer"]) == (found[0]["id"], "later")
    assert second.call("check_answer", ask_id=found[0]["short"])["answer"] == "later"
