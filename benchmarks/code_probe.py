"""Times the code index on one tree and prints the samples as JSON: `-m benchmarks.code_probe HOME ROOT ROUNDS CALLS`.

Every round indexes the tree from nothing, on a home of its own, and has ctags do the same files right before and after.
Calls go through the call path that every door ends in, with the audit log on.
"""

import asyncio
import collections
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks import machine
from rookery.app import Platform, make_platform
from rookery.core.actor import Actor
from rookery.domains.code.extract import symbols_of
from rookery.domains.code.tables import files
from rookery.domains.code.trees import trees_of
from rookery.domains.code.walk import Walk
from rookery.identity.binding import Binding
from rookery.settings import Settings

PLAIN = ("--fields=+ne",)
WITH_REFERENCES = ("--fields=+ne", "--extras=+r")
ADDED = "def rookery_bench_{0}():\n    return {0}\n"
ADDED_SCRIPT = "function rookery_bench_{0}() {{ return {0}; }}\n"
LEAST = 4
"""Letters of the names that are asked for."""
MADE_UP, NAMED = ("anonymous", "AnonymousFunction"), "with a name of its own"
Defined = set[tuple[str, str, int]]


class Site:
    """A platform with one project, which has the tree as its folder."""

    def __init__(self, home: Path, root: Path) -> None:
        self.platform: Platform = make_platform(Settings(home=str(home), plugins=False))
        self.owner: Actor = self.platform.database.direct(
            lambda tx: self.platform.resolver.resolve(tx, Binding(as_owner=True))
        ).actor
        self.root = root

    async def create(self) -> None:
        await self.call("create_project", slug="code", path=str(self.root))

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return (await self.platform.calls.call(self.owner, tool, arguments)).structured

    async def timed(self, tool: str, **arguments: Any) -> float:
        """Milliseconds of one call."""
        started = time.perf_counter_ns()
        await self.call(tool, project_id="code", **arguments)
        return (time.perf_counter_ns() - started) / 1e6

    def forget(self) -> None:
        """Trust no notice: the next call walks the whole tree."""
        for each in trees_of(self.platform.calls)._watched.values():  # pyright: ignore[reportPrivateUsage]
            each.stale = True

    def outlines(self) -> dict[str, str]:
        rows = self.platform.database.direct(lambda tx: tx.all(sa.select(files.c.path, files.c.outline)))
        return {row.path: row.outline for row in rows}


@contextlib.contextmanager
def site(home: Path, root: Path) -> Iterator[Site]:
    made = Site(home, root)
    try:
        yield made
    finally:
        trees_of(made.platform.calls).close()
        made.platform.close()


def ctags(root: Path, listed: Path, options: tuple[str, ...], out: Path) -> float:
    """Seconds that ctags needs for the same files."""
    out.unlink(missing_ok=True)
    command = ["ctags", "--options=NONE", *options, "-L", str(listed), "-f", str(out)]
    started = time.perf_counter()
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return time.perf_counter() - started


async def round_of(home: Path, root: Path, listed: Path) -> dict[str, float]:
    """Ctags without and with references, and our index from nothing, one after the other."""
    out = home / "tags"
    home.mkdir(parents=True)
    cpu = cpu_seconds()
    took = {"ctags": ctags(root, listed, PLAIN, out)}
    took["ctags cpu"] = cpu_seconds() - cpu
    took["ctags +r"] = ctags(root, listed, WITH_REFERENCES, out)
    with site(home / "home", root) as here:
        await here.create()
        started, cpu = time.perf_counter(), cpu_seconds()
        await here.call("code_symbols", query="=nothing_of_this_name", project_id="code")
        took["index"] = time.perf_counter() - started
    # With that of its processes, which end here.
    took["index cpu"] = cpu_seconds() - cpu
    return took | {"ctags again": ctags(root, listed, PLAIN, out)}


