"""Two ways to the console: a client without a browser on both databases, and a real browser on a real server."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator

import pytest
from playwright.sync_api import Browser, Playwright, ViewportSize, sync_playwright

from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url
from tests.web.guest import Guest
from tests.web.site import DESKTOP, PHONE, Site, Viewer, chromium

__all__ = ["database_url"]
SCREENS = {"desktop": DESKTOP, "phone": PHONE}


@pytest.fixture
async def guest(fleet: Fleet) -> AsyncGenerator[Guest]:
    """Somebody who is not signed in, at the console of `fleet`; `guest.signed_in()` is the owner."""
    web = WebApp(fleet.platform, make_authenticator(fleet.platform.settings), None)
    guest = Guest(fleet, web)
    yield guest
    await guest.close()
    await web.close()


@pytest.fixture
async def owner(guest: Guest) -> Guest:
    """The owner, signed in."""
    return guest.signed_in()


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[tuple[Playwright, asyncio.AbstractEventLoop]]:
    """The driver, and the loop in which it lives on this thread."""
    with sync_playwright() as driver:
        yield driver, asyncio.get_running_loop()


@pytest.fixture(scope="session")
def session_browser(playwright_driver: tuple[Playwright, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """One browser for the run; every viewer has a profile of its own in it."""
    driver, loop = playwright_driver
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    browser = driver.chromium.launch(executable_path=chromium(), args=flags)
    yield browser
    asyncio._set_running_loop(loop)
    browser.close()


@pytest.fixture
def browser(
    playwright_driver: tuple[Playwright, asyncio.AbstractEventLoop], session_browser: Browser
) -> Iterator[Browser]:
    """The browser, whose loop runs during this test only: between two of these, other tests run loops of their own."""
    asyncio._set_running_loop(playwright_driver[1])
    yield session_browser
    asyncio._set_running_loop(None)


@pytest.fixture
def make_site() -> Iterator[Callable[..., Site]]:
    """Starts servers, each with a home of its own; keyword arguments are variables of its environment."""
    made: list[Site] = []

    def make(**env: str) -> Site:
        made.append(Site(**env))
        return made[-1]

    yield make
    for site in made:
        site.close()


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    return make_site()


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest) -> ViewportSize:
    """The test runs once on a desktop and once at the width of a phone."""
    return SCREENS[request.param]


@pytest.fixture
def make_viewer(browser: Browser) -> Iterator[Callable[..., Viewer]]:
    made: list[Viewer] = []

    def make(site: Site, viewport: ViewportSize = DESKTOP, *, dark: bool = False) -> Viewer:
        made.append(Viewer(browser, site, viewport, dark=dark))
        return made[-1]

    yield make
    for viewer in made:
        viewer.close()


@pytest.fixture
def viewer(site: Site, screen: ViewportSize, make_viewer: Callable[..., Viewer]) -> Viewer:
    """The owner, signed in, on both screens. End a story with `viewer.check()`."""
    return make_viewer(site, screen).sign_in()
