"""Pull requests: one for a branch, found again where an answer got lost."""

from typing import Any

import pytest

from rookery.core.errors import Conflict, InvalidParams, PermissionDenied, ServiceUnavailable, ValidationFailed
from tests.domains.github.desk import Desk
from tests.domains.github.fake_server import BROKEN, Said


async def create(desk: Desk, **given: Any) -> dict[str, Any]:
    return await desk.call("github_create_pr", **{"title": "Mend it", "body": "So.", "head": "fix", **given})


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": ""},
        {"body": None},
        {"body": "x" * 65_001},
        *({"head": head} for head in ("", "a b", "a..b", "a~1", "a^", "a:b:c", "-x", "a\x00", "a\\b", "x" * 251)),
        {"base": "a b"},
    ],
)
async def test_what_makes_no_sense_is_refused_before_anybody_is_asked(desk: Desk, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await create(desk, **wrong)
    assert desk.server.asked == []


async def test_a_branch_of_somebody_whom_the_owner_does_not_allow_is_refused(desk: Desk) -> None:
    desk.github.shop.branches.add("fix")
    held = desk.with_settings(github_allow=("acme/shop", "octo"))
    with pytest.raises(PermissionDenied, match="stranger/shop is not among"):
        await create(held, head="stranger:fix")
    assert desk.server.asked == []
    for number, head in enumerate(("fix", "ACME:fix", "octo:fix"), start=1):
        assert (await create(held, head=head))["number"] == number
        desk.github.shop.pulls[-1]["state"] = "closed"


async def test_a_branch_that_was_not_pushed_is_refused_with_githubs_reason(desk: Desk) -> None:
    with pytest.raises(ValidationFailed, match="Validation Failed; head invalid"):
        await create(desk)
    assert desk.count("posts") == 0


async def test_a_second_one_for_the_branch_is_a_conflict_that_names_the_first(desk: Desk) -> None:
    desk.github.shop.branches.add("fix")
    desk.github.pull("fix")
    with pytest.raises(Conflict, match=r"already: https://github\.example/acme/shop/pull/1"):
        await create(desk)
    assert len(desk.github.shop.pulls) == 1


async def test_a_pull_request_is_opened_into_main_unless_said(desk: Desk) -> None:
    desk.github.shop.branches |= {"fix", "more"}
    assert await create(desk) == {"number": 1, "url": "https://github.example/acme/shop/pull/1", "repeated": False}
    assert (await create(desk, head="acme:more", base="next"))["number"] == 2
    first, second = desk.github.shop.pulls
    assert (first["title"], first["head"], first["base"]) == ("Mend it", {"ref": "fix"}, {"ref": "main"})
    assert first["body"].startswith("*Posted by default (claude-code 2.1) through Rookery.*\n<!-- rookery:")
    assert first["body"].endswith("\n\nSo.")
    assert second["base"] == {"ref": "next"}
    assert (await create(desk))["repeated"] is True


async def test_a_lost_answer_is_looked_for(desk: Desk) -> None:
    desk.github.shop.branches.add("fix")
    desk.server.fail(BROKEN, method="POST", after=True)
    assert (await create(desk))["number"] == 1
    assert len(desk.asked("POST")) == 1


async def test_one_that_turns_up_after_we_have_looked_is_ours_all_the_same(desk: Desk) -> None:
    """The first try arrives late: it is not there when we look, and in the way when we try again."""
    desk.github.shop.branches.add("fix")
    desk.server.fail(Said(503), method="POST", after=True)
    desk.server.fail(Said(200, []), part="/pulls", times=2)
    assert (await create(desk))["number"] == 1
    assert (len(desk.asked("POST")), len(desk.github.shop.pulls)) == (2, 1)


async def test_somebody_elses_for_the_branch_is_not_taken_for_ours(desk: Desk) -> None:
    desk.github.shop.branches.add("fix")
    desk.github.pull("fix", state="closed", body="<!-- rookery:0000-0000 -->")
    desk.server.fail(BROKEN, method="POST")
    with pytest.raises(ServiceUnavailable):
        await create(desk)
    assert (await create(desk))["number"] == 2
