"""Issues in a list: pull requests are none, and pages count what is shown."""

from typing import Any

import pytest

from rookery.core.errors import InvalidParams
from tests.domains.github.desk import Desk


async def numbers(desk: Desk, **given: Any) -> tuple[list[int], str | None]:
    told = await desk.call("github_list_issues", **given)
    return [issue["number"] for issue in told["issues"]], told["cursor"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "done"},
        {"limit": 0},
        {"limit": 101},
        {"labels": [""]},
        {"labels": ["x" * 51]},
        {"labels": ["x"] * 21},
        {"labels": 5},
        {"labels": [5]},
    ],
)
async def test_what_makes_no_sense_is_refused_before_anybody_is_asked(desk: Desk, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match=next(iter(wrong))):
        await desk.call("github_list_issues", **wrong)
    assert desk.server.asked == []


async def test_no_issues_are_told_as_such(desk: Desk) -> None:
    result = await desk.result("github_list_issues")
    assert (result.structured, result.text) == ({"issues": [], "cursor": None}, "no issues")


async def test_each_is_shown_with_its_labels(desk: Desk) -> None:
    desk.github.issue("login fails", labels=["bug", "ui"], created_at="2026-01-02T03:04:05Z")
    result = await desk.result("github_list_issues")
    assert result.structured["issues"] == [
        {
            "number": 1,
            "title": "login fails",
            "url": "https://github.example/acme/shop/issues/1",
            "state": "open",
            "author": "robot",
            "labels": ["bug", "ui"],
            "created_at": "2026-01-02T03:04:05Z",
        }
    ]
    assert result.text == (
        "#1 login fails [bug, ui] (open, by robot, 2026-01-02T03:04:05Z)\nhttps://github.example/acme/shop/issues/1"
    )


@pytest.mark.parametrize("labels", [["bug", "ui"], "bug,ui", " bug , ui,"])
async def test_labels_are_a_list_or_a_text_with_commas_and_all_of_them_count(desk: Desk, labels: Any) -> None:
    desk.github.issue(labels=["bug"])
    desk.github.issue(labels=["bug", "ui"])
    assert await numbers(desk, labels=labels) == ([2], None)
    assert (await numbers(desk, labels="bug"))[0] == [2, 1]


async def test_the_state_is_chosen(desk: Desk) -> None:
    desk.github.issue(state="closed")
    desk.github.issue()
    assert (await numbers(desk))[0] == [2]
    assert (await numbers(desk, state="closed"))[0] == [1]
    assert (await numbers(desk, state="all"))[0] == [2, 1]


async def test_pull_requests_are_left_out_and_pages_are_full_all_the_same(desk: Desk) -> None:
    """Two of three entries are pull requests, so a page of ours takes several of GitHub's, and ends within one."""
    for number in range(60):
        desk.github.issue() if number % 3 == 0 else desk.github.pull(f"b{number}")
    seen: list[int] = []
    cursor = None
    for length in (7, 7, 6):
        found, cursor = await numbers(desk, limit=7, cursor=cursor)
        assert len(found) == length
        seen += found
    assert cursor is None
    assert seen == [issue["number"] for issue in reversed(desk.github.shop.issues) if "pull_request" not in issue]


async def test_where_nearly_everything_is_left_out_it_stops_and_says_where(desk: Desk) -> None:
    for number in range(60):
        desk.github.pull(f"b{number}")
    found, cursor = await numbers(desk, limit=2)
    assert (found, cursor) == ([], "11.0.2")
    assert len(desk.asked("GET", "/issues")) == 10
