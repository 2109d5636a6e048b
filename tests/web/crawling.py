"""A played demo, and every page of its console that can be reached."""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from rookery.web.routing import addresses
from tests.server.processes import environment
from tests.warm import run
from tests.web.poison import Looked
from tests.web.site import Viewer

DEMO_LIMIT_S = 120.0
MOST_PAGES = 150
MOST_BYTES = 3_000_000


@contextmanager
def played() -> Iterator[Path]:
    """The home of a demo whose story is over."""
    folder = Path(tempfile.mkdtemp(prefix="rookery-"))
    env = environment(folder, None, TMPDIR=str(folder))
    told = run([sys.executable, "-m", "rookery.entry", "demo", "--headless", "--keep"], env=env, limit_s=DEMO_LIMIT_S)
    assert told.returncode == 0, told.stderr[-2000:]
    yield next(folder.glob("rookery-demo-*")) / "home"
    shutil.rmtree(folder, ignore_errors=True)


def cookies_of(viewer: Viewer) -> httpx2.Cookies:
    return httpx2.Cookies({each.get("name", ""): each.get("value", "") for each in viewer.context.cookies()})


def crawl(origin: str, cookies: httpx2.Cookies, begin: tuple[str, ...] = ()) -> dict[str, Looked]:
    """Every page that can be reached from the menu and from `begin`, by its path, one of each kind of query."""
    fixed = sorted({each.path for each in addresses() if each.method == "GET" and "{" not in each.path})
    waiting = [*fixed, *begin]
    seen: dict[str, Looked] = {}
    with httpx2.Client(base_url=origin, cookies=cookies, timeout=60) as client:
        while waiting and len(seen) < MOST_PAGES:
            path = waiting.pop(0)
            if kind_of(path) in {kind_of(each) for each in seen}:
                continue
            answer = client.get(path)
            if not answer.headers.get("content-type", "").startswith("text/html"):
                continue
            seen[path] = page = Looked(answer.text)
            page.wrong += [f"answered with {answer.status_code}"] if answer.status_code >= 500 else []
            page.wrong += [f"{len(answer.content)} bytes"] if len(answer.content) > MOST_BYTES else []
            waiting += page.links
    return seen


def kind_of(path: str) -> str:
    """Pages of one kind are visited a few times only: ids are all the same to it."""
    parts = urlsplit(path)
    query = ",".join(sorted(re.findall(r"([a-z_]+)=", parts.query)))
    return re.sub(r"[0-9a-f]{12,}|(?<=/audit/)[0-9]+", "ID", parts.path) + f"?{query}"


def one_of_each(paths: Iterator[str]) -> list[str]:
    """The first of the paths for every address of the console, those with a project before others."""
    patterns = {each.path: _pattern(each.path) for each in addresses() if each.method == "GET"}
    found: dict[str, str] = {}
    for path in sorted(paths, key=lambda path: "project=" not in path):
        bare = urlsplit(path).path
        name = next((name for name, pattern in patterns.items() if pattern.fullmatch(bare)), None)
        if name is not None:
            found.setdefault(name, path)
    return sorted(found.values())


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]*\})", path)
    return re.compile(
        "".join(("[^/]+" if ":path" not in part else ".+") if part[:1] == "{" else re.escape(part) for part in parts)
    )
