"""One search: who is refused, what is sent, what comes back, and what is said when nothing does."""

import logging
from typing import Any

import pytest

from rookery.core.errors import ConfigurationError, InvalidParams, NotFound, PermissionDenied, ValidationFailed
from rookery.domains.research import searching
from tests.domains.research.desk import Desk
from tests.domains.research.fake_brave import KEY, PATH, Said, page

SEARCH = "web_search"


async def test_whoever_may_not_search_asks_nobody(desk: Desk) -> None:
    with pytest.raises(PermissionDenied):
        await desk.call(SEARCH, desk.fleet.actor(profile="judge"), query="rooks")
    await desk.fleet.call(desk.fleet.owner, "update_agent", agent="default", permissions=["ping"])
    with pytest.raises(PermissionDenied):
        await desk.call(SEARCH, query="rooks")
    assert desk.brave.asked == []


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"query": ""},
        {"query": " \n\t "},
        {"query": "x" * 401},
        {"query": ["rooks"]},
        {"query": "rooks", "freshness": "yesterday"},
        {"query": "rooks", "freshness": ""},
        {"query": "rooks", "count": "many"},
        {"query": "rooks", "count": True},
        {"query": "rooks", "count": float("nan")},
        {"query": "rooks", "safe": "off"},
    ],
)
async def test_what_makes_no_sense_is_refused_before_anybody_is_asked(desk: Desk, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await desk.call(SEARCH, **wrong)
    assert desk.brave.asked == []


async def test_more_words_than_brave_takes_are_refused_here(desk: Desk) -> None:
    with pytest.raises(ValidationFailed, match="at most 50 words"):
        await desk.call(SEARCH, query="a " * 51)
    assert desk.brave.asked == []


async def test_without_a_key_nothing_is_found_and_it_is_said_what_to_set(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    keyless = desk.with_settings(search_api_key="")
    with caplog.at_level(logging.WARNING, "rookery.research"):
        result = await keyless.result(SEARCH, query="rooks")
    assert result.structured["results"] == []
    assert "search_api_key (BRAVE_SEARCH_API_KEY)" in result.text
    assert "no key" in caplog.text
    assert len(keyless.client.statuses) == 2
    assert desk.brave.asked == []


async def test_a_tool_without_its_key_is_hidden_where_the_owner_wants_that(desk: Desk) -> None:
    assert SEARCH in desk.fleet.names(desk.agent)
    hiding = desk.with_settings(search_api_key="", search_url="", hide_unavailable=True)
    assert SEARCH not in hiding.fleet.names(hiding.agent)
    with pytest.raises(NotFound):
        await hiding.call(SEARCH, query="rooks")
    keyed = desk.with_settings(hide_unavailable=True)
    assert SEARCH in keyed.fleet.names(keyed.agent)


async def test_the_request_is_the_one_that_brave_documents(desk: Desk) -> None:
    desk.brave.find("Rooks")
    await desk.call(SEARCH, query="  rooks &  crows ", freshness="pw")
    (asked,) = desk.brave.asked
    assert asked.path == PATH
    assert asked.query == {"q": "rooks & crows", "count": "5", "freshness": "pw"}
    sent = {name: asked.headers[name] for name in ("accept", "accept-encoding", "x-subscription-token")}
    assert sent == {"accept": "application/json", "accept-encoding": "gzip", "x-subscription-token": KEY}


async def test_results_come_in_order_and_in_plain_text(desk: Desk) -> None:
    desk.brave.pages = [page("Rooks", description="<strong>Rooks</strong> &amp; crows"), page("Crows", age=None)]
    result = await desk.result(SEARCH, query="rooks")
    assert result.structured == {
        "query": "rooks",
        "results": [
            {
                "title": "Rooks",
                "url": "https://rooks.example/page",
                "description": "Rooks & crows",
                "age": "2 days ago",
            },
            {
                "title": "Crows",
                "url": "https://crows.example/page",
                "description": "About Crows & more",
                "age": None,
            },
        ],
        "note": None,
    }
    assert result.text.startswith(
        "1. **Rooks** (2 days ago)\n   https://rooks.example/page\n   Rooks & crows\n\n2. **Crows**\n"
    )
    assert "not instructions" in result.text
    assert desk.client.statuses == ['searching the web for "rooks"', "2 results found"]


@pytest.mark.parametrize(
    ("count", "asked"), [(None, "5"), (0, "1"), (-3, "1"), (1, "1"), (7.9, "7"), (20, "20"), (1e9, "20")]
)
async def test_the_count_is_brought_into_its_range(desk: Desk, count: float | None, asked: str) -> None:
    desk.brave.find(*(f"Page {number}" for number in range(30)))
    found = await desk.call(SEARCH, query="rooks", **({} if count is None else {"count": count}))
    assert desk.brave.asked[0].query["count"] == asked
    assert len(found["results"]) == int(asked)


async def test_no_more_results_are_read_than_are_wanted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    def found(hit: Any) -> searching.Found:
        read.append(hit)
        return searching.Found("Rooks", "https://rooks.example", "", None)

    monkeypatch.setattr(searching, "_found", found)
    desk.brave.fail(Said(200, {"web": {"results": [page(f"Page {number}") for number in range(3000)]}}))
    assert len((await desk.call(SEARCH, query="rooks"))["results"]) == len(read) == 5


async def test_nothing_found_is_no_error(desk: Desk) -> None:
    result = await desk.result(SEARCH, query="rooks")
    assert (result.structured["results"], result.text) == ([], "No results.")


async def test_results_that_lead_nowhere_are_left_out(desk: Desk) -> None:
    wrong: list[Any] = ["javascript:alert(1)", "ftp://a.example", "https://", None, 7, "https://u:p@a.example/"]
    desk.brave.pages = [page("Wrong") | {"url": url} for url in wrong] + [page("Right")]
    found = await desk.call(SEARCH, query="rooks", count=20)
    assert [each["title"] for each in found["results"]] == ["Right"]


async def test_both_names_and_both_databases_answer_alike(desk: Desk) -> None:
    desk.brave.find("Rooks")
    assert await desk.call("corvid_web_search", query="rooks") == await desk.call(SEARCH, query="rooks")


async def test_without_an_address_of_the_owner_only_brave_itself_is_asked(desk: Desk, nowhere_else: list[str]) -> None:
    usual = desk.with_settings(search_url="")
    with pytest.raises(Exception, match="Brave: the host's name leads nowhere"):
        await usual.call(SEARCH, query="rooks")
    assert set(nowhere_else) == {"api.search.brave.com"}
    nowhere_else.clear()
    assert desk.brave.asked == []


async def test_an_engine_that_is_not_there_is_named_with_those_that_are(desk: Desk) -> None:
    other = desk.with_settings(search_engine="altavista")
    with pytest.raises(ConfigurationError, match="altavista") as caught:
        await other.call(SEARCH, query="rooks")
    assert "brave" in (caught.value.hint or "")
