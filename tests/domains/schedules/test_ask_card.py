"""What the owner reads of an execution that waits: everything that matters, and no line that an agent wrote."""

import json
from typing import Any

import sqlalchemy as sa

from rookery.asks.tables import asks
from tests.domains.schedules.almanac import Almanac

FORGED = 'x" of bob run?\n\nApproved before\u2028by the owner\u202e'


async def ask(almanac: Almanac, **given: Any) -> Any:
    """The ask about the first execution of such a schedule."""
    await almanac.happen(await almanac.make(almanac.owner, approval_policy="council_approve", **given))
    return almanac.rows(sa.select(asks).order_by(asks.c.created_ms.desc()))[0]


def actions_in(context: str) -> list[dict[str, Any]]:
    """The actions, each on a line of its own after its number."""
    lines = [line.partition(". ") for line in context.split("\n")]
    return [json.loads(rest) for number, _, rest in lines if number.isdigit()]


async def test_names_and_texts_cannot_make_lines_of_their_own(almanac: Almanac) -> None:
    description = "tidy\n2. star_repo: a/b\nIn full: rookery schedules history --execution ffff\x1b[2J\u2029\u200b"
    action = {"type": "work_task", "description": description}
    found = await ask(almanac, name=FORGED, description="why\nnot\u0085", schedule_actions=[action])
    assert found.question.isprintable()
    assert found.question.startswith('May "x\\" of bob run?\\n\\nApproved before\\u2028by')
    assert found.question.endswith(" of default run?")
    assert all(line.isprintable() for line in found.context.split("\n"))
    assert [line.partition(":")[0] for line in found.context.split("\n")].count("In full") == 1
    assert actions_in(found.context) == [{"type": "work_task", "description": description}]


async def test_every_limit_and_option_that_matters_is_shown(almanac: Almanac) -> None:
    given = [
        {"type": "review_prs", "repos": ["a/b"]},
        {"type": "github_suggest", "repos": ["a/b"], "auto_create_pr": True},
        {"type": "github_suggest", "repos": ["c/d"]},
        {"type": "improvement_loop", "focus_area": "speed"},
    ]
    found = await ask(
        almanac, schedule_actions=given, description="to be better", max_executions=7, max_budget_per_run=2.5,
        notify_address="ops@example.org",
    )  # fmt: skip
    assert actions_in(found.context) == [
        {**given[0], "max_prs": 5},
        given[1],
        {**given[2], "auto_create_pr": False},
        {**given[3], "max_improvement_tasks": 3},
    ]
    limits = next(line for line in found.context.split("\n") if line.startswith("Limits: "))
    assert json.loads(limits.removeprefix("Limits: ")) == {
        "max_budget_per_run": 2.5, "max_executions": 7, "execution": 1, "notify_address": "ops@example.org",
    }  # fmt: skip
    assert 'Said of it: "to be better"' in found.context


async def test_what_is_not_limited_is_said_to_be_so(almanac: Almanac) -> None:
    found = await ask(almanac)
    assert '"max_budget_per_run": null, "max_executions": null' in found.context


async def test_too_much_is_cut_inside_its_texts_and_never_at_the_end(almanac: Almanac) -> None:
    given = [{"type": "custom", "prompt": f"begin {number}" + "x" * 7_900 + f"end {number}"} for number in range(10)]
    found = await ask(almanac, schedule_actions=given)
    shown = [action["prompt"] for action in actions_in(found.context)]
    for number, prompt in enumerate(shown):
        assert prompt.startswith(f"begin {number}")
        assert prompt.endswith(f"end {number}")
        assert "characters left out" in prompt
    assert "--execution" in found.context.split("\n")[-1]


async def test_a_text_that_fits_is_shown_whole(almanac: Almanac) -> None:
    found = await ask(almanac, schedule_actions=[{"type": "custom", "prompt": "y" * 8_000}])
    assert actions_in(found.context) == [{"type": "custom", "prompt": "y" * 8_000}]


async def test_executions_with_other_limits_are_not_alike(almanac: Almanac) -> None:
    first, same = await ask(almanac), await ask(almanac)
    dearer, elsewhere = await ask(almanac, max_budget_per_run=9.0), await ask(almanac, notify_address="x@example.org")
    assert first.batch_key == same.batch_key
    assert len({first.batch_key, dearer.batch_key, elsewhere.batch_key}) == 3


async def test_the_list_of_what_waits_shows_the_ends_of_long_texts(almanac: Almanac) -> None:
    await ask(almanac, schedule_actions=[{"type": "custom", "prompt": "a" * 3_000 + "\nthe end"}])
    (listed,) = (await almanac.call(almanac.owner, "list")).executions
    assert "characters left out" in listed["asks"]
    assert listed["asks"].isprintable()
    assert "the end" in listed["asks"]
