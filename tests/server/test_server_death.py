"""What a client sees when the server under its relay dies, stops or comes back."""

import time
from typing import Any

from tests.server.conftest import Place
from tests.server.processes import Client, outcome


def unavailable(answer: dict[str, Any]) -> bool:
    error = answer["error"]
    return error["code"] == -32000 and error["data"]["code"] == "SERVICE_UNAVAILABLE" and error["data"]["retryable"]


def spinning(client: Client, text: str) -> int:
    """The id of a call that runs and will not end by itself."""
    asked = client.ask_tool("spin_until_cancelled", text=text)
    client.until("notifications/message")
    return asked


def test_a_call_under_way_gets_a_clean_error_and_the_next_one_an_answer(place: Place) -> None:
    server = place.server()
    client = place.session()
    asked = spinning(client, "cut off")
    server.kill()
    answer = client.answer_to(asked)
    assert unavailable(answer)
    assert "stopped while this call was running" in answer["error"]["message"]
    assert client.process.poll() is None
    place.server()
    assert client.call("ping")["status"] == "pong", "the relay has introduced its client again"
    assert client.call("list_notes") == {"texts": []}, "what was not acknowledged is not there"
    assert place.session().call("ping")["status"] == "pong"
    assert client.end()[:2] == (0, [])


def test_the_newest_revision_goes_on_as_well(place: Place) -> None:
    server = place.server()
    client = place.client().be_modern()
    asked = spinning_modern(client)
    server.kill()
    assert unavailable(client.answer_to(asked))
    place.server()
    assert client.call("ping")["status"] == "pong"


def spinning_modern(client: Client) -> int:
    asked = client.ask(
        "tools/call",
        name="spin_until_cancelled",
        arguments={"text": "modern"},
        _meta={"io.modelcontextprotocol/logLevel": "info"},
    )
    client.until("notifications/message")
    return asked


def test_every_session_of_a_dead_server_is_told(place: Place) -> None:
    server = place.server()
    clients = [place.session() for _ in range(5)]
    asked = [client.ask_tool("count_slowly", steps=1000) for client in clients]
    for client in clients:
        client.until("notifications/message")
    server.kill()
    assert all(unavailable(client.answer_to(request)) for client, request in zip(clients, asked, strict=True))
    place.server()
    assert all(client.call("ping")["status"] == "pong" for client in clients)


def test_what_was_acknowledged_before_the_death_is_there_after_it(place: Place, database_url: str) -> None:
    place.env["ROOKERY_DATABASE"] = database_url
    server = place.server()
    client = place.session()
    saved: list[str] = []
    for number in range(200):
        client.ask_tool("save_note", text=f"note {number}")
    while len(saved) < 50:
        saved.append(outcome(client.next())["done"])
    server.kill()
    for _ in range(150):
        answer = client.next()
        if "result" in answer:
            saved.append(outcome(answer)["done"])
        else:
            assert unavailable(answer)
    place.server()
    assert set(saved) <= set(client.call("list_notes")["texts"])


def test_a_server_that_is_asked_to_stop_answers_what_it_can_and_ends(place: Place) -> None:
    server = place.server()
    client = place.session()
    asked = client.ask_tool("count_slowly", steps=10)
    client.until("notifications/message")
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 8
    answer = client.answer_to(asked)
    assert "result" in answer or unavailable(answer)
    assert not (place.home / "rookery.sock").exists()
    assert "Traceback" not in server.errors


def test_a_server_is_not_kept_from_stopping_by_a_call_that_spins(place: Place) -> None:
    server = place.server()
    client = place.session()
    asked = spinning(client, "spinning")
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 15
    assert unavailable(client.answer_to(asked))


def test_with_no_server_a_new_session_serves_itself(place: Place) -> None:
    place.server().kill()
    assert (place.home / "rookery.sock").exists(), "a killed server leaves its socket behind"
    client = place.session()
    assert client.call("save_note", text="alone") == {"done": "alone"}
    assert client.end()[0] == 0
    place.server()
    assert place.session().call("list_notes") == {"texts": ["alone"]}


def test_direct_sessions_and_a_server_share_one_home(place: Place) -> None:
    alone = place.session()
    place.server()
    relayed = place.session()
    for number in range(20):
        assert alone.call("save_note", text=f"alone {number}")["done"]
        assert relayed.call("save_note", text=f"relayed {number}")["done"]
    assert len(alone.call("list_notes")["texts"]) == len(relayed.call("list_notes")["texts"]) == 40
