"""Answers that are none: pages instead of JSON, faults, silence, and redirects to wherever."""

import tracemalloc

import pytest

from rookery.core.errors import Conflict, RookeryError, ServiceUnavailable, TimedOut, ValidationFailed
from rookery.domains.github import client
from rookery.domains.github.answers import has_next, last_page
from rookery.outgoing.client import Answer
from tests.domains.github.desk import Desk
from tests.domains.github.fake_github import Repo
from tests.domains.github.fake_server import BROKEN, SILENT, Asked, Said, serving

HTML = {"Content-Type": "text/html; charset=utf-8"}


@pytest.mark.parametrize(
    "said",
    [
        Said(200, b"<!DOCTYPE html><title>Sign in</title>", HTML),
        Said(200, b"", HTML),
        Said(200, b"[1, 2"),
        Said(200, b"[]"),
        Said(200, b"[" * 100_000),
        Said(200, b'"x"'),
    ],
)
async def test_what_is_not_the_json_that_was_asked_for_is_told_and_where_to_look(desk: Desk, said: Said) -> None:
    desk.server.fail(said)
    with pytest.raises(ServiceUnavailable, match="not the expected JSON") as caught:
        await desk.call("github_repo_info")
    assert "GITHUB_API_URL" in (caught.value.hint or "")


async def test_an_object_where_a_list_was_expected_is_no_list(desk: Desk) -> None:
    for tool in ("github_list_prs", "github_list_issues"):
        desk.server.fail(Said(200, {"message": "hm"}))
        with pytest.raises(ServiceUnavailable, match="not the expected JSON"):
            await desk.call(tool)


@pytest.mark.parametrize("chunked", [False, True])
async def test_an_answer_of_half_a_gigabyte_is_cut_off_and_never_held(desk: Desk, chunked: bool) -> None:
    await desk.call("github_repo_info")
    desk.server.fail(Said(200, flood=500_000_000, chunked=chunked))
    tracemalloc.start()
    try:
        with pytest.raises(ValidationFailed, match=r"GitHub: .* more than 8388608 bytes"):
            await desk.call("github_list_issues")
        assert tracemalloc.get_traced_memory()[1] < 4 * client.MAX_ANSWER
    finally:
        tracemalloc.stop()
    assert desk.server.flooded < 32 * 1024 * 1024, "we hung up"


