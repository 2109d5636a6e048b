"""Which pages there are to take: all that the console declares, found as a person finds them, by links."""

import html
import re
from collections.abc import Callable
from re import Pattern

from starlette.routing import compile_path

from rookery.web.routing import Address, addresses

PROJECT = "shop"
ASIDE = {
    "/asks/{id}/input",
    "/audit/export",
    "/issues/{identifier}/diff/files/{number}",
    "/issues/{identifier}/diff/text",
    "/issues/{identifier}/timeline/{kind}/{key}",
    "/runs/{id}/events/{number}",
    "/runs/{id}/steps/{number}",
    "/sessions/{id}/older",
    "/tokens",
    "/waiting",
}
"""What is no page of its own: parts that pages fetch, files, and addresses that lead to another."""
CHOSEN = {
    "/agents/{name}": "/agents/ada",
    "/issues/{identifier}": "/issues/SHO-001",
    "/issues/{identifier}/diff": "/issues/SHO-001/diff",
    "/issues/{identifier}/artifacts/{phase}": "/issues/TIL-001/artifacts/research",
    "/profiles/{type}": "/profiles/worker",
}
"""The one to take where it matters which."""
FIRST = ("/sessions?state=running", "/runs?status=running")
"""Where the links to the more lively ones are."""
VARIANTS = {
    "agents-profiles": "/agents?tab=profiles",
    "agents-bundles": "/agents?tab=bundles",
    "agents-grants": "/agents?tab=grants",
    "agents-tokens": "/agents?tab=tokens",
    "asks-answered": "/asks?tab=answered",
    "board-one-label": "/board?label=web",
    "health-tests": "/health?tab=tests",
    "health-coverage": "/health?tab=coverage",
    "issue-merged": "/issues/TIL-001",
    "knowledge-found": "/knowledge?q=voucher",
    "knowledge-learnings": "/knowledge?tab=learnings",
    "knowledge-memories": "/knowledge?tab=memories",
    "setup-project": "/setup?step=project",
    "setup-agent": "/setup?step=agent",
}
"""Other looks of the same addresses."""
_LINK = re.compile(r'href="(/[^"#]*)')
_RUN = re.compile(r"/runs/(run-\w+)")


def of_project(path: str) -> str:
    return path if "project=" in path else f"{path}{'&' if '?' in path else '?'}project={PROJECT}"


def name_of(path: str) -> str:
    """What a picture is called: the address, with `one` for what varies."""
    words = ["one" if word.startswith("{") else word for word in path.strip("/").split("/") if word]
    return "-".join(words) or "home"


def find_pages(read: Callable[[str], str]) -> tuple[dict[str, str], list[str]]:
    """Where to go for each picture, and the declared pages to which no link leads. `read` gives a page's text."""
    patterns = {each.path: compile_path(each.path)[0] for each in _declared() if each.path not in ASIDE}
    found = {path: path if path == "/" else of_project(path) for path in patterns if "{" not in path}
    found.update({path: of_project(chosen) for path, chosen in CHOSEN.items() if path in patterns})
    variants = {name: of_project(path) for name, path in VARIANTS.items()}
    ways = [*map(of_project, FIRST), *found.values(), *variants.values()]
    runs: dict[str, None] = {}
    for way in ways:
        text = read(way)
        runs.update(dict.fromkeys(_RUN.findall(text)))
        for link in map(html.unescape, _LINK.findall(text)):
            pattern = _which(patterns, link)
            if pattern is not None and pattern not in found:
                found[pattern] = of_project(link)
                ways.append(found[pattern])
    pages = {name_of(path): found[path] for path in patterns if path in found}
    if len(runs) > 1:
        one, other = list(runs)[:2]
        variants["runs-compare-two"] = of_project(f"/runs/compare?a={one}&b={other}")
    return {**pages, **variants}, [path for path in patterns if path not in found]


def _declared() -> list[Address]:
    return [each for each in addresses() if each.method == "GET"]


def _which(patterns: dict[str, Pattern[str]], link: str) -> str | None:
    """The first that matches: those without a part that varies come first."""
    place = link.partition("?")[0]
    return next((path for path, pattern in patterns.items() if pattern.match(place)), None)
