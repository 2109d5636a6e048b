"""A pull request of a real repository to be looked at in the console, on a fleet or on a site with a browser."""

from pathlib import Path
from typing import Any

from rookery.identity.people import People
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.reviewing import PASSED, Author, author
from tests.web.guest import Guest
from tests.web.site import Site

FAILED = {
    "command": "make lint",
    "label": "Lint",
    "exit_code": 2,
    "output": "login.py is \x1b[31mugly",
    "required": False,
}
CODE = "def log_in(name: str) -> bool:\n    # everybody is let in\n    return True\n"


async def reviewed(guest: Guest, folder: Path, **changes: Any) -> Author:
    """An open pull request with two gates; its issue is in review."""
    return await opened(Desk(guest.fleet, folder), **changes)


async def opened(desk: Desk, **changes: Any) -> Author:
    at = await author(desk, title="Log in with a passkey")
    at.tree.commit("src/login.py", CODE)
    await at.open(**{"gate_results": [PASSED, FAILED], **changes})
    return at


def opened_at(site: Site, folder: Path) -> Author:
    """The same for a browser."""
    return site.wait(opened(Desk(site.fleet, folder)))


def somebody(owner: Guest, role: str) -> Guest:
    """Another person, signed in."""
    database = owner.fleet.platform.database
    database.direct(lambda tx: People(tx, "default").add(role.title(), role, None), write=True)
    return owner.signed_in(role.title())
