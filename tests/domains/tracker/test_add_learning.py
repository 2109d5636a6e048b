import asyncio
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, RookeryError, ValidationFailed
from rookery.domains.tracker.learning_tables import learnings
from tests.domains.tracker.desk import Desk

PATTERN = "Nuxt auto-imports files in app/utils/ — don't add explicit imports or you'll get already-defined errors"
CONTEXT = (
    "Nuxt 4 convention applies to all files in app/utils/, app/composables/, and app/components/ directories. "
    "The auto-import system scans these dirs at build time."
)
TWENTY = [f"word{number}" for number in range(20)]


async def refused(desk: Desk, error: type[RookeryError], actor: Actor, **changes: Any) -> RookeryError:
    """What the caller is told; nothing is written."""
    before = desk.count(learnings)
    with pytest.raises(error) as caught:
        await desk.call(actor, "add_learning", **{"pattern": PATTERN} | changes)
    assert caught.value.hint
    assert desk.count(learnings) == before
    return caught.value


async def test_scanners_intake_agents_without_a_profile_and_sessions_without_an_issue_have_it_not(desk: Desk) -> None:
    issue = await desk.issue()
    for actor in (
        desk.actor("scanner", issue),
        desk.actor("intake", issue),
        desk.fleet.actor(issue=issue.id),
        desk.actor("worker"),
    ):
        await refused(desk, PermissionDenied, actor)


async def test_an_issue_that_went_to_another_project_gets_no_learnings_from_this_one(desk: Desk) -> None:
    issue, other = await desk.issue(), await desk.project("other")
    worker = desk.actor("worker", issue)
    desk.change(sa.text("UPDATE issues SET project_id = :id").bindparams(id=other.id))
    await refused(desk, NotFound, worker)


async def test_issues_of_other_tenants_and_of_projects_without_a_role_are_not_there(desk: Desk) -> None:
    issue, stranger = await desk.issue(), desk.stranger
    await refused(desk, NotFound, replace(desk.actor("worker", issue), closed=frozenset({issue.project_id})))
    await refused(desk, NotFound, replace(stranger, issue=issue.id, project=issue.project_id))


