"""Real processes: an agent's call waits until its owner has approved it by `rookery answer`, beside `rookery up`."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.domains.owner.test_ask_stdio import open_asks, rookery
from tests.jobs.nursery import until
from tests.server.conftest import MODES, Place
from tests.server.processes import Client, outcome


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A home with a running server, whose agent is to ask before it changes anything."""
    place = Place(None)  # pyright: ignore[reportArgumentType]
    try:
        place.server()
        done = rookery(place, "call", "--as-owner", "update_agent", json.dumps({"agent": "default", "mode": "ask"}))
        assert done.returncode == 0, done.stderr
        yield place
    finally:
        place.close()


@pytest.fixture(params=MODES)
def client(request: pytest.FixtureRequest, place: Place) -> Client:
    client = place.client("--session-id", f"ses-{request.param}", direct=request.param == "direct")
    client.initialize()
    return client


def the_ask(place: Place) -> dict[str, Any]:
    (ask,) = until(lambda: open_asks(place), "the owner is asked")
    return ask


def decide(place: Place, ask: dict[str, Any], words: str) -> None:
    done = rookery(place, "answer", ask["short"], words)
    assert done.returncode == 0, done.stderr


def test_a_denied_call_tells_the_agent_why(place: Place, client: Client) -> None:
    # A no is the answer to the same call for a while, by whichever client it comes.
    wanted = client.ask_tool("save_memory", key=f"colour-{secrets.token_hex(4)}", content="red")
    decide(place, the_ask(place), "deny: we like green")
    refused = outcome(client.answer_to(wanted))["error"]
    assert (refused["code"], refused["layer"]) == ("PERMISSION_DENIED", "gate")
    assert refused["message"].endswith("denied save_memory: we like green")
    assert open_asks(place) == []


def test_a_held_call_runs_when_the_owner_approves_at_a_terminal(place: Place, client: Client) -> None:
    wanted = client.ask_tool("save_memory", key="shape", content="round")
    ask = the_ask(place)
    assert ask["question"] == "May default run save_memory (act)?"
    assert "round" in ask["context"]
    for name in ("answer_ask", "corvid_answer_ask"):
        refused = client.call(name, ask_id=ask["id"], answer="approve")["error"]
        assert (refused["code"], refused["layer"]) == ("PERMISSION_DENIED", "principal")
    decide(place, ask, "approve")
    assert "error" not in outcome(client.answer_to(wanted))


def test_later_sends_the_agent_back_and_the_same_call_runs_once_it_is_approved(place: Place, client: Client) -> None:
    about = {"key": "taste", "content": "sweet"}
    wanted = client.ask_tool("save_memory", **about)
    ask = the_ask(place)
    decide(place, ask, "later")
    told = outcome(client.answer_to(wanted))["error"]
    assert (told["code"], told["approval"]["ask_id"]) == ("APPROVAL_REQUIRED", ask["id"])
    decide(place, ask, "approve")
    assert "error" not in client.call("save_memory", **about)
