"""Publishing a pull request from its page: offered where it can be done, and else the reason."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.identity.tables import projects
from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.reviewing import Author
from tests.domains.work import hub
from tests.platform_fixtures import Fleet
from tests.web.guest import Guest, words_of
from tests.web.reviewing import opened, somebody

ADDRESS = "https://github.com/acme/shop.git"
FIRST = "https://github.com/acme/shop/pull/1"
Console = Callable[..., Guest]


@pytest.fixture
async def console(database_url: str, make_fleet: Callable[..., Fleet]) -> AsyncGenerator[Console]:
    """Makes the console of an installation with these settings, seen by its owner."""
    hub.ASKED.clear()
    made: list[tuple[Guest, WebApp]] = []

    def make(**settings: object) -> Guest:
        fleet = make_fleet(database_url, extra={}, **settings)
        # In place of the product's own tool, which would ask GitHub.
        fleet.platform.registry._tools[hub.github_create_pr.name] = replace(hub.github_create_pr, domain="hub")
        web = WebApp(fleet.platform, make_authenticator(fleet.platform.settings), None)
        made.append((Guest(fleet, web), web))
        return made[-1][0].signed_in()

    yield make
    for guest, web in made:
        await guest.close()
        await web.close()


async def reviewed(owner: Guest, folder: Path, address: str = ADDRESS) -> Author:
    """An open pull request in a repository that says its remote is there; what is pushed goes beside it."""
    at = await opened(Desk(owner.fleet, folder))
    git(folder, "init", "-q", "--bare", "remote.git")
    git(at.repository, "remote", "add", "origin", address)
    git(at.repository, "config", "remote.origin.pushurl", str(folder / "remote.git"))
    return at


def page_of(at: Author) -> str:
    return f"/issues/{at.issue.identifier}/diff"


def pushed(at: Author) -> str:
    return git(at.desk.folder / "remote.git", "for-each-ref", "--format=%(objectname)").strip()


async def test_the_owner_publishes_what_was_read_and_the_page_says_where(console: Console, tmp_path: Path) -> None:
    owner = console(github_token="ghp_x")
    at = await reviewed(owner, tmp_path)
    page = (await owner.get(page_of(at))).text
    assert "Publish revision 1 in acme/shop" in words_of(page)
    assert 'data-ask="Push ' in page
    assert (pushed(at), hub.ASKED) == ("", [])
    answer = await owner.post(f"{page_of(at)}/publish", {"revision": "1"})
    assert answer.headers["location"].startswith(page_of(at))
    assert (pushed(at), at.prs()[0].url, len(hub.ASKED)) == (at.prs()[0].head, FIRST, 1)
    part = (await owner.part(page_of(at), "standing")).text
    assert f'href="{FIRST}"' in part
    assert "/diff/publish" not in part
    assert (await owner.post(f"{page_of(at)}/publish", {"revision": "1"})).status_code == 303
    assert len(hub.ASKED) == 1


@pytest.mark.parametrize("role", ["viewer", "operator"])
async def test_others_than_the_owner_are_told_that_it_is_not_theirs(
    console: Console, tmp_path: Path, role: str
) -> None:
    owner = console(github_token="ghp_x")
    at = await reviewed(owner, tmp_path)
    other = somebody(owner, role)
    page = (await other.get(page_of(at))).text
    assert "It cannot be published on GitHub: only the owner publishes." in words_of(page)
    assert "/diff/publish" not in page
    assert (await other.post(f"{page_of(at)}/publish", {"revision": "1"})).status_code == 403
    assert (pushed(at), hub.ASKED) == ("", [])


async def test_a_form_without_its_token_publishes_nothing(console: Console, tmp_path: Path) -> None:
    owner = console(github_token="ghp_x")
    at = await reviewed(owner, tmp_path)
    assert (await owner.client.post(f"{page_of(at)}/publish", data={"revision": "1"})).status_code == 403
    assert (pushed(at), hub.ASKED) == ("", [])


async def test_without_github_the_page_says_how_it_is_set_up(console: Console, tmp_path: Path) -> None:
    owner = console()
    at = await reviewed(owner, tmp_path)
    page = (await owner.get(page_of(at))).text
    assert "It cannot be published on GitHub: GitHub is not set up here: the owner sets GITHUB_TOKEN" in words_of(page)
    assert "/diff/publish" not in page


@pytest.mark.parametrize(
    ("address", "allow", "says"),
    [
        ("https://example.org/acme/shop.git", (), "the remote origin of the project's repository is not on GitHub"),
        (ADDRESS, ("other",), "acme/shop is not among what the owner allows on GitHub"),
    ],
)
async def test_a_repository_that_cannot_take_it_is_named_as_the_reason(
    console: Console, tmp_path: Path, address: str, allow: tuple[str, ...], says: str
) -> None:
    owner = console(github_token="ghp_x", github_allow=allow)
    at = await reviewed(owner, tmp_path, address)
    page = (await owner.get(page_of(at))).text
    assert f"It cannot be published on GitHub: {says}." in words_of(page)
    assert "/diff/publish" not in page


@pytest.mark.parametrize(("folder", "says"), [(None, "the project has no folder"), ("/nowhere", "")])
async def test_a_project_without_its_repository_still_has_its_page(
    console: Console, tmp_path: Path, folder: str | None, says: str
) -> None:
    owner = console(github_token="ghp_x")
    at = await reviewed(owner, tmp_path)
    at.desk.change(sa.update(projects).where(projects.c.id == at.issue.project_id).values(path=folder))
    assert f"It cannot be published on GitHub: {says}" in await owner.words(page_of(at))


async def test_what_is_decided_is_not_offered(console: Console, tmp_path: Path) -> None:
    owner = console(github_token="ghp_x")
    at = await reviewed(owner, tmp_path)
    await owner.post(f"{page_of(at)}/approve", {"revision": "1"})
    assert "Publish revision 1" in await owner.words(page_of(at))
    await owner.post(f"{page_of(at)}/merge", {"revision": "1", "method": "merge"})
    words = await owner.words(page_of(at))
    assert "It cannot be published on GitHub: it is merged already" in words
    assert (await owner.post(f"{page_of(at)}/publish", {"revision": "1"})).status_code == 409


async def test_a_revision_that_nobody_read_is_not_published(console: Console, tmp_path: Path) -> None:
    owner = console(github_token="ghp_x")
    at = await reviewed(owner, tmp_path)
    await owner.post(f"{page_of(at)}/reject", {"revision": "1", "reason": "not yet"})
    await at.again()
    at.tree.commit("more.py", "x = 1\n")
    await at.open()
    answer = await owner.post(f"{page_of(at)}/publish", {"revision": "1"})
    assert (answer.status_code, pushed(at), hub.ASKED) == (409, "", [])
    assert "/diff/publish" not in (await owner.get(f"{page_of(at)}?revision=1")).text
    assert "Publish revision 2" in await owner.words(page_of(at))
