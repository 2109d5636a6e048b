"""Lines of log for the client: the level of its session, or of its request from 2026-07-28 on."""

from typing import Any

import pytest

from rookery.core.context import LOG_LEVELS
from tests.server.conftest import Place
from tests.server.feature_place import connect
from tests.server.feature_place import feature_plugin as feature_plugin
from tests.server.processes import Client

LEVELS = list(LOG_LEVELS)
NAMES = ["log_outside", "log_in_thread"]
OPT_IN = "io.modelcontextprotocol/logLevel"


@pytest.fixture(scope="module")
def place(feature_plugin: Any) -> Any:
    place = Place(feature_plugin)
    try:
        place.server()
        yield place
    finally:
        place.close()


def heard(client: Client, name: str, **meta: Any) -> list[str]:
    """The levels of which a call that logs a line of each is heard."""
    client.seen.clear()
    more = {"_meta": meta} if meta else {}
    answer = client.request("tools/call", name=name, arguments={"levels": LEVELS}, **more)
    assert answer["result"]["structuredContent"] == {"said": "logged"}
    lines = [each["params"] for each in client.seen if each["method"] == "notifications/message"]
    assert len(lines) == len(client.seen)
    for line in lines:
        assert (line["data"], line["logger"]) == (f"a line of {line['level']}", "trials")
    return [line["level"] for line in lines]


@pytest.mark.parametrize("name", NAMES)
def test_a_session_sets_its_own_level(place: Place, name: str) -> None:
    client, other = connect(place, "2025-11-25"), connect(place, "2025-11-25")
    assert heard(client, name) == LEVELS[LEVELS.index("info") :], "before it has said anything"
    for level in LEVELS:
        assert client.request("logging/setLevel", level=level)["result"] == {}
        assert heard(client, name) == LEVELS[LEVELS.index(level) :]
    assert heard(other, name) == LEVELS[LEVELS.index("info") :]


def test_a_level_that_is_none_is_refused(place: Place) -> None:
    client = connect(place, "2025-11-25")
    assert client.request("logging/setLevel", level="loud")["error"]["code"] == -32602
    assert client.request("logging/setLevel")["error"]["code"] == -32602
    assert heard(client, "log_outside") == LEVELS[LEVELS.index("info") :]


@pytest.mark.parametrize("name", NAMES)
def test_from_2026_on_a_request_asks_for_what_it_wants_to_hear(place: Place, name: str) -> None:
    client = connect(place, "2026-07-28")
    assert heard(client, name) == []
    for level in LEVELS:
        assert heard(client, name, **{OPT_IN: level}) == LEVELS[LEVELS.index(level) :]
    assert heard(client, name) == [], "one request's wish is not another's"
    assert client.request("logging/setLevel", level="debug")["error"]["code"] == -32601


def test_logging_is_advertised(place: Place) -> None:
    assert "logging" in place.client().initialize()["result"]["capabilities"]
