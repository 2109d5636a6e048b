"""What approve_pr and reject_pr refuse alike is in test_approve_pr.py."""

import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams
from rookery.domains.tracker.advance import orchestrator
from rookery.domains.tracker.diff import parse_diff
from rookery.domains.tracker.pr_store import Opener, latest_pr, open_pr
from rookery.domains.tracker.project_store import Projects
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.leasing import claimed
from tests.domains.tracker.reviewing import Author, author, refused


async def test_too_long_instructions_are_refused(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    judge = at.bound("judge")
    await refused(desk, InvalidParams, "fix_instructions", judge, "reject_pr", fix_instructions="x" * 5001)


async def test_while_another_holds_the_issue_again_nothing_is_judged(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await desk.call(at.person, "set_issue_status", issue_id=at.issue.id, status="todo")
    await claimed(desk, at.issue, "elsewhere", project="repo")
    await refused(desk, Conflict, "is claimed by", at.bound("judge"), "reject_pr")


async def test_rejection_sends_the_issue_back_with_a_comment(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    decided = await desk.call(
        at.bound("judge"), "reject_pr", reason="No error handling", fix_instructions="Return 400 for bad input."
    )
    assert (decided.pr_status, decided.issue_status, decided.revision) == ("rejected", "todo", 1)
    (row,) = at.prs()
    assert (row.status, row.reason) == ("rejected", "No error handling")
    assert row.fix_instructions == "Return 400 for bad input."
    assert at.status() == "todo"
    assert at.comments() == [
        "**Pull request rejected** (revision 1): No error handling\n\n**To fix:** Return 400 for bad input."
    ]


async def test_a_person_sends_back_what_a_judge_has_approved(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await desk.call(at.bound("judge"), "approve_pr", reason="all gates pass")
    decided = await desk.call(at.person, "reject_pr", revision=1, reason="it forgets the tax")
    assert (decided.pr_status, decided.issue_status) == ("rejected", "todo")
    (row,) = at.prs()
    assert (row.reason, row.judged_by) == ("it forgets the tax", at.person.subject)
    await refused(desk, Conflict, "cannot become", at.person, "merge_pr", issue_id=at.issue.id)


async def test_a_rejection_without_words_says_at_least_so(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await desk.call(at.bound("judge"), "reject_pr")
    assert at.comments() == ["**Pull request rejected** (revision 1)"]


async def test_the_next_attempt_is_a_new_revision_and_judged_by_itself(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await desk.call(at.bound("judge"), "reject_pr", reason="no tests")
    await at.again()
    at.tree.commit("tests/test_login.py", "def test_it(): pass\n")
    assert (await at.open()).revision == 2
    await refused(desk, Conflict, "is at revision 2, not 1", at.bound("judge"), "approve_pr", revision=1)
    await desk.call(at.bound("judge"), "approve_pr", revision=2)
    assert [(row.revision, row.status, row.reason) for row in at.prs()] == [
        (1, "rejected", "no tests"),
        (2, "approved", None),
    ]


async def test_one_that_a_person_took_back_can_still_be_rejected_and_stays_where_it_is(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await desk.call(at.person, "set_issue_status", issue_id=at.issue.id, status="todo")
    decided = await desk.call(at.bound("judge"), "reject_pr", reason="outdated")
    assert (decided.pr_status, decided.issue_status) == ("rejected", "todo")
    assert len(at.comments()) == 1


def reopen(at: Author, opened_by: Opener | None = None) -> int:
    """The next revision, as the orchestrator opens it for a claim."""
    desk, issue = at.desk, at.issue
    actor = orchestrator(issue.tenant, issue.project_id, "repo")
    database = desk.fleet.platform.database
    settings = database.direct(lambda tx: Projects(tx, actor).settings())
    row = database.direct(
        lambda tx: open_pr(
            tx, actor, desk.reload(issue), diff=at.diff, stats=parse_diff(at.diff), branch="b", base="main", gates=(),
            settings=settings, opened_by=opened_by,
        ),
        write=True,
    )  # fmt: skip
    return row.revision


async def test_the_orchestrator_closes_what_is_undecided_before_it_opens_the_next(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    assert reopen(at) == 2
    await desk.call(at.bound("judge"), "approve_pr")
    assert reopen(at) == 3
    assert [row.status for row in at.prs()] == ["closed", "closed", "open"]
    newest = desk.fleet.platform.database.direct(lambda tx: latest_pr(tx, at.issue.id))
    assert newest is not None
    assert newest.revision == 3


async def test_what_the_orchestrator_opened_for_an_agent_is_not_that_agents_to_judge(desk: Desk) -> None:
    await desk.call(desk.owner, "create_agent", name="ada", permissions=["reject_pr"])
    at = await author(desk)
    ada = at.bound(None, agent="ada")
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(status="review"))
    reopen(at, Opener(ada.subject, None))
    await refused(desk, Conflict, "whoever opened it", ada, "reject_pr")
