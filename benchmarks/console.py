"""The console: what a board of 5,000 issues costs, how soon 200 open boards show a change, what the home page weighs.

The first is measured by `console_probe.py` in the application itself, on both databases, with the same statements on a
bare connection as its floor; the second by `console_viewers.py`, whose connections are those of browsers, against a
running server. The home page is fetched from that server, afterwards, with every file that it names.
"""

import json
import re
import statistics
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.launch import ROOT, Rookery, Server, clean_env, temporary_home
from benchmarks.postgres import PostgresDatabases, PostgresUnavailable, databases
from benchmarks.raw_client import MeasureError, last_words
from benchmarks.report import Group, Row

LIMIT_S = 600
ISSUES, VIEWERS = 5_000, 200
BOARD_TARGET_MS = 150.0
HOME_TARGET_KB = 250.0
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
FILES = re.compile(r'(?:src|href)="(/static/[^"]+)"')
FORM_TOKEN = re.compile(r'name="csrf" value="([^"]+)"')


def run(rookery: Rookery, quick: bool) -> Group:
    """Times of pages with their floors, delays of live boards, and the weight of the home page."""
    group = Group("console")
    calls, seconds = (20, 5) if quick else (60, 20)
    with ExitStack() as stack:
        made = postgres(group, stack)
        for name in (SQLITE, *([POSTGRES] if made is not None else [])):
            url = made() if made is not None and name == POSTGRES else ""
            try:
                board_pages(group, rookery, name, url, calls)
                live_boards(group, rookery, name, made() if made is not None and url else "", seconds)
            except (MeasureError, OSError) as error:
                group.problems.append(f"{name}: {error}")
    return group


def postgres(group: Group, stack: ExitStack) -> PostgresDatabases | None:
    try:
        return stack.enter_context(databases())
    except PostgresUnavailable as reason:
        group.problems.append(f"{POSTGRES}: {reason}")
        return None


def board_pages(group: Group, rookery: Rookery, name: str, url: str, calls: int) -> None:
    with temporary_home() as home:
        found = probe(rookery, home, "console_probe", [str(home), url, str(ISSUES), str(calls)])
    group.samples[f"pages, {name}"] = found
    for page, case in found["pages"].items():
        took, floor = sorted(case["took"]), statistics.median(case["floor"])
        middle = statistics.median(took)
        told = f"p50 {middle:6.1f}  p95 {took[len(took) * 95 // 100]:6.1f} ms  {case['bytes'] / 1024:5.0f} KB"
        target = (f"<= {BOARD_TARGET_MS:g} ms", middle <= BOARD_TARGET_MS) if page.startswith("board") else ("", None)
        group.rows.append(
            Row(f"{page}, {ISSUES} issues, {name}", told, middle / floor, "its statements alone", *target)
        )
    share = f"{100 * found['strangers']:.0f} % of all cores"
    group.rows.append(Row(f"other processes of the machine meanwhile, {name}", share))


def live_boards(group: Group, rookery: Rookery, name: str, url: str, seconds: int) -> None:
    extra = {"ROOKERY_DATABASE": url} if url else {}
    with rookery.up(extra) as server:
        words = [str(server.home), url, str(server.port), str(server.pid), str(ISSUES), str(VIEWERS), str(seconds)]
        found = probe(rookery, server.home, "console_viewers", words)
        if not url:
            home_weight(group, rookery, server)
    group.samples[f"live, {name}"] = found
    for elsewhere, whose in ((False, "a form of the server"), (True, "another process")):
        arrived = [at for each in found["moves"] if each["elsewhere"] is elsewhere for at in each["arrived_ms"]]
        moves = sum(each["elsewhere"] is elsewhere for each in found["moves"])
        if not moves:
            continue
        title = f"a change by {whose} reaches {VIEWERS} boards, {name}"
        group.rows.append(Row(title, f"{spread(arrived)}  {len(arrived)} of {moves * VIEWERS}",
                              target="all", ok=len(arrived) == moves * VIEWERS))  # fmt: skip
    meanwhile, alone = found["pages_ms"], statistics.median(found["pages_alone_ms"])
    ratio = statistics.median(meanwhile) / alone
    group.rows.append(Row(f"the board as a page meanwhile, {name}", spread(meanwhile), ratio, "without viewers"))
    sizes = found["rss_kb"]
    grown = (sizes["joined"] - sizes["alone"]) / VIEWERS
    share, ended_mb = found["cpu_share"], sizes["ended"] / 1024
    told = f"{100 * share:.0f} % of a core, {grown:.0f} KB a viewer, {ended_mb:.0f} MB at the end"
    group.rows.append(Row(f"the server with {VIEWERS} boards, {name}", told))


def home_weight(group: Group, rookery: Rookery, server: Server) -> None:
    """What a browser that has nothing yet fetches for the home page, uncompressed."""
    try:
        sizes = fetched(rookery, server)
    except (MeasureError, OSError, httpx2.HTTPError) as error:
        group.problems.append(f"home page: {error}")
        return
    group.samples["home"] = sizes
    group.limit(f"home page with its {len(sizes) - 1} files", sum(sizes.values()) / 1024, "KB", HOME_TARGET_KB)


def fetched(rookery: Rookery, server: Server) -> dict[str, int]:
    """The sizes of the home page and of every file that it names."""
    link = rookery.say(server.home, "login").split()[-1]
    base = f"http://127.0.0.1:{server.port}"
    link = link[link.index("/sign-in") :]
    with httpx2.Client(base_url=base, follow_redirects=True, headers={"accept-encoding": "identity"}) as client:
        offered = FORM_TOKEN.search(client.get(link).text)
        if offered is None:
            raise MeasureError("the link offers no form to sign in")
        client.post(link, data={"csrf": offered[1]})
        page = client.get("/")
        if "main" not in page.text or page.url.path != "/":
            raise MeasureError(f"the home page leads to {page.url}")
        sizes = {"/": len(page.content)}
        for name in dict.fromkeys(FILES.findall(page.text)):
            sizes[name] = len(client.get(name.replace("&amp;", "&")).content)
    return sizes


def probe(rookery: Rookery, home: Path, module: str, arguments: Sequence[str]) -> dict[str, Any]:
    command = [rookery.python, "-m", f"benchmarks.{module}", *arguments]
    try:
        done = subprocess.run(
            command, env=clean_env(rookery.env(home, {})), cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired as error:
        raise MeasureError(str(error)) from error
    if done.returncode:
        raise MeasureError(f"{module} failed: {last_words(done.stderr)}")
    return json.loads(done.stdout)


def spread(samples: Sequence[float]) -> str:
    ordered = sorted(samples)
    if not ordered:
        return "none"
    return f"p50 {statistics.median(ordered):6.1f}  p95 {ordered[len(ordered) * 95 // 100]:6.1f} ms"
