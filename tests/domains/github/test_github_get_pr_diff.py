"""Diffs: whole if they are short, in pages if not, and from the files where GitHub gives no diff."""

import pytest

from rookery.core.errors import Conflict, InvalidParams, NotFound, ServiceUnavailable, ValidationFailed
from rookery.domains.github import client, joined
from rookery.domains.github.diffs import PAGE_CHARACTERS
from tests.domains.github.desk import Desk
from tests.domains.github.fake_server import Said

SMALL = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
HALF_A_GIGABYTE = 500_000_000


@pytest.mark.parametrize("number", [0, -1, True, "x", 2**31 + 1, 1.5])
async def test_what_is_no_number_is_refused(desk: Desk, number: object) -> None:
    with pytest.raises(InvalidParams, match="pr_number"):
        await desk.call("github_get_pr_diff", pr_number=number)
    assert desk.server.asked == []


async def test_an_issue_and_nothing_at_all_have_no_diff(desk: Desk) -> None:
    for number in (desk.github.issue(), 99):
        with pytest.raises(NotFound, match=f"no pull request {number} of acme/shop"):
            await desk.call("github_get_pr_diff", pr_number=number)


async def test_an_answer_of_half_a_gigabyte_is_cut_off(desk: Desk) -> None:
    number = desk.github.pull()
    desk.server.fail(Said(200, flood=HALF_A_GIGABYTE, headers={"Content-Type": "application/vnd.github.diff"}))
    with pytest.raises(ValidationFailed, match="more than 8388608 bytes") as caught:
        await desk.call("github_get_pr_diff", pr_number=number)
    assert "with git" in (caught.value.hint or "")
    assert desk.server.flooded < 32 * 1024 * 1024


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/json"])
async def test_a_page_instead_of_a_diff_is_no_diff(desk: Desk, kind: str) -> None:
    number = desk.github.pull()
    desk.server.fail(Said(200, b"<html>sign in</html>", {"Content-Type": kind}))
    with pytest.raises(ServiceUnavailable, match="instead of a diff") as caught:
        await desk.call("github_get_pr_diff", pr_number=number)
    assert "api/v3" in (caught.value.hint or "")


async def test_an_empty_diff_is_told_as_such(desk: Desk) -> None:
    result = await desk.result("github_get_pr_diff", pr_number=desk.github.pull())
    assert result.structured == {"diff": "", "cursor": None, "characters": 0}
    assert result.text == "the diff is empty"


async def test_a_short_diff_comes_whole_and_as_it_is(desk: Desk) -> None:
    number = desk.github.pull()
    desk.github.shop.diffs[number] = SMALL
    result = await desk.result("github_get_pr_diff", pr_number=number)
    assert result.text == SMALL.decode()
    assert result.structured == {"diff": SMALL.decode(), "cursor": None, "characters": len(SMALL)}


async def test_lines_in_another_encoding_do_not_spoil_the_rest(desk: Desk) -> None:
    number = desk.github.pull()
    desk.github.shop.diffs[number] = SMALL + "+café\n".encode("latin-1") + "+日本\n".encode() + b"+\x00\n"
    told = await desk.call("github_get_pr_diff", pr_number=number)
    assert told["diff"].endswith("+caf\ufffd\n+日本\n+\x00\n")


async def test_a_long_diff_comes_in_pages_that_make_up_the_whole(desk: Desk) -> None:
    number = desk.github.pull()
    whole = "".join(f"diff --git a/{n} b/{n}\n" + "+line\n" * 700 for n in range(40))
    desk.github.shop.diffs[number] = whole.encode()
    parts: list[str] = []
    told = {"cursor": None}
    while told["cursor"] is not None or not parts:
        told = await desk.call("github_get_pr_diff", pr_number=number, cursor=told["cursor"])
        parts.append(told["diff"])
        assert len(told["diff"]) <= PAGE_CHARACTERS
    assert len(parts) > 2
    assert "".join(parts) == whole
    assert all(part.startswith("diff --git ") for part in parts)


