"""A fault in a handler costs its call and nothing else, and its caller learns nothing of the inside."""

import json
import sqlite3
from typing import Any

import pytest

from tests.server.conftest import Place
from tests.server.processes import Client, error_code
from tests.server.trials import SECRET

FAILING = ["fail_inline", "fail_reading", "fail_outside", "fail_in_database"]
EXITING = ["exit_inline", "exit_reading", "exit_outside"]


def is_sealed(answer: dict[str, Any]) -> bool:
    """Whether the answer is a failed call that tells nothing of the inside."""
    text = json.dumps(answer)
    assert answer["result"]["isError"] is True
    assert answer["result"]["_meta"]["rookery/error"]["code"] == "INTERNAL_ERROR"
    return not any(word in text for word in (SECRET, "Traceback", "ValueError", ".py", "no_such_table"))


@pytest.mark.parametrize("name", [*FAILING, *EXITING])
def test_an_exception_is_an_error_without_its_message(client: Client, name: str) -> None:
    assert is_sealed(client.request("tools/call", name=name, arguments={}))
    assert client.call("ping")["status"] == "pong"
    assert client.call("save_note", text=f"after {name}") == {"done": f"after {name}"}


def test_the_newest_revision_is_told_no_more(shared: Place) -> None:
    client = shared.client().be_modern()
    for name in (*FAILING, *EXITING):
        assert is_sealed(client.request("tools/call", name=name, arguments={}))
        assert client.call("ping")["status"] == "pong"


@pytest.mark.parametrize("name", ["fail_writing", "exit_writing", "save_and_fail"])
def test_what_a_failing_handler_wrote_is_undone(client: Client, name: str) -> None:
    assert is_sealed(client.request("tools/call", name=name, arguments={"text": f"from {name}"}))
    assert f"from {name}" not in client.call("list_notes")["texts"]
    assert client.call("save_note", text=f"after {name}") == {"done": f"after {name}"}


def test_many_exits_use_up_no_thread(client: Client) -> None:
    asked = [client.ask_tool("exit_reading") for _ in range(40)]
    assert all(is_sealed(answer) for answer in client.answers_to(asked))
    assert "texts" in client.call("list_notes")


def test_a_nested_call_commits_with_the_outer_one(client: Client) -> None:
    assert client.call("save_two", text="pair") == {"done": "pair"}
    assert {"pair 1", "pair 2"} <= set(client.call("list_notes")["texts"])


def test_a_print_does_not_get_between_the_messages(client: Client) -> None:
    assert client.call("print_text") == {"done": "printed"}
    assert client.seen == []


def test_the_log_names_the_request_that_failed(shared: Place) -> None:
    hint = shared.session().call("fail_reading")["error"]["hint"]
    request = hint.rpartition(" ")[2]
    lines = [json.loads(line) for line in shared.servers[0].errors.splitlines()]
    logged = next(line for line in lines if line.get("request") == request)
    assert "in fail_reading" in logged["traceback"]
    assert SECRET not in shared.servers[0].errors, "what an exception says may be what the caller sent"
    assert logged["session"].startswith("ses-")


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_database_that_breaks_under_a_session_is_told_in_our_words(place: Place, era: str) -> None:
    place.server()
    client = place.client().be_modern() if era == "modern" else place.session()
    assert client.call("ping")["status"] == "pong"
    # Whatever another program does to the file: here it takes the table that every call looks at.
    with sqlite3.connect(place.home / "rookery.db") as database:
        database.execute("DROP TABLE epochs")
    database.close()
    for method, params in (("tools/list", {}), ("tools/call", {"name": "ping"})):
        answer = client.request(method, **params)
        assert not any(word in json.dumps(answer) for word in ("Traceback", "SELECT", "sqlalche", "sqlite3"))
        error = answer["error"]["data"] if "error" in answer else answer["result"]["_meta"]["rookery/error"]
        assert error["code"] in ("DATABASE_ERROR", "INTERNAL_ERROR")
    with sqlite3.connect(place.home / "rookery.db") as database:
        database.execute("CREATE TABLE epochs (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL)")
    database.close()
    assert client.call("ping")["status"] == "pong"
    assert error_code(client.call("nothing_of_this_name")) == "NOT_FOUND"
