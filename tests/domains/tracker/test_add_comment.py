import pytest

from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.domains.tracker.tables import comments
from tests.domains.tracker.desk import Desk


async def test_an_agent_without_a_profile_or_a_bound_issue_cannot_comment(desk: Desk) -> None:
    issue = await desk.issue()
    for actor in (desk.fleet.actor(issue=issue.id), desk.actor("worker")):
        with pytest.raises(PermissionDenied):
            await desk.call(actor, "add_comment", content="hello")
    assert desk.count(comments) == 0


async def test_empty_and_over_long_comments_are_refused(desk: Desk) -> None:
    issue = await desk.issue()
    for content in ("", "x" * 20_001, None):
        with pytest.raises(InvalidParams, match="content"):
            await desk.call(desk.actor("worker", issue), "add_comment", content=content)
    assert desk.count(comments) == 0


async def test_the_issue_cannot_be_chosen_by_an_argument(desk: Desk) -> None:
    first, second = await desk.issue(), await desk.issue()
    with pytest.raises(InvalidParams, match="issue_id"):
        await desk.call(desk.actor("worker", first), "add_comment", content="hi", issue_id=second.id)


async def test_every_profile_comments_under_its_own_name(desk: Desk) -> None:
    issue = await desk.issue()
    profiles = ("worker", "researcher", "judge", "scanner", "architect", "planner", "intake")
    for profile in profiles:
        await desk.call(desk.actor(profile, issue), "add_comment", content=f"from {profile}")
    told = await desk.call(desk.owner, "get_issue", issue_id=issue.id)
    assert [(each["author"], each["content"]) for each in told.comments] == [(p, f"from {p}") for p in profiles]
    assert desk.reload(issue).updated_ms >= issue.updated_ms
