"""Lists that do not fit on one page: every entry comes once, and a cursor is good for its own list only."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rookery.core.pages import encode_cursor
from rookery.server.listing import PAGE
from tests.server.conftest import Place
from tests.server.feature_place import ERAS, connect
from tests.server.many_trials import MANY
from tests.server.processes import Client

LISTS = {
    "tools/list": ("tools", "count_"),
    "prompts/list": ("prompts", "ask_"),
    "resources/list": ("resources", "number_"),
    "resources/templates/list": ("resourceTemplates", "read_"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("many")
    described = folder / "rookery_many-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: rookery-many\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[rookery.domains]\nmany = tests.server.many_trials\n")
    place = Place(folder)
    try:
        place.server()
        yield place
    finally:
        place.close()


@pytest.fixture(scope="module", params=ERAS)
def client(request: pytest.FixtureRequest, place: Place) -> Client:
    return connect(place, request.param)


def pages(client: Client, method: str) -> list[list[str]]:
    found: list[list[str]] = []
    cursor: dict[str, Any] = {}
    while len(found) < 20:
        result = client.request(method, **cursor)["result"]
        found.append([each["name"] for each in result[LISTS[method][0]]])
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}
    raise AssertionError("a list without end")


@pytest.mark.parametrize("method", LISTS)
def test_every_entry_comes_once_and_in_the_same_order(client: Client, method: str) -> None:
    found = pages(client, method)
    names = [name for page in found for name in page]
    own = [name for name in names if name.startswith(LISTS[method][1])]
    assert len(own) == len(set(own)) == MANY
    assert len(names) == len(set(names))
    assert own == sorted(own)
    assert [len(page) for page in found[:-1]] == [PAGE] * (len(found) - 1)
    assert len(found) == -(-len(names) // PAGE) > 2
    assert pages(client, method) == found


@pytest.mark.parametrize("method", LISTS)
def test_a_cursor_that_is_not_ours_is_refused(client: Client, method: str) -> None:
    other = next(each for each in LISTS if each != method)
    foreign = client.request(other)["result"]["nextCursor"]
    for cursor in (foreign, "", "x", "eyJhZnRlciI6IDF9", encode_cursor("ping"), foreign[:-3], "\u00fc", "A" * 5000):
        error = client.request(method, cursor=cursor)["error"]
        assert error["code"] == -32602
        assert "cursor" in error["message"]
    assert "result" in client.request(method)


def test_what_is_on_a_later_page_can_be_used(client: Client) -> None:
    last = f"{MANY - 1:03d}"
    assert client.call(f"count_{last}") == {"number": MANY - 1}
    assert client.request("resources/read", uri=f"number://{last}")["result"]["contents"][0]["text"] == str(MANY - 1)
    assert client.request("resources/read", uri=f"many-{last}://7")["result"]["contents"][0]["text"] == "7"
    message = client.request("prompts/get", name=f"ask_{last}")["result"]["messages"][0]
    assert message["content"]["text"] == str(MANY - 1)


def test_a_cursor_may_outlive_the_entry_it_names(client: Client) -> None:
    cursor = encode_cursor("tools count_0005")
    result = client.request("tools/list", cursor=cursor)["result"]
    assert result["tools"][0]["name"] == "count_001"
