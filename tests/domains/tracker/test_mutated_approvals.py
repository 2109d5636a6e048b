"""Whatever happens to a pull request after its approval: what was not approved is never recorded as merged."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.db.tx import Tx
from rookery.domains.tracker.diff import parse_diff
from rookery.domains.tracker.pr_store import Standing, decide_pr, latest_pr, open_pr
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.tables import prs
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.reviewing import Author, author

ATTEMPTS = {"sqlite": 10_000, "postgresql": 500}
REAL = 8
DIFF = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
Row = sa.Row[Any]
Mutation = Callable[[Tx, Row, random.Random], Standing]


def _hash(chance: random.Random) -> str:
    return f"{chance.getrandbits(160):040x}"


def _set(tx: Tx, pr: Row, **values: Any) -> None:
    tx.run(sa.update(prs).where(prs.c.id == pr.id).values(**values))


def new_commit(tx: Tx, pr: Row, chance: random.Random) -> Standing:
    return Standing(_hash(chance), _hash(chance))


def amended(tx: Tx, pr: Row, chance: random.Random) -> Standing:
    return Standing(_hash(chance), pr.diff_hash)


def base_taken_back(tx: Tx, pr: Row, chance: random.Random) -> Standing:
    return Standing(pr.head, _hash(chance))


def almost(tx: Tx, pr: Row, chance: random.Random) -> Standing:
    return chance.choice(
        [
            Standing(pr.head[:-1], pr.diff_hash),
            Standing(pr.head.upper() + " ", pr.diff_hash),
            Standing("", pr.diff_hash),
            Standing(pr.diff_hash, pr.head),
            Standing(pr.head, ""),
        ]
    )


def row_changed(tx: Tx, pr: Row, chance: random.Random) -> Standing:
    """The revision is given another commit, and git has that one."""
    found = Standing(_hash(chance), _hash(chance))
    some = chance.choice([("head",), ("diff_hash",), ("head", "diff_hash")])
    _set(tx, pr, **{name: getattr(found, name) for name in some})
    return Standing(found.head if "head" in some else pr.head, found.diff_hash if "diff_hash" in some else pr.diff_hash)


def approval_lost(tx: Tx, pr: Row, chance: random.Random) -> Standing:
    _set(tx, pr, **{chance.choice(["approved_head", "approved_diff"]): chance.choice([None, "", _hash(chance)])})
    return Standing(pr.head, pr.diff_hash)


def decided_otherwise(tx: Tx, pr: Row, chance: random.Random) -> Standing:
    _set(tx, pr, status=chance.choice(["open", "draft", "rejected", "closed"]))
    return Standing(pr.head, pr.diff_hash)


OF_THE_ROW: list[Mutation] = [row_changed, approval_lost, decided_otherwise]
MUTATIONS: list[Mutation] = [new_commit, amended, base_taken_back, almost, *OF_THE_ROW]
CHANGED = ("status", "head", "diff_hash", "approved_head", "approved_diff")


def _approve(tx: Tx, owner: Actor, issue: Row, standing: Standing, settings: ProjectSettings) -> Row:
    pr = open_pr(
        tx, owner, issue, diff=DIFF, stats=parse_diff(DIFF), branch="work", base="main", gates=(),
        settings=settings, who="human", standing=standing,
    )  # fmt: skip
    return decide_pr(tx, owner, issue, pr, "approved", "human")


async def test_ten_thousand_changes_after_an_approval_merge_nothing(desk: Desk) -> None:
    issue = await desk.issue(status="review")
    settings = ProjectSettings(project_id=issue.project_id, slug="default", path=None, prefix=None)
    owner, seed = desk.owner, random.randrange(2**32)
    chance = random.Random(seed)
    merged: list[str] = []

    def attempts(tx: Tx) -> None:
        approved = _approve(tx, owner, issue, Standing(_hash(chance), _hash(chance)), settings)
        kept = {name: getattr(approved, name) for name in CHANGED}
        for _ in range(ATTEMPTS[tx.dialect]):
            mutation = chance.choice(MUTATIONS)
            found = mutation(tx, approved, chance)
            try:
                decide_pr(tx, owner, issue, approved, "merged", "human", found=found)
                merged.append(mutation.__name__)
            except Conflict:
                pass
            if mutation in OF_THE_ROW:
                _set(tx, approved, **kept)
        assert merged == [], f"seed {seed}"
        # What is left as it was approved is merged: the attempts failed for their changes and for nothing else.
        as_it_was = Standing(approved.head, approved.diff_hash)
        assert decide_pr(tx, owner, issue, approved, "merged", "human", found=as_it_was).status == "merged"

    desk.fleet.platform.database.direct(attempts, write=True)


async def test_a_newer_revision_is_not_merged_with_the_approval_of_the_one_before(desk: Desk) -> None:
    issue = await desk.issue(status="review")
    settings = ProjectSettings(project_id=issue.project_id, slug="default", path=None, prefix=None)
    owner = desk.owner

    def work(tx: Tx) -> None:
        first = _approve(tx, owner, issue, Standing("a" * 40, "b" * 64), settings)
        open_pr(
            tx, owner, issue, diff=DIFF, stats=parse_diff(DIFF), branch="work", base="main", gates=(),
            settings=settings, who="human", standing=Standing("a" * 40, "b" * 64),
        )  # fmt: skip
        newest = latest_pr(tx, issue.id)
        assert newest is not None
        for pr in (first, newest):
            with pytest.raises(Conflict):
                decide_pr(tx, owner, issue, pr, "merged", "human", found=Standing("a" * 40, "b" * 64))

    desk.fleet.platform.database.direct(work, write=True)
    assert {row.status for row in desk.rows(sa.select(prs))} == {"open", "closed"}


def _change(at: Author, chance: random.Random) -> None:
    """Something that an agent could do to its branch after the approval."""
    kind = chance.choice(["commit", "amend", "empty", "reset", "rebase", "merge"])
    if kind == "commit":
        at.tree.commit(f"f{chance.getrandbits(40)}.py", f"x = {chance.random()}\n")
    elif kind == "amend":
        git(at.tree.path, "commit", "-q", "--amend", "--allow-empty", "-m", f"{chance.random()}")
    elif kind == "empty":
        git(at.tree.path, "commit", "-q", "--allow-empty", "-m", f"{chance.random()}")
    elif kind == "reset":
        git(at.tree.path, "reset", "-q", "--hard", "main")
        at.tree.commit("src/login.py", f"def log_in():\n    return {chance.random()}\n")
    else:
        (at.repository / f"m{chance.getrandbits(40)}.md").write_text("more\n", encoding="utf-8")
        git(at.repository, "add", "-A")
        git(at.repository, "commit", "-q", "-m", "main moves on")
        words = ("rebase", "-q", "main") if kind == "rebase" else ("merge", "-q", "--no-edit", "main")
        git(at.tree.path, *words)


async def test_real_changes_after_an_approval_merge_nothing(desk: Desk) -> None:
    at = await author(desk)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for attempt in range(1, REAL + 1):
        await at.open()
        await desk.call(at.bound("judge"), "approve_pr", revision=attempt)
        _change(at, chance)
        before = git(at.repository, "rev-parse", "main")
        with pytest.raises(Conflict, match="is void"):
            await desk.call(at.person, "merge_pr", issue_id=at.issue.id, method=chance.choice(["ff", "merge"]))
        assert git(at.repository, "rev-parse", "main") == before, f"seed {seed}"
        await at.again()
    assert {row.status for row in at.prs()} == {"closed"}, f"seed {seed}"
