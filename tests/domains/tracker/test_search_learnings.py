from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.domains.tracker.learning_tables import learnings
from tests.domains.tracker.desk import Desk

PROFILES = ("worker", "researcher", "judge", "scanner", "architect", "planner", "intake")
ABOUT = "is something that every agent of this project should know before it starts"


async def learn(desk: Desk, subject: str, issue: Any = None, *, project: str = "default", **more: Any) -> str:
    """Let a worker of a project learn something about the subject."""
    issue = issue or await desk.issue(project=project)
    worker = desk.actor("worker", issue, project=project)
    return (await desk.call(worker, "add_learning", pattern=f"{subject} {ABOUT}", **more)).id


async def found(desk: Desk, query: str, profile: str = "worker", **options: Any) -> list[str]:
    answer = await desk.call(desk.actor(profile), "search_learnings", query=query, **options)
    return [each["id"] for each in answer.learnings]


async def test_an_agent_without_a_profile_cannot_search(desk: Desk) -> None:
    await learn(desk, "zebra")
    with pytest.raises(PermissionDenied):
        await desk.call(desk.fleet.actor(), "search_learnings", query="zebra")


async def test_arguments_out_of_bounds_are_refused(desk: Desk) -> None:
    for changes in (
        {"query": None},
        {"query": "x" * 10_001},
        {"query": "a\x00b"},
        {"limit": 0},
        {"limit": 101},
        {"min_quality_score": -1},
        {"min_quality_score": 101},
        {"project_id": "other"},
    ):
        with pytest.raises(InvalidParams):
            await desk.call(desk.actor("worker"), "search_learnings", **{"query": "zebra"} | changes)


async def test_other_tenants_and_projects_without_a_role_are_never_searched(desk: Desk) -> None:
    ours = await learn(desk, "zebra")
    await desk.project("secret")
    hidden = await learn(desk, "zebra", project="secret")
    await desk.call(desk.owner, "set_project_members", project="secret", agents=[])
    assert await found(desk, "zebra") == [ours]
    assert await found(desk, "zebra", cross_project=True) == []
    assert (await desk.call(desk.stranger, "search_learnings", query="zebra")).learnings == []
    assert (await desk.call(desk.stranger, "search_learnings", query="zebra", cross_project=True)).learnings == []
    person = await desk.call(desk.person(), "search_learnings", query="zebra", cross_project=True)
    assert [each["id"] for each in person.learnings] == [hidden]


async def test_cross_project_means_the_other_projects_and_not_this_one(desk: Desk) -> None:
    ours = await learn(desk, "zebra")
    await desk.project("api")
    await desk.project("web")
    others = {await learn(desk, "zebra", project=project) for project in ("api", "web")}
    assert await found(desk, "zebra") == [ours]
    assert {*await found(desk, "zebra", cross_project=True)} == others
    there = await desk.call(desk.actor("worker", project="api"), "search_learnings", query="zebra", cross_project=True)
    assert ours in [each["id"] for each in there.learnings]


async def test_a_learning_stays_with_the_project_in_which_it_was_learnt(desk: Desk) -> None:
    await desk.project("secret")
    issue = await desk.issue(labels=["cross-project"])
    ours = await learn(desk, "zebra", issue)
    await desk.call(desk.actor("planner", issue), "move_issue", target_project_id="secret", reason="it belongs there")
    assert await found(desk, "zebra") == [ours]
    moved = desk.reload(issue).identifier
    (shown,) = (await desk.call(desk.actor("worker"), "search_learnings", query="zebra")).learnings
    assert shown["identifier"] == moved
    await desk.call(desk.owner, "set_project_members", project="secret", agents=[])
    (shown,) = (await desk.call(desk.actor("worker"), "search_learnings", query="zebra")).learnings
    assert shown["identifier"] is None


async def test_every_profile_searches(desk: Desk) -> None:
    ours = await learn(desk, "zebra")
    for profile in PROFILES:
        assert await found(desk, "zebra", profile) == [ours]


async def test_what_is_found_is_told_with_its_issue_and_its_score(desk: Desk) -> None:
    issue = await desk.issue()
    context = (
        "Zebras are seen from the tower in the morning, before the gates of the park are opened to visitors at nine."
    )
    ours = await learn(desk, "zebra", issue, context=context, applies_to=["park/"], learning_type="gotcha")
    answer = await desk.call(desk.actor("worker"), "search_learnings", query="zebra tower")
    assert answer.learnings == [
        {
            "id": ours,
            "identifier": issue.identifier,
            "pattern": f"zebra {ABOUT}",
            "context": context,
            "applies_to": ["park/"],
            "learning_type": "gotcha",
            "quality_score": 50,
            "verified": False,
            "score": pytest.approx(0.5 + 0.3 + 0.1),
        }
    ]


async def test_verified_learnings_pass_whatever_quality_is_asked_for(desk: Desk) -> None:
    poor, fair, good = [await learn(desk, f"zebra {name}") for name in ("poor", "fair", "good")]
    for one, score in ((poor, 10), (good, 90)):
        desk.change(sa.update(learnings).where(learnings.c.id == one).values(quality_score=score))
    assert await found(desk, "zebra") == [good, fair, poor]
    assert await found(desk, "zebra", min_quality_score=0) == [good, fair, poor]
    assert await found(desk, "zebra", min_quality_score=50) == [good, fair]
    assert await found(desk, "zebra", min_quality_score=51) == [good]
    desk.change(sa.update(learnings).where(learnings.c.id == poor).values(verified=True))
    assert await found(desk, "zebra", min_quality_score=100) == [poor]


async def test_a_rare_word_counts_more_than_a_common_one(desk: Desk) -> None:
    rare = await learn(desk, "okapi")
    common = [await learn(desk, f"zebra {number}") for number in range(6)]
    assert await found(desk, "zebra okapi") == [rare, *reversed(common)]


async def test_any_word_is_enough_only_where_too_little_has_every_word(desk: Desk) -> None:
    both = [await learn(desk, f"zebra okapi {number}") for number in range(5)]
    one = await learn(desk, "okapi")
    assert await found(desk, "zebras okapis") == [*reversed(both)]
    assert one in await found(desk, "zebras okapis giraffes")


async def test_of_equals_the_newest_comes_first_and_no_more_than_asked_for(desk: Desk) -> None:
    issue = await desk.issue()
    made = [await learn(desk, f"zebra {name} {name}x {name}y {name}z", issue) for name in ("one", "two", "six", "ten")]
    assert await found(desk, "zebra", limit=3) == made[:0:-1]


async def test_punctuation_alone_and_ten_thousand_characters_find_nothing_and_break_nothing(desk: Desk) -> None:
    ours = await learn(desk, "zebra")
    for query in ("", "   ", '"', "* * *", "🙂", "—", '"' * 10_000, "x" * 10_000, "NEAR(" * 2_000):
        assert await found(desk, query) == [], query[:20]
    for query in ('"zebra', "zebra*", "zebra NEAR/2 knows", "pattern:zebra", "(zebra OR", "zebra 🙂", "zebra " * 1_600):
        assert await found(desk, query) == [ours], query[:20]
