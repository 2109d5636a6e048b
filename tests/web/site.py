"""A server in a process of its own, the same home opened by the test as well, and a real browser that looks at it."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, ViewportSize, expect

from rookery.app import make_platform
from rookery.cli.login import sign_in_address
from rookery.core.tool import Tool
from rookery.settings import load_settings
from tests.platform_fixtures import Fleet
from tests.server.processes import Server, environment

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
AXE = ROOT / "build" / "console" / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=844)
SERIOUS = ("serious", "critical")
LIMIT_MS = 30_000
"""How long anything on a page is waited for; a machine that is busy takes its time."""


class Site:
    """One installation with a running server. `fleet` is a second process on the same database: the test's own."""

    def __init__(self, home: Path | None = None, /, **env: str) -> None:
        # The folders of tmp_path can be too deep for a socket.
        self.home = home or Path(tempfile.mkdtemp(prefix="rookery-"))
        self.server = Server(self.home, environment(self.home, None, **env))
        self.url = f"http://127.0.0.1:{self.server.port}"
        self.fleet = Fleet(make_platform(load_settings(str(self.home), port=self.server.port), prepare=False))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of something asynchronous. Not on this thread: Playwright has a loop of its own there."""
        return asyncio.run(work) if not _has_loop() else _elsewhere(work)

    def call(self, tool: str | Tool, /, *, as_: dict[str, Any] | None = None, **arguments: Any) -> Any:
        """The structured answer of a tool, called by the owner or by whom `as_` binds: `as_={"agent": "default"}`."""
        calls, actor = self.fleet.platform.calls, self.fleet.actor(**(as_ or {"as_owner": True}))
        if isinstance(tool, Tool):
            return self.wait(calls.run(actor, tool, arguments)).structured
        return self.wait(calls.call(actor, tool, arguments)).structured

    def sign_in_link(self, person: str | None = None) -> str:
        return self.wait(sign_in_address(self.fleet.platform, self.server.port, person))

    def close(self) -> None:
        self.fleet.platform.close()
        self.server.close()
        shutil.rmtree(self.home, ignore_errors=True)


class Viewer:
    """A person at a browser. Whatever goes wrong on a page is remembered, and `check` tells of it."""

    def __init__(self, browser: Browser, site: Site, viewport: ViewportSize, *, dark: bool = False) -> None:
        self.site = site
        self.context: BrowserContext = browser.new_context(
            base_url=site.url,
            viewport=viewport,
            color_scheme="dark" if dark else "light",
            has_touch=viewport == PHONE,
            locale="en-GB",
            timezone_id="Europe/Berlin",
        )
        self.context.set_default_timeout(LIMIT_MS)
        expect.set_options(timeout=LIMIT_MS)
        self.wrong: list[str] = []
        self.page = self.new_page()

    def new_page(self) -> Page:
        """Another tab of the same browser."""
        page = self.context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.wrong.append(f"error on the page: {error}"))
        page.on("request", self._requested)
        return page

    def sign_in(self, person: str | None = None) -> "Viewer":
        self.page.goto(self.site.sign_in_link(person))
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"{self.site.url}/**")
        self.page.locator("main#content").wait_for()
        return self

    def open(self, path: str) -> Page:
        """Go to a page, and wait until its scripts have begun."""
        self.page.goto(path)
        self.page.wait_for_function("() => window.rookery !== undefined")
        return self.page

    def check(self, *, axe: bool = True) -> None:
        """Nothing went wrong, nothing is wider than the screen, and nobody is kept out."""
        # What was clicked last may be loading the page anew.
        self.page.wait_for_function("() => document.readyState === 'complete'")
        assert not self.wrong, "\n".join(self.wrong)
        wide = overflow(self.page)
        assert not wide, f"wider than the screen: {wide}"
        barred = violations(self.page) if axe else []
        assert not barred, "\n".join(barred)

    def close(self) -> None:
        self.context.close()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type} in the console: {message.text} ({message.location})")

    def _requested(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.site.url).netloc and not request.url.startswith("data:"):
            self.wrong.append(f"a request to another host: {request.url}")


def overflow(page: Page) -> list[str]:
    """What makes the page wider than the screen."""
    return page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width + 1) return [];
          const all = [...document.querySelectorAll("body *")];
          const wide = all.filter((each) => each.getBoundingClientRect().right > width + 1);
          const names = wide.slice(0, 5).map((each) => `${each.tagName}.${each.className} ${each.id}`);
          return [`${document.documentElement.scrollWidth} of ${width}`, ...names];
        }"""
    )


def violations(page: Page) -> list[str]:
    """What axe-core calls serious or worse."""
    if not page.evaluate("() => window.axe !== undefined"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await window.axe.run(document, {resultTypes: ['violations']})).violations")
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:200]} {node['failureSummary'][:300]}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"][:3]
    ]


def chromium() -> str:
    """The browser that scripts/chromium.sh finds or installs."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    assert found is not None, "there is no Chromium here: run scripts/chromium.sh, or install it"
    return found


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _elsewhere(work: Coroutine[Any, Any, T]) -> T:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run
        return thread.submit(run, work).result()