async def test_a_diff_that_changed_meanwhile_is_read_from_the_start(desk: Desk) -> None:
    number = desk.github.pull()
    desk.github.shop.diffs[number] = b"+a\n" * 20_000
    cursor = (await desk.call("github_get_pr_diff", pr_number=number))["cursor"]
    desk.github.shop.diffs[number] = b"+b\n" * 20_000
    with pytest.raises(Conflict, match="has changed since"):
        await desk.call("github_get_pr_diff", pr_number=number, cursor=cursor)
    for wrong in ("", "5", "5.xyz", "-5.0123456789ab"):
        with pytest.raises(InvalidParams, match="cursor"):
            await desk.call("github_get_pr_diff", pr_number=number, cursor=wrong)


async def test_what_is_too_long_for_github_is_put_together_from_the_files(desk: Desk) -> None:
    number = desk.github.pull()
    files = [{"filename": f"f{n}", "status": "modified", "patch": "@@ -1 +1 @@\n-a\n+b"} for n in range(150)]
    files += [
        {"filename": "new", "status": "added", "patch": "@@ -0,0 +1 @@\n+b"},
        {"filename": "old", "status": "removed", "patch": "@@ -1 +0,0 @@\n-b"},
        {"filename": "b.png", "previous_filename": "a.png", "status": "renamed", "additions": 0, "deletions": 0},
    ]
    desk.github.shop.files[number] = files
    diff = (await desk.call("github_get_pr_diff", pr_number=number))["diff"]
    assert diff.count("diff --git ") == 153
    assert "diff --git a/f149 b/f149\n--- a/f149\n+++ b/f149\n@@ -1 +1 @@\n-a\n+b\n" in diff
    assert "new file\n--- /dev/null\n+++ b/new\n" in diff
    assert "deleted file\n--- a/old\n+++ /dev/null\n" in diff
    assert diff.endswith("rename from a.png\nrename to b.png\n(GitHub shows no lines of this file: +0/-0)\n")
    assert len(desk.asked("GET", "/files")) == 2


@pytest.mark.parametrize(("files", "cut"), [(200, False), (201, True)])
async def test_a_diff_of_too_many_files_says_that_it_is_cut(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, files: int, cut: bool
) -> None:
    monkeypatch.setattr(client, "MAX_PAGES", 2)
    number = desk.github.pull()
    desk.github.shop.files[number] = [{"filename": f"f{n}", "status": "modified", "patch": "+b"} for n in range(files)]
    diff = (await desk.call("github_get_pr_diff", pr_number=number))["diff"]
    assert diff.count("diff --git ") == 200
    assert diff.endswith("(the diff is cut here, after 200 files: the pull request changes more)\n") is cut


async def test_the_files_of_a_long_diff_are_asked_for_once_for_all_its_pages(desk: Desk) -> None:
    joined._KEPT.clear()
    number = desk.github.pull()
    (pull,) = desk.github.shop.pulls
    pull["head"] |= {"sha": "a" * 40}
    pull["base"] |= {"sha": "b" * 40}
    lines = "+line\n" * 9000
    desk.github.shop.files[number] = [{"filename": "f", "status": "modified", "patch": lines}]
    told = await desk.call("github_get_pr_diff", pr_number=number)
    assert (await desk.call("github_get_pr_diff", pr_number=number, cursor=told["cursor"]))["cursor"] is None
    assert len(desk.asked("GET", "/files")) == 1
    await desk.call("github_get_pr_diff", desk.stranger, pr_number=number)
    assert len(desk.asked("GET", "/files")) == 2, "another tenant has its own"
    pull["head"]["sha"] = "c" * 40
    desk.github.shop.files[number][0]["patch"] = lines.upper()
    with pytest.raises(Conflict, match="has changed since"):
        await desk.call("github_get_pr_diff", pr_number=number, cursor=told["cursor"])
    assert len(joined._KEPT) == 3


async def test_only_a_few_long_diffs_are_kept(desk: Desk) -> None:
    for _ in range(joined.MAX_KEPT + 2):
        number = desk.github.pull(f"b{len(desk.github.shop.pulls)}")
        desk.github.shop.pulls[-1]["head"] |= {"sha": "a" * 40}
        desk.github.shop.pulls[-1]["base"] |= {"sha": "b" * 40}
        desk.github.shop.files[number] = [{"filename": "f", "status": "modified", "patch": "+b"}]
        await desk.call("github_get_pr_diff", pr_number=number)
    assert len(joined._KEPT) == joined.MAX_KEPT
