"""Every call ends in time, whatever its handler does, and takes nobody else with it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import Place
from tests.server.processes import Client, error_code, outcome
from tests.server.trials import SHORT_S, STUCK_S

# The limit itself, what a thread is given to obey, and the slowness of a busy machine.
BOUND_S = SHORT_S + 2.0 + 3.0
READS = ["spin_reading", "spin_stubbornly", "query_for_ever", "sleep_reading", "wait_for_ever"]
WRITES = ["spin_writing", "query_after_writing", "sleep_writing"]


@pytest.fixture(scope="module")
def places() -> Iterator[dict[str, Place]]:
    """The homes of this file's tests, by kind of database."""
    found: dict[str, Place] = {}
    yield found
    for place in found.values():
        place.close()


@pytest.fixture
def shared(request: pytest.FixtureRequest, plugin: Path, places: dict[str, Place]) -> Place:
    """A home with a running server, on SQLite or on PostgreSQL."""
    if request.param not in places:
        place = places[request.param] = Place(plugin)
        if request.param == "postgres":
            databases = request.getfixturevalue("postgres_dsn")
            place.env["ROOKERY_DATABASE"] = databases()
        place.server()
    return places[request.param]


on_both = pytest.mark.parametrize("shared", ["sqlite", "postgres"], indirect=True)
everywhere = pytest.mark.parametrize(
    ("shared", "direct"),
    [
        pytest.param("sqlite", True, id="sqlite direct"),
        pytest.param("sqlite", False, id="sqlite relay"),
        pytest.param("postgres", False, id="postgres relay"),
        pytest.param("postgres", True, id="postgres direct", marks=pytest.mark.slow),
    ],
    indirect=["shared"],
)


def by_name(names: list[str]) -> pytest.MarkDecorator:
    """Every tool on every database; a sleeper is waited for, so on PostgreSQL it sleeps among the slow tests."""
    cases = [
        pytest.param(kind, name, marks=[pytest.mark.slow] if kind == "postgres" and "sleep" in name else [])
        for kind in ("sqlite", "postgres")
        for name in names
    ]
    return pytest.mark.parametrize(("shared", "name"), cases, indirect=["shared"])


@everywhere
@pytest.mark.parametrize("name", READS)
def test_a_read_that_does_not_end_is_ended(client: Client, name: str) -> None:
    began = time.monotonic()
    assert error_code(client.call(name)) == "TIMEOUT"
    assert SHORT_S <= time.monotonic() - began < BOUND_S
    assert client.call("ping")["status"] == "pong"
    assert "texts" in client.call("list_notes")


@everywhere
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_does_not_end_is_ended_and_undone(client: Client, name: str) -> None:
    began = time.monotonic()
    assert error_code(client.call(name, text=f"of {name}")) == "TIMEOUT"
    assert SHORT_S <= time.monotonic() - began < BOUND_S
    assert client.call("save_note", text=f"after {name}") == {"done": f"after {name}"}
    texts = client.call("list_notes")["texts"]
    assert f"after {name}" in texts
    assert f"of {name}" not in texts


@by_name([*READS, *WRITES])
def test_other_sessions_go_on_meanwhile(shared: Place, name: str) -> None:
    one, other = shared.session(), shared.session()
    began = time.monotonic()
    asked = one.ask_tool(name, **({"text": f"beside {name}"} if name in WRITES else {}))
    writing = [other.ask_tool("save_note", text=f"{name} {number}") for number in range(5)]
    reading = [other.ask_tool("list_notes") for _ in range(5)]
    answers = other.answers_to([*writing, *reading])
    assert not any(answer["result"]["isError"] for answer in answers)
    assert time.monotonic() - began < BOUND_S
    assert one.answer_to(asked)["result"]["isError"]
    texts = other.call("list_notes")["texts"]
    assert {f"{name} {number}" for number in range(5)} <= set(texts)
    assert f"beside {name}" not in texts


