"""Answers that are kept: not sent again if they have not changed, nobody else's, and never too many."""

from typing import Any

import pytest
import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.github import answer_store
from rookery.domains.github.answer_store import MAX_BODY, Answers, Kept
from rookery.domains.github.tables import answers
from tests.domains.github.desk import Desk
from tests.domains.github.fake_server import Said


async def test_a_failure_is_not_kept(desk: Desk) -> None:
    desk.server.fail(Said(404, {"message": "Not Found"}, {"ETag": '"x"'}))
    with pytest.raises(Exception, match="may see"):
        await desk.call("github_repo_info")
    assert desk.count("answers") == 0


async def test_what_has_not_changed_is_not_sent_again_and_costs_nothing_of_the_limit(desk: Desk) -> None:
    first = await desk.call("github_repo_info")
    left = desk.github.remaining
    assert await desk.call("github_repo_info") == first
    assert (desk.github.unchanged, desk.github.remaining, desk.count("answers")) == (1, left, 1)
    desk.github.issue()
    assert (await desk.call("github_repo_info"))["open_issues"] == 1
    assert (await desk.call("github_repo_info"))["open_issues"] == 1
    assert desk.github.unchanged == 2


async def test_pages_go_on_after_an_answer_that_was_kept(desk: Desk) -> None:
    for _ in range(5):
        desk.github.issue()
    first = await desk.call("github_list_issues", limit=2)
    assert await desk.call("github_list_issues", limit=2) == first
    assert desk.github.unchanged == 1
    assert first["cursor"] == "2.0.2"


async def test_a_diff_and_its_pull_request_are_kept_apart(desk: Desk) -> None:
    number = desk.github.pull()
    desk.github.shop.diffs[number] = b"+x\n"
    for _ in range(2):
        assert (await desk.call("github_get_pr_diff", pr_number=number))["diff"] == "+x\n"
        assert (await desk.call("github_list_prs"))["prs"][0]["additions"] == 3
    assert desk.github.unchanged == 3


async def test_neither_another_credential_nor_another_tenant_uses_it(desk: Desk) -> None:
    await desk.call("github_repo_info")
    desk.github.tokens.add("ghp_other")
    await desk.with_settings(github_token="ghp_other").call("github_repo_info")
    await desk.call("github_repo_info", desk.stranger)
    assert (desk.github.unchanged, desk.count("answers")) == (0, 3)


async def test_the_credential_is_not_in_the_database(desk: Desk) -> None:
    await desk.call("github_repo_info")
    await desk.call("github_create_issue", title="x")

    def everything(tx: Tx) -> str:
        tables = sa.inspect(tx.connection).get_table_names()
        return "".join(str(tx.all(sa.text(f'SELECT * FROM "{name}"'))) for name in tables)

    assert "s3cr3t" not in desk.fleet.platform.database.direct(everything)


async def test_a_long_answer_is_not_kept(desk: Desk) -> None:
    number = desk.github.pull()
    desk.github.shop.diffs[number] = b"+" + b"x" * MAX_BODY
    await desk.call("github_get_pr_diff", pr_number=number)
    assert desk.count("answers") == 0


def keep(desk: Desk, *keys: str, size: int = 10, tenant: str = "default") -> None:
    def work(tx: Tx) -> None:
        for position, key in enumerate(keys):
            Answers(tx, tenant).keep(key, Kept('"e"', "", "", b"x" * size))
            tx.run(sa.update(answers).where(answers.c.key == key).values(used_ms=position))

    desk.fleet.platform.database.direct(work, write=True)


def kept_keys(desk: Desk) -> list[Any]:
    wanted = sa.select(answers.c.tenant, answers.c.key).order_by(answers.c.tenant, answers.c.used_ms)
    return [tuple(row) for row in desk.fleet.platform.database.direct(lambda tx: tx.all(wanted))]


async def test_what_was_not_used_for_longest_goes_when_there_is_too_much(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = answer_store._RANKED
    bound = sa.or_(ranked.c.together > 100, ranked.c.place > 4)
    fewer = sa.delete(answers).where(
        answers.c.tenant == sa.bindparam("of_tenant"), answers.c.key.in_(sa.select(ranked.c.key).where(bound))
    )
    monkeypatch.setattr(answer_store, "_FORGET", fewer)
    keep(desk, "a", tenant="other")
    keep(desk, "a", "b", "c", "d", "e")
    assert kept_keys(desk) == [("default", key) for key in "bcde"] + [("other", "a")]
    keep(desk, "big", size=80)
    assert kept_keys(desk)[:-1] == [("default", "big"), ("default", "d"), ("default", "e")]


def test_the_statement_has_the_bounds_that_the_page_names() -> None:
    text = str(answer_store._FORGET.compile(compile_kwargs={"literal_binds": False}).params)
    assert str(answer_store.MAX_KEPT) in text
    assert str(answer_store.MAX_KEPT_BYTES) in text
