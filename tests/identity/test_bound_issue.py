"""Which issue a session acts on: the one that it named when it began, or else the one that it has claimed."""

from dataclasses import replace

import pytest

from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.errors import NotFound
from rookery.db.tx import Tx
from rookery.identity.binding import Binding, BoundIssue
from rookery.identity.resolve import Resolver
from rookery.identity.store import now_ms
from rookery.server.session import open_session
from tests.identity.callers import own
from tests.platform_fixtures import Fleet

HOUR_MS = 3_600_000


class Issues:
    """Issues and leases in memory, as the tracker would tell them."""

    def __init__(self) -> None:
        self.issues: dict[tuple[str, str], BoundIssue] = {}
        self.leases: dict[tuple[str, str | None], BoundIssue] = {}

    def add(self, number: int, project: str, tenant: str = "default") -> BoundIssue:
        made = BoundIssue(f"iss-{number}", f"SYM-{number:03d}", project)
        self.issues[tenant, made.id] = self.issues[tenant, made.identifier] = made
        return made

    def find(self, tx: Tx, tenant: str, text: str) -> BoundIssue | None:
        assert tx.one
        return self.issues.get((tenant, text))

    def claimed(self, tx: Tx, tenant: str, subject: str, session: str | None) -> BoundIssue | None:
        lease = self.leases.get((subject, session))
        return lease if lease is None or lease.until_ms is None or lease.until_ms > now_ms() else None


@pytest.fixture
def issues(fleet: Fleet) -> Issues:
    """What the fleet's resolver knows of issues: SYM-001 in the default project."""
    made = Issues()
    platform = fleet.platform
    platform.resolver = Resolver(platform.registry, frozenset(), issues=made)
    made.add(1, fleet.actor().project or "")
    return made


@pytest.fixture
async def shop(fleet: Fleet, issues: Issues) -> str:
    """The id of another project, with SYM-002 in it."""
    project: str = (await own(fleet, "create_project", slug="shop")).id
    issues.add(2, project)
    return project


def refusal(fleet: Fleet, **binding: object) -> tuple[str, str | None]:
    with pytest.raises(NotFound) as caught:
        fleet.actor(**binding)
    return caught.value.message, caught.value.hint


def bound(actor: Actor) -> tuple[str | None, str | None, str | None]:
    return actor.issue, actor.issue_identifier, actor.project_slug


async def test_whatever_keeps_an_issue_from_being_bound_it_is_not_there(
    fleet: Fleet, issues: Issues, shop: str, stranger: Actor
) -> None:
    issues.add(3, stranger.project or "", "other")
    await own(fleet, "create_agent", name="ada")
    await own(fleet, "set_project_members", project="shop", agents=["ada"])
    unknown, hint = refusal(fleet, issue="SYM-404")
    assert (unknown, bool(hint)) == ("there is no issue SYM-404", True)
    for text, binding in [
        ("SYM-003", {}),
        ("iss-3", {}),
        ("SYM-002", {}),
        ("iss-2", {}),
        ("SYM-002", {"project": "default"}),
        ("iss-2", {"project_slug": "default"}),
        ("a\0b", {}),
        ("\udcff", {"as_owner": True}),
        ("SYM-001", {"project": "shop", "agent": "ada"}),
        ("SYM-001", {"project_slug": "shop", "as_owner": True}),
        ("SYM-001", {"tenant": "other"}),
    ]:
        assert refusal(fleet, issue=text, **binding) == (f"there is no issue {text}", hint)
    assert refusal(fleet, issue="SYM-002", project="shop")[0] == "there is no project shop"


async def test_an_issue_is_bound_by_its_id_whichever_way_it_was_named(fleet: Fleet, issues: Issues, shop: str) -> None:
    for text in ("SYM-001", "iss-1"):
        assert bound(fleet.actor(issue=text)) == ("iss-1", "SYM-001", "default")
        assert bound(fleet.actor(issue=text, project="default")) == ("iss-1", "SYM-001", "default")


async def test_an_issue_brings_its_project_along_unless_one_is_named(fleet: Fleet, issues: Issues, shop: str) -> None:
    assert bound(fleet.actor(issue="SYM-002")) == ("iss-2", "SYM-002", "shop")
    assert fleet.actor(issue="SYM-002").project == shop
    assert bound(fleet.actor(issue="SYM-002", project_slug="SHOP")) == ("iss-2", "SYM-002", "shop")
    await own(fleet, "set_project_members", project="default", agents=[])
    assert bound(fleet.actor(issue="SYM-002")) == ("iss-2", "SYM-002", "shop")