@on_both
def test_a_short_call_is_not_queued_behind_a_long_one(shared: Place) -> None:
    client = shared.session()
    client.call("list_notes")  # one thread is idle from here on
    long = [client.ask_tool("spin_reading") for _ in range(3)]
    short = client.ask_tool("list_notes")
    order = [client.next()["id"] for _ in range(4)]
    assert order[0] == short
    assert sorted(order[1:]) == long


@on_both
def test_writers_wait_for_a_stuck_one_and_none_is_lost(shared: Place) -> None:
    client = shared.session()
    stuck = [client.ask_tool("spin_writing", text="stuck") for _ in range(3)]
    fine = [client.ask_tool("save_note", text=f"patient {number}") for number in range(20)]
    answers = client.answers_to([*fine, *stuck])
    assert [outcome(answer) for answer in answers[:20]] == [{"done": f"patient {number}"} for number in range(20)]
    assert [error_code(outcome(answer)) for answer in answers[20:]] == ["TIMEOUT"] * 3
    texts = client.call("list_notes")["texts"]
    assert len([text for text in texts if text.startswith("patient")]) == 20
    assert "stuck" not in texts


@on_both
def test_a_thread_that_cannot_be_stopped_is_replaced_and_reported(shared: Place) -> None:
    client = shared.session()
    stuck = [client.ask_tool("sleep_reading") for _ in range(12)]
    stuck.append(client.ask_tool("sleep_writing", text="asleep"))
    began = time.monotonic()
    assert {error_code(outcome(answer)) for answer in client.answers_to(stuck)} == {"TIMEOUT"}
    for number in range(30):
        assert client.call("save_note", text=f"awake {number}")["done"]
        assert "texts" in client.call("list_notes")
    assert time.monotonic() - began < STUCK_S, "nobody waited for the sleepers"
    assert "could not be stopped and is replaced" in shared.servers[0].errors


@pytest.mark.parametrize("shared", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True)
def test_what_a_stuck_thread_does_after_it_was_replaced_counts_for_nothing(shared: Place) -> None:
    client = shared.session()
    assert error_code(client.call("sleep_writing", text="left behind")) == "TIMEOUT"
    deadline = time.monotonic() + STUCK_S - SHORT_S
    # Writes go on while the sleeper wakes up, finds itself replaced and ends.
    count = 0
    while time.monotonic() < deadline:
        assert client.call("save_note", text="meanwhile")["done"]
        count += 1
    texts = client.call("list_notes")["texts"]
    assert not any(text.startswith("left behind") for text in texts)
    assert texts.count("meanwhile") == count


@everywhere
def test_a_cancelled_write_is_stopped_and_undone(client: Client) -> None:
    asked = client.ask_tool("spin_until_cancelled", text="cancelled")
    client.until("notifications/message")
    began = time.monotonic()
    client.notify("notifications/cancelled", requestId=asked)
    assert client.call("save_note", text="next") == {"done": "next"}
    assert time.monotonic() - began < BOUND_S
    assert "cancelled" not in client.call("list_notes")["texts"]
    assert not any(message.get("id") == asked for message in client.seen), "it is never answered"


@on_both
def test_a_session_that_goes_away_stops_what_it_started(shared: Place) -> None:
    client, other = shared.session(), shared.session()
    client.ask_tool("spin_until_cancelled", text="abandoned")
    client.until("notifications/message")
    client.kill()
    began = time.monotonic()
    assert other.call("save_note", text="mine now") == {"done": "mine now"}
    assert time.monotonic() - began < BOUND_S
    assert "abandoned" not in other.call("list_notes")["texts"]


def test_a_handler_that_blocks_the_loop_of_all_sessions_is_ended(place: Place) -> None:
    place.env["STALL_S"] = "0.3"
    server = place.server()
    client, other = place.session(), place.session()
    for name in ("spin_inline", "spin_outside", "spin_later"):
        asked = client.ask_tool(name)
        waiting = other.ask_tool("ping")
        assert error_code(outcome(client.answer_to(asked))) == "TIMEOUT"
        assert outcome(other.answer_to(waiting))["status"] == "pong"
        assert client.call("save_note", text=f"after {name}") == {"done": f"after {name}"}
    assert "its handler is stopped" in server.errors