async def test_a_list_of_many_long_pages_is_cut_off_as_well(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_PAGED", 5000)
    number = desk.github.pull()
    desk.server.fail(Said(406, {"message": "too long"}), part=f"/pulls/{number}")
    desk.github.shop.files[number] = [{"filename": f"f{place}", "patch": "+x"} for place in range(950)]
    told = await desk.call("github_get_pr_diff", pr_number=number)
    assert len(desk.asked("GET", "/files")) == 2
    assert told["diff"].endswith("(the diff is cut here, after 200 files: the pull request changes more)\n")


def test_links_of_any_length_are_read_at_once() -> None:
    for text in ("<>;" * 30_000, "<" + "?page=1&" * 12_000, "<?page=2>;" + "x" * 90_000 + 'rel="prev"'):
        answer = Answer(200, {"link": text}, b"")
        assert (has_next(answer), last_page(answer)) == (False, 1)
    links = (
        '<https://x/a?page=1&per_page=5>; rel="prev", <https://x/a?per_page=5&page=3>; rel=next, <?page=9>; rel="last"'
    )
    answer = Answer(200, {"link": links}, b"")
    assert (has_next(answer), last_page(answer)) == (True, 9)


@pytest.mark.parametrize("said", [Said(500, b"<html>"), Said(502), Said(503, {"message": "down"}), BROKEN])
async def test_a_question_is_asked_three_times_and_then_given_up(desk: Desk, said: Said) -> None:
    desk.server.fail(said, times=2)
    assert (await desk.call("github_repo_info"))["name"] == "shop"
    desk.server.fail(said, times=9)
    with pytest.raises(ServiceUnavailable) as caught:
        await desk.call("github_repo_info")
    assert caught.value.retryable
    assert len(desk.server.asked) == 6


@pytest.mark.parametrize("status", [400, 418, 501])
async def test_any_other_refusal_is_some_error_of_ours(desk: Desk, status: int) -> None:
    desk.server.fail(Said(status, {"message": "no"}), times=9)
    with pytest.raises(RookeryError, match=r"no\b"):
        await desk.call("github_repo_info")


async def test_silence_is_not_waited_for_for_ever(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "REQUEST_S", 0.2)
    desk.server.fail(SILENT, times=2)
    assert (await desk.call("github_repo_info"))["name"] == "shop"
    desk.server.fail(SILENT, times=3)
    with pytest.raises(TimedOut, match=r"GitHub: .* did not answer within"):
        await desk.call("github_repo_info")


async def test_nobody_there_is_told(desk: Desk) -> None:
    async with serving(desk.github.answer) as other:
        gone = desk.with_settings(github_api_url=other.url)
    with pytest.raises(ServiceUnavailable, match=r"GitHub: .* could not be reached"):
        await gone.call("github_repo_info")


async def test_a_redirect_to_another_host_is_not_followed(desk: Desk) -> None:
    asked: list[Asked] = []

    def listen(request: Asked) -> Said:
        asked.append(request)
        return Said(200, {})

    desk.github.moved["acme/shop"] = "octo/shop"
    async with serving(listen) as other:
        for place in (
            other.url,
            other.url.replace("127.0.0.1", "localhost"),
            "https://github.example",
            "//x",
            "http://[",
        ):
            desk.server.fail(Said(302, None, {"Location": f"{place}/x"}))
            with pytest.raises(ValidationFailed, match="to another host, which is not followed"):
                await desk.call("github_repo_info")
        desk.github.elsewhere = other.url
        with pytest.raises((ValidationFailed, Conflict)):
            await desk.call("github_create_issue", title="x")
    assert asked == []


async def test_what_has_moved_is_found_by_who_looks(desk: Desk) -> None:
    desk.github.repos["octo/shop"] = Repo("octo/shop")
    desk.github.moved["acme/shop"] = "octo/shop"
    assert (await desk.call("github_repo_info"))["owner"] == "octo"
    assert (await desk.call("github_list_issues"))["issues"] == []


async def test_what_has_moved_is_not_changed_under_its_old_name(desk: Desk) -> None:
    """Whoever gave the name, and whoever allowed it, meant what was there then."""
    desk.github.repos["octo/shop"] = Repo("octo/shop")
    desk.github.moved["acme/shop"] = "octo/shop"
    with pytest.raises(Conflict, match="has moved on GitHub to octo/shop"):
        await desk.call("github_create_issue", title="x")
    held = desk.with_settings(github_allow=("acme", "robot"))
    for tool, more in (("github_repo_info", {}), ("github_create_issue", {"title": "x"}), ("github_fork_repo", {})):
        with pytest.raises(Conflict, match="has moved on GitHub"):
            await held.call(tool, **more)
    assert [issue for repo in desk.github.repos.values() for issue in repo.issues] == []


@pytest.mark.parametrize("location", ["/repos/octo/shop", "{here}/repos/octo/shop"])
async def test_a_redirect_within_the_host_is_followed_also_if_it_names_none(desk: Desk, location: str) -> None:
    desk.github.repos["octo/shop"] = Repo("octo/shop")
    desk.server.fail(Said(302, None, {"Location": location.format(here=desk.server.url)}))
    assert (await desk.call("github_repo_info"))["owner"] == "octo"
    desk.server.fail(Said(302))
    with pytest.raises(ServiceUnavailable, match="answered 302"):
        await desk.call("github_repo_info")


async def test_redirects_that_go_round_in_circles_end(desk: Desk) -> None:
    desk.server.fail(Said(301, None, {"Location": f"{desk.server.url}/repos/acme/shop"}), times=50)
    with pytest.raises(ServiceUnavailable, match="answered 301"):
        await desk.call("github_repo_info")
    assert len(desk.server.asked) == 4


async def test_an_address_of_the_internet_must_be_reached_by_its_own_name(desk: Desk, nowhere_else: list[str]) -> None:
    """The proof that the watch over connections of these tests works."""
    away = desk.with_settings(github_api_url="https://192.0.2.7/api/v3")
    with pytest.raises((ServiceUnavailable, ValidationFailed)):
        await away.call("github_repo_info")
    assert set(nowhere_else) == {"192.0.2.7:443"}
    nowhere_else.clear()
