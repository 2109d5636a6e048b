"""Pictures of every page: `screenshots.py CHROMIUM FOLDER [--readme] [--only NAME ...]`.

Plays the demo, fills in what it leaves out, and takes each page light and dark, on a desktop and on a phone, into
FOLDER as NAME-{light,dark}[-phone].png. With --readme also the two of the README, into docs/images. Ends with 1 if a
page has an error in its console, does not answer, is wider than the screen, or cannot be reached.
"""

import argparse
import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path

from picture_data import Fleet, fill
from picture_pages import find_pages, of_project
from picture_transcript import write_transcript
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    StorageState,
    ViewportSize,
    sync_playwright,
)

from rookery.app import Platform, make_platform
from rookery.cli.login import sign_in_address
from rookery.demo.stage import Stage

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
SCREENS = {"": ViewportSize(width=1280, height=800), "-phone": ViewportSize(width=390, height=844)}
THEMES = ("light", "dark")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
STOP_LIMIT_S = 20
SETTLE_MS = 300
MOST_README_BYTES = 200_000
README = {"console-home": "/", "console-diff": of_project("/issues/SHO-001/diff")}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@contextmanager
def demo(port: int, claude: str) -> Iterator[Stage]:
    """The demo after its story, served on until the block ends. `claude` is where Claude Code would keep its files."""
    command = [sys.executable, "-m", "rookery.entry", "demo", "--port", str(port)]
    env = {**os.environ, "CLAUDE_CONFIG_DIR": claude}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            folder = ""
            for line in process.stdout:
                found = re.search(r"A fleet at work in (/\S+?)(?:,|\.$)", line)
                folder = found[1] if found else folder
                if "still served" in line:
                    break
            else:
                sys.exit("the demo did not reach its end; `rookery demo` shows why")
            yield Stage(folder)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()


class Camera:
    """Takes pictures, and remembers what went wrong on the pages."""

    def __init__(self, browser: Browser, origin: str, folder: Path) -> None:
        self.wrong: list[str] = []
        self._browser = browser
        self._origin = origin
        self.folder = folder

    def context(self, screen: str, theme: str, kept: StorageState | None = None) -> BrowserContext:
        return self._browser.new_context(
            base_url=self._origin,
            viewport=SCREENS[screen],
            has_touch=bool(screen),
            color_scheme="dark" if theme == "dark" else "light",
            locale="en-GB",
            timezone_id="Europe/Vienna",
            reduced_motion="reduce",
            storage_state=kept,
        )

    def sign_in(self, link: str) -> StorageState:
        """What a browser that is signed in keeps. Takes the pages before that, too."""
        for theme, screen in product(THEMES, SCREENS):
            with closing(self.context(screen, theme)) as stranger:
                self.take(stranger, "/sign-in", self.folder / f"sign-in-{theme}{screen}.png")
                self.take(stranger, link, self.folder / f"sign-in-link-{theme}{screen}.png")
        with closing(self.context("", "light")) as context:
            page = context.new_page()
            page.goto(link)
            page.get_by_role("button", name="Sign in").click()
            page.locator("main#content").wait_for()
            return context.storage_state()

    def take(self, context: BrowserContext, path: str, picture: Path, *, whole: bool = True) -> None:
        """One page: all of it, or its first screen."""
        page = context.new_page()
        page.on("console", lambda message: self._heard(path, message))
        page.on("pageerror", lambda error: self.wrong.append(f"{path}: {error}"))
        answer = page.goto(path)
        if answer is None or answer.status != 200:
            self.wrong.append(f"{path}: answered {answer.status if answer else 'nothing'}")
        # Parts that fetch themselves have no end that a page tells of.
        page.wait_for_timeout(SETTLE_MS)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            self.wrong.append(f"{path}: wider than the screen in {picture.name}")
        if whole:
            self._grow(page)
        page.screenshot(path=picture)
        page.close()
        print(picture, flush=True)

    def _grow(self, page: Page) -> None:
        """Make the screen as high as the page, so that what keeps its place on it reaches down as it does."""
        size, height = page.viewport_size, int(page.evaluate("document.documentElement.scrollHeight"))
        if size is not None and height > size["height"]:
            page.set_viewport_size(ViewportSize(width=size["width"], height=height))

    def pages(self, context: BrowserContext) -> dict[str, str]:
        """The addresses of all pages by the names of their pictures."""
        pages, missing = find_pages(lambda path: context.request.get(path).text())
        self.wrong += [f"{path}: no page has a link there" for path in missing]
        return pages

    def _heard(self, path: str, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{path}: {message.text}")


def take_all(camera: Camera, kept: StorageState, only: Collection[str]) -> None:
    """Every page, or those whose names are given, on every screen and in every theme."""
    with closing(camera.context("", "light", kept)) as context:
        pages = camera.pages(context)
    for theme, screen in product(THEMES, SCREENS):
        with closing(camera.context(screen, theme, kept)) as context:
            for name, path in pages.items():
                if not only or name in only:
                    camera.take(context, path, camera.folder / f"{name}-{theme}{screen}.png")


def take_readme(camera: Camera, kept: StorageState) -> None:
    """The two pictures of the README, of one screen each."""
    IMAGES.mkdir(exist_ok=True)
    with closing(camera.context("", "light", kept)) as context:
        for name, path in README.items():
            picture = IMAGES / f"{name}.png"
            camera.take(context, path, picture, whole=False)
            if picture.stat().st_size > MOST_README_BYTES:
                camera.wrong.append(f"{picture} has {picture.stat().st_size:,} bytes, more than {MOST_README_BYTES:,}")


async def filled(platform: Platform, stage: Stage, port: int) -> str:
    """Fill in what the demo leaves out. Gives the link that signs a browser in."""
    fleet = Fleet(platform, Path(stage.folder))
    try:
        await fill(fleet, Path(stage.scripts))
        return await sign_in_address(platform, port)
    finally:
        await fleet.close()


def take(wanted: argparse.Namespace, port: int, link: str) -> list[str]:
    """All pictures that are wanted; gives what was wrong with the pages."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=wanted.chromium, args=FLAGS)
        camera = Camera(browser, f"http://127.0.0.1:{port}", wanted.folder)
        kept = camera.sign_in(link)
        take_all(camera, kept, wanted.only)
        if wanted.readme:
            take_readme(camera, kept)
        browser.close()
    return camera.wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("chromium")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these pages alone")
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="rookery-pictures-") as claude, demo(port, claude) as stage:
        write_transcript(Path(claude))
        with closing(make_platform(stage.settings(port), prepare=False)) as platform:
            link = asyncio.run(filled(platform, stage, port))
        wrong = take(wanted, port, link)
    for each in dict.fromkeys(wrong):
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