async def test_a_session_loses_its_issue_with_its_project_and_gets_it_back(
    fleet: Fleet, issues: Issues, shop: str
) -> None:
    session = await open_session(fleet.platform, Binding(issue="SYM-002"))
    await own(fleet, "set_project_members", project="shop", agents=[])
    with pytest.raises(NotFound, match="there is no"):
        await session.actor()
    await own(fleet, "set_project_members", project="shop", agents="everyone")
    assert (await session.actor()).issue == "iss-2"


async def test_a_claim_of_another_session_agent_or_project_binds_nothing(
    fleet: Fleet, issues: Issues, shop: str
) -> None:
    ada = await own(fleet, "create_agent", name="ada")
    me = fleet.actor().subject
    first, second = issues.issues["default", "iss-1"], issues.issues["default", "iss-2"]
    issues.leases = {(me, "other"): first, (ada.id, "ses-1"): first, (me, None): first, (me, "elsewhere"): second}
    assert bound(fleet.actor(session="ses-1")) == (None, None, "default")
    assert bound(fleet.actor(session="elsewhere")) == (None, None, "default")
    assert bound(fleet.actor(session="other", project="shop")) == (None, None, "shop")
    assert bound(fleet.actor(session="other", as_owner=True)) == (None, None, "default")
    adding = decide(fleet.actor(session="ses-1", profile="worker"), fleet.platform.registry.require("complete_phase"))
    assert (adding.outcome, adding.layer) == ("deny", "binding")


async def test_what_the_session_has_claimed_is_bound_and_what_it_named_comes_first(
    fleet: Fleet, issues: Issues, shop: str
) -> None:
    me = fleet.actor().subject
    issues.leases[me, "ses-1"] = issues.issues["default", "iss-1"]
    issues.leases[me, "ses-2"] = issues.issues["default", "iss-2"]
    assert bound(fleet.actor(session="ses-1")) == ("iss-1", "SYM-001", "default")
    assert bound(fleet.actor(session="ses-2", project="shop")) == ("iss-2", "SYM-002", "shop")
    assert bound(fleet.actor(session="ses-1", issue="SYM-002")) == ("iss-2", "SYM-002", "shop")
    assert "complete_phase" in fleet.names(fleet.actor(session="ses-1", profile="worker"))


async def test_a_claimed_issue_is_bound_no_longer_than_its_lease_lasts(fleet: Fleet, issues: Issues) -> None:
    me, end = fleet.actor().subject, now_ms() + HOUR_MS
    issues.leases[me, "ses-1"] = replace(issues.issues["default", "iss-1"], until_ms=end)

    def until(session: str, issue: str | None = None) -> int | None:
        binding = Binding(session=session, issue=issue)
        return fleet.platform.database.direct(lambda tx: fleet.platform.resolver.resolve(tx, binding)).good_until_ms

    assert until("ses-1") == end
    assert until("ses-1", "SYM-001") is None
    assert until("ses-2") is None
    await own(fleet, "grant_tool", agent="default", tool="ping", expires_at="9000-01-01T00:00:00Z")
    assert until("ses-1") == end


async def test_a_live_session_is_rid_of_its_issue_when_the_lease_is_over(fleet: Fleet, issues: Issues) -> None:
    me = fleet.actor().subject
    issues.leases[me, "ses-1"] = replace(issues.issues["default", "iss-1"], until_ms=now_ms() + HOUR_MS)
    session = await open_session(fleet.platform, Binding(session="ses-1", profile="worker"))
    assert (await session.actor()).issue == "iss-1"
    assert "complete_phase" in {tool.name for tool in await session.tools()}
    # The lease's last moment has come: what was resolved is out of date without any change of identities.
    soon = now_ms() + 20
    issues.leases[me, "ses-1"] = replace(issues.issues["default", "iss-1"], until_ms=soon)
    await own(fleet, "create_agent", name="someone")
    while now_ms() <= soon:
        assert (await session.actor()).issue in ("iss-1", None)
    assert (await session.actor()).issue is None
    assert "complete_phase" not in {tool.name for tool in await session.tools()}


async def test_an_agent_is_told_the_identifier_of_its_issue(fleet: Fleet, issues: Issues) -> None:
    (said,) = await fleet.platform.calls.prompt(fleet.actor(issue="iss-1"), "who_am_i")
    assert "You work on issue SYM-001." in str(said.block)


async def test_without_a_tracker_an_issue_is_bound_as_it_is_named(fleet: Fleet) -> None:
    fleet.platform.resolver = Resolver(fleet.platform.registry, frozenset())
    assert bound(fleet.actor(issue="anything")) == ("anything", "anything", "default")
    assert bound(fleet.actor(session="ses-1")) == (None, None, "default")