async def test_a_worker_whose_claim_is_over_cannot_add_learnings(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    claim = await desk.call(desk.actor("worker", session="one"), "claim_issue", issue_id=issue.identifier)
    await refused(desk, Conflict, desk.actor("worker", issue, session="two"))
    await refused(desk, Conflict, desk.actor("worker", issue, session="one"), fence=claim.fence + 1)


@pytest.mark.parametrize(("field", "least"), [("pattern", 50), ("context", 100)])
async def test_short_texts_are_refused_with_their_length(desk: Desk, field: str, least: int) -> None:
    worker = desk.actor("worker", await desk.issue())
    for text, count in (("use TDD", 7), ("a" * (least - 1), least - 1), (f" {'b ' * 10}{' ' * least}\n", 19), ("", 0)):
        error = await refused(desk, ValidationFailed, worker, **{field: text})
        assert error.message == f"{field} has {count} characters, at least {least} are needed"
    await desk.call(worker, "add_learning", **{"pattern": PATTERN, field: f"\n {'c' * least} "})
    (row,) = desk.rows(sa.select(learnings))
    assert getattr(row, field) == "c" * least


async def test_a_text_without_words_is_refused(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    for field, text in (("pattern", "!" * 60), ("pattern", "🙂" * 60), ("context", "- " * 80)):
        error = await refused(desk, ValidationFailed, worker, **{field: text})
        assert error.message == f"{field} has no words"


async def test_too_much_of_anything_is_refused(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    for changes in (
        {"pattern": "x" * 5_001},
        {"context": "x" * 5_001},
        {"applies_to": ["app/"] * 21},
        {"applies_to": ["x" * 1_001]},
        {"applies_to": "app/"},
        {"learning_type": "hunch"},
        {"quality_score": 100},
        {"verified": True},
        {"issue_id": "DEF-001"},
        {"pattern": f"{PATTERN}\x00"},
    ):
        await refused(desk, InvalidParams, worker, **changes)


async def test_paths_outside_the_project_are_refused(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    for path in ("/", "/etc/", "../app/", "app/../../x", "~/", "app\\utils", "."):
        await refused(desk, ValidationFailed, worker, applies_to=["app/", path])


async def test_a_learning_starts_at_50_and_is_shown_with_its_issue(desk: Desk) -> None:
    issue = await desk.issue()
    given = {"applies_to": ["app/utils/", "./app//composables/", "app/utils/", "nuxt.config.ts"], "context": CONTEXT}
    made = await desk.call(
        desk.actor("researcher", issue), "add_learning", pattern=PATTERN, learning_type="convention", **given
    )
    assert made.id.startswith("lrn-")
    assert made.quality_score == 50
    assert (await desk.call(desk.owner, "get_issue", issue_id=issue.id)).learnings == [
        {
            "id": made.id,
            "pattern": PATTERN,
            "context": CONTEXT,
            "applies_to": ["app/utils/", "app/composables/", "nuxt.config.ts"],
            "learning_type": "convention",
            "quality_score": 50,
            "verified": False,
        }
    ]
    (row,) = desk.rows(sa.select(learnings))
    assert (row.author, row.tenant, row.project_id) == ("researcher", issue.tenant, issue.project_id)
    assert desk.reload(issue).updated_ms >= row.created_ms


async def test_a_learning_in_nearly_the_same_words_names_the_one_it_repeats(desk: Desk) -> None:
    issue = await desk.issue()
    made = await desk.call(desk.actor("worker", issue), "add_learning", pattern=PATTERN)
    for again in (
        PATTERN,
        f"  {PATTERN.upper()}!!  ",
        PATTERN.replace("—", "and the").replace("explicit", "explicit,"),
        PATTERN.replace("errors", "error"),
    ):
        error = await refused(desk, Conflict, desk.actor("judge", issue), pattern=again, context=CONTEXT)
        assert made.id in error.message
        assert issue.identifier in error.message
        assert PATTERN in error.message


async def test_another_issue_may_learn_the_same(desk: Desk) -> None:
    for issue in (await desk.issue(), await desk.issue()):
        await desk.call(desk.actor("worker", issue), "add_learning", pattern=PATTERN)
    assert desk.count(learnings) == 2


async def test_the_same_issue_may_learn_something_else(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    await desk.call(worker, "add_learning", pattern=" ".join(TWENTY))
    await desk.call(worker, "add_learning", pattern=" ".join(TWENTY[:16]))
    assert desk.count(learnings) == 2


async def test_the_longest_texts_are_kept_and_told_apart(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    for letter in "äß日":
        await desk.call(worker, "add_learning", pattern=letter * 5_000, context=letter * 5_000)
        await refused(desk, Conflict, worker, pattern=letter * 5_000)
    assert desk.count(learnings) == 3


async def test_of_many_identical_learnings_at_once_one_is_kept(desk: Desk) -> None:
    issue = await desk.issue()
    actors = [desk.actor(profile, issue) for profile in ("worker", "researcher", "judge", "architect", "planner") * 2]
    ends = await asyncio.gather(
        *(desk.call(actor, "add_learning", pattern=PATTERN) for actor in actors), return_exceptions=True
    )
    assert sorted(type(end).__name__ for end in ends) == ["Conflict"] * 9 + ["Learned"]
    assert desk.count(learnings) == 1


async def test_of_many_nearly_identical_learnings_at_once_one_is_kept(desk: Desk) -> None:
    worker = desk.actor("worker", await desk.issue())
    patterns = [" ".join([*TWENTY[:number], *TWENTY[number + 1 :]]) for number in range(10)]
    ends = await asyncio.gather(
        *(desk.call(worker, "add_learning", pattern=pattern) for pattern in patterns), return_exceptions=True
    )
    assert sorted(type(end).__name__ for end in ends) == ["Conflict"] * 9 + ["Learned"]
    assert desk.count(learnings) == 1