def cpu_seconds() -> float:
    """What this process and those that it has waited for have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


async def asked(here: Site, calls: int) -> dict[str, list[float]]:
    """Calls of each kind, with names that the tree has."""
    dice = random.Random(8)
    outlines = here.outlines()
    paths = sorted(path for path, outline in outlines.items() if len(outline) > 2)
    every = {symbol.name for path in paths for symbol in symbols_of(outlines[path])}
    names = sorted(name for name in every if len(name) >= LEAST)
    some = [dice.choice(names) for _ in range(calls)]
    kinds: dict[str, Callable[[int], Any]] = {
        "code_symbols, a whole name": lambda n: here.timed("code_symbols", query=f"={some[n]}"),
        "code_symbols, its begin": lambda n: here.timed("code_symbols", query=f"{some[n][:6]}*"),
        "code_symbols, a part of it": lambda n: here.timed("code_symbols", query=some[n][1:]),
        "code_symbols, of a file": lambda n: here.timed("code_symbols", path=dice.choice(paths)),
        "find_references": lambda n: here.timed("find_references", symbol=some[n]),
        "ping, for comparison": lambda n: timed_ping(here),
    }
    took: dict[str, list[float]] = collections.defaultdict(list)
    for number in range(calls):
        for kind, step in kinds.items():
            took[kind].append(await step(number))
    return took


async def timed_ping(here: Site) -> float:
    started = time.perf_counter_ns()
    await here.call("ping")
    return (time.perf_counter_ns() - started) / 1e6


async def changed(here: Site, times: int) -> list[float]:
    """Milliseconds from the end of a change of a file to an answer that has it."""
    dice = random.Random(8)
    paths = sorted(path for path, outline in here.outlines().items() if len(outline) > 2)
    took: list[float] = []
    for number in range(times):
        file = here.root / dice.choice(paths)
        before = file.read_bytes()
        added = (ADDED if file.suffix == ".py" else ADDED_SCRIPT).format(number)
        try:
            file.write_bytes(before + b"\n" + added.encode())
            started = time.perf_counter_ns()
            found = await here.call("code_symbols", query=f"=rookery_bench_{number}", project_id="code")
            took.append((time.perf_counter_ns() - started) / 1e6)
            assert found["total"] == 1, file
        finally:
            file.write_bytes(before)
    return took


def recall(here: Site, listed: Path) -> dict[str, dict[str, list[int]]]:
    """Of the tags of each language and kind, how many are symbols of ours at the same line, and how many there are."""
    command = ["ctags", "--options=NONE", "--excmd=number", "--fields=+lK", "--sort=no", "-L", str(listed), "-f", "-"]
    printed = subprocess.run(command, cwd=here.root, check=True, capture_output=True).stdout.decode(errors="replace")
    ours: Defined = {
        (path, symbol.name, symbol.start) for path, text in here.outlines().items() for symbol in symbols_of(text)
    }
    found: dict[str, dict[str, list[int]]] = collections.defaultdict(dict)
    for line in printed.splitlines():
        name, path, number, kind, language = line.split("\t")[:5]
        kinds = found[language.removeprefix("language:")]
        # Ctags makes names up for functions that have none: these count, and the others are told apart from them.
        for counted in (kind, *(() if name.startswith(MADE_UP) else (f"{kind} {NAMED}",))):
            counts = kinds.setdefault(counted, [0, 0])
            counts[0] += (path, name, int(number.removesuffix(';"'))) in ours
            counts[1] += 1
    for kinds in found.values():
        for kind in [each for each in kinds if each.endswith(NAMED)]:
            if kinds[kind][1] == kinds[kind.removesuffix(f" {NAMED}")][1]:
                del kinds[kind]
    return found


async def measure(home: Path, root: Path, rounds: int, calls: int) -> dict[str, Any]:
    tree = Walk(str(root), lambda folder: None, lambda: None).run()
    listed = home / "listed"
    home.mkdir(parents=True, exist_ok=True)
    listed.write_text("".join(f"{path}\n" for path in sorted(tree.files)))
    watch = machine.CpuWatch.of(())
    made = [await round_of(home / f"round-{number}", root, listed) for number in range(rounds)]
    found: dict[str, Any] = {"rounds": made, "others": watch.stop()[1]}
    with site(home / "kept", root) as here:
        await here.create()
        await here.timed("code_symbols", query="=x")
        found["unchanged"] = []
        for _ in range(calls // 2):
            here.forget()
            found["unchanged"].append(await here.timed("code_symbols", query="=x"))
    found["restarted"] = []
    for _ in range(calls // 2):
        # All that a server knows goes with it; only the files of the database stay.
        with site(home / "kept", root) as here:
            found["restarted"].append(await here.timed("code_symbols", query="=x"))
    with site(home / "kept", root) as here:
        await here.timed("code_symbols", query="=x")
        found |= {"calls": await asked(here, calls), "changed": await changed(here, calls // 2)}
        found["recall"] = recall(here, listed)
    size = (home / "kept" / "rookery.db").stat().st_size
    return found | {"files": len(tree.files), "bytes": sum(size for _, size in tree.files.values()), "stored": size}


if __name__ == "__main__":
    many = [int(number) for number in sys.argv[3:]]
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1]), Path(sys.argv[2]), many[0], many[1]))))
