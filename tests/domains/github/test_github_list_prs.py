"""Pull requests in a list: in pages, with how much each changes, and whatever they are called harmless."""

import time
from typing import Any

import pytest

from rookery.core.errors import InvalidParams, NotFound
from rookery.domains.github import tools
from tests.domains.github.desk import Desk
from tests.domains.github.fake_server import SILENT, Said


async def numbers(desk: Desk, **given: Any) -> tuple[list[int], str | None]:
    told = await desk.call("github_list_prs", **given)
    return [pull["number"] for pull in told["prs"]], told["cursor"]


@pytest.mark.parametrize(
    "wrong",
    [{"state": "merged"}, {"limit": 0}, {"limit": 101}, {"limit": True}, {"cursor": "x" * 51}, {"page": 2}],
)
async def test_what_makes_no_sense_is_refused_before_anybody_is_asked(desk: Desk, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match=next(iter(wrong))):
        await desk.call("github_list_prs", **wrong)
    assert desk.server.asked == []


@pytest.mark.parametrize(
    "cursor", ["", "1", "0.0.10", "1.10.10", "1.0.101", "1.0.0", "-1.0.10", "1.0.10&x=1", "٣.0.10"]
)
async def test_a_cursor_of_somebody_else_is_refused(desk: Desk, cursor: str) -> None:
    with pytest.raises(InvalidParams, match="cursor"):
        await desk.call("github_list_prs", cursor=cursor)


async def test_a_repository_that_is_not_there_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await desk.call("github_list_prs", repo="acme/till")


async def test_no_pull_requests_are_told_as_such(desk: Desk) -> None:
    result = await desk.result("github_list_prs")
    assert result.structured == {"prs": [], "cursor": None}
    assert result.text == "no pull requests"


async def test_each_is_shown_with_its_size_and_where_it_is(desk: Desk) -> None:
    desk.github.pull("fix", title="Mend\x1b[31m the\nlogin \u202e", created_at="2026-01-02T03:04:05Z", draft=True)
    result = await desk.result("github_list_prs")
    assert result.structured["prs"] == [
        {
            "number": 1,
            "title": "Mend [31m the login",
            "url": "https://github.example/acme/shop/pull/1",
            "author": "acme",
            "state": "open",
            "draft": True,
            "head": "fix",
            "base": "main",
            "created_at": "2026-01-02T03:04:05Z",
            "additions": 3,
            "deletions": 1,
            "changed_files": 2,
        }
    ]
    assert result.text == (
        "#1 Mend [31m the login (by acme, +3/-1, 2 files) [draft, open, fix -> main, 2026-01-02T03:04:05Z]\n"
        "https://github.example/acme/shop/pull/1"
    )


async def test_the_list_comes_although_a_size_does_not(desk: Desk) -> None:
    desk.github.pull("fix")
    desk.server.fail(Said(500, b"<html>"), part="/pulls/1", times=3)
    (pull,) = (await desk.call("github_list_prs"))["prs"]
    assert pull["number"] == 1
    assert "additions" not in pull


async def test_the_list_comes_in_time_although_a_size_does_not(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for branch in ("fix", "more"):
        desk.github.pull(branch)
    desk.server.fail(SILENT, part="/pulls/1", times=9)
    monkeypatch.setattr(tools, "SIZES_S", 1.0)
    begun = time.monotonic()
    second, first = (await desk.call("github_list_prs"))["prs"]
    assert time.monotonic() - begun < 15
    assert (second["additions"], "additions" in first) == (3, False)


async def test_the_state_is_chosen_and_open_unless_said(desk: Desk) -> None:
    desk.github.pull("a", state="closed", merged_at="2026-01-01T00:00:00Z")
    desk.github.pull("b", state="closed")
    desk.github.pull("c")
    assert (await numbers(desk))[0] == [3]
    assert (await numbers(desk, state="closed"))[0] == [2, 1]
    told = await desk.call("github_list_prs", state="ALL")
    assert [pull["state"] for pull in told["prs"]] == ["open", "closed", "merged"]


async def test_pages_follow_each_other_without_gap_or_repetition(desk: Desk) -> None:
    for number in range(25):
        desk.github.pull(f"b{number}")
    seen: list[int] = []
    cursor = None
    for length in (10, 10, 5):
        found, cursor = await numbers(desk, cursor=cursor)
        assert len(found) == length
        seen += found
    assert seen == list(range(25, 0, -1))
    assert cursor is None
    result = await desk.result("github_list_prs", limit=3)
    assert result.text.endswith("\n(more: call again with cursor=2.0.3)")


async def test_what_lacks_everything_is_still_shown(desk: Desk) -> None:
    strange = {"number": "seven", "user": None, "labels": 5, "head": [], "title": 3}
    desk.server.fail(Said(200, [strange, "x", None]), part="/pulls")
    (pull,) = (await desk.call("github_list_prs"))["prs"]
    assert (pull["number"], pull["author"], pull["title"]) == (None, "", "")
