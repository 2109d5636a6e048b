"""The index under bad conditions: parsers that die, processes side by side, a kernel that tells nothing, real git."""

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.core.errors import RookeryError
from rookery.domains.code import noticing, store, trees
from rookery.domains.code.ignoring import ignored, rules_of
from rookery.domains.code.matching import fold, lines_like
from rookery.domains.code.segment import Segment, bucket_of, defined_in, line_of, mentioned_in
from rookery.domains.code.tables import files, projects
from rookery.domains.code.workers import Worker, WorkerLost, Workers
from tests.domains.code.codebase import Codebase
from tests.platform_fixtures import Fleet

DEADLY = """
import os
real = os.open
def fatal(path, *rest, **how):
    if path == "deadly.py":
        os.abort()
    return real(path, *rest, **how)
os.open = fatal
"""


@pytest.fixture
def deadly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a process that reads deadly.py dies of it."""
    place = tmp_path / "fatal"
    place.mkdir()
    (place / "sitecustomize.py").write_text(DEADLY)
    monkeypatch.setenv("PYTHONPATH", f"{place}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


async def test_a_file_that_kills_its_parser_costs_nobody_else_anything(codebase: Codebase, deadly: None) -> None:
    agent = await codebase.open({"a.py": "def a(): pass\n", "deadly.py": "def d(): pass\n", "z.py": "def z(): pass\n"})
    assert [each.rpartition(" ")[2] for each in await codebase.symbols(agent)] == ["a", "z"]
    assert codebase.kept["deadly.py"] == "unread"
    codebase.write("z.py", "def zz(): pass\n")
    assert [each.rpartition(" ")[2] for each in await codebase.symbols(agent)] == ["a", "zz"]


def test_a_process_that_died_is_noticed_and_none_is_left_behind(tmp_path: Path, deadly: None) -> None:
    (tmp_path / "deadly.py").write_text("")
    workers = Workers()
    worker = workers.take()
    pid = worker._process.pid  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(WorkerLost):
        worker.read(str(tmp_path), [("deadly.py", "")])
    other = workers.take()
    assert other.read(str(tmp_path), []) == ([], ([], [], "\n", {}))
    workers.give_back(other)
    assert workers.take() is other
    workers.give_back(other)
    workers.close()
    for each in (pid, other._process.pid):  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(ProcessLookupError):
            os.kill(each, 0)


async def test_a_process_that_starts_while_its_caller_leaves_is_kept_for_the_next(tmp_path: Path) -> None:
    workers = Workers()
    begins, may_go_on = threading.Event(), threading.Event()
    made: list[Worker] = []

    def slowly() -> Worker:
        begins.set()
        may_go_on.wait()
        made.append(Worker())
        return made[0]

    caller = asyncio.create_task(workers.begun(slowly))
    try:
        await asyncio.to_thread(begins.wait)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
    finally:
        may_go_on.set()
    # The thread that starts it is waited for.
    await asyncio.get_running_loop().shutdown_default_executor()
    try:
        assert workers.take() is made[0]
    finally:
        made[0].end()
        workers.close()


def test_a_process_has_nothing_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_MNEMONIC", "secret words")
    worker = Worker()
    try:
        worker.read(str(tmp_path), [])
        environment = Path(f"/proc/{worker._process.pid}/environ").read_bytes()  # pyright: ignore[reportPrivateUsage]
        assert b"secret" not in environment
    finally:
        worker.end()


async def test_where_changes_are_not_told_they_are_found_all_the_same(
    codebase: Codebase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def untold(self: object, root: str) -> None:
        raise OSError("there is no inotify here")

    monkeypatch.setattr(noticing.Notices, "__init__", untold)
    monkeypatch.setattr(trees, "UNTOLD_S", 0.0)
    agent = await codebase.open({"a.py": "def a(): pass\n"})
    assert await codebase.symbols(agent, "=a")
    codebase.write("a.py", "def changed(): pass\n")
    assert await codebase.symbols(agent, "=changed")
    assert codebase.watched.notices is None


async def test_too_many_folders_to_watch_are_walked(codebase: Codebase, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: object, folder: str) -> None:
        raise OSError("no more folders can be watched")

    monkeypatch.setattr(noticing.Notices, "enter", full)
    agent = await codebase.open({"a/b.py": "def a(): pass\n"})
    assert await codebase.symbols(agent, "=a")
    assert codebase.watched.notices is None


async def test_an_unchanged_file_with_a_new_time_is_not_parsed_again(codebase: Codebase) -> None:
    agent = await codebase.open({"a.py": "def a(): pass\n"})
    await codebase.symbols(agent)
    (before,) = codebase.rows(sa.select(files))
    os.utime(codebase.root / "a.py", ns=(1, 1))
    await codebase.symbols(agent)
    (after,) = codebase.rows(sa.select(files))
    assert (after.file_no, after.mtime_ns) == (before.file_no, 1)


async def test_two_servers_index_one_project_at_once(
    codebase: Codebase, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    agent = await codebase.open({f"m{n}.py": f"def f{n}(): pass\nf{n}()\n" for n in range(80)})
    other = Codebase.__new__(Codebase)
    other.fleet = make_fleet(database_url, extra={})
    there = other.fleet.actor(project="code")
    for word in ("first", "second"):
        codebase.write("m7.py", f"def {word}(): pass\n{word}()\n")
        found = await asyncio.gather(codebase.symbols(agent, limit=200), other.symbols(there, limit=200))
        assert found[0] == found[1]
        assert len(found[0]) == 80
        assert await other.references(there, word) == ["m7.py:2"]
    assert len(codebase.kept) == 80


async def test_many_calls_at_once_index_once(codebase: Codebase) -> None:
    agent = await codebase.open({f"m{n}.py": f"def f{n}(): pass\n" for n in range(30)})
    found = await asyncio.gather(*(codebase.symbols(agent, f"=f{n}") for n in range(10)))
    assert [len(each) for each in found] == [1] * 10
    assert codebase.rows(sa.select(sa.func.max(files.c.file_no)))[0][0] == 30


async def test_segments_with_few_files_become_one(codebase: Codebase) -> None:
    count = store.MANY_SPARSE
    agent = await codebase.open({f"m{n}.py": f"def f{n}(): pass\n" for n in range(count)})
    await codebase.symbols(agent)
    for n in range(count):
        codebase.write(f"m{n}.py", f"def g{n}(): pass\ng{n}()\n")
        assert await codebase.symbols(agent, f"=g{n}") == [f"m{n}.py:1-1 function g{n}"]
    assert codebase.count("segments") == count
    codebase.watched.stale = True
    names = [each.rpartition(" ")[2] for each in await codebase.symbols(agent, limit=200)]
    assert sorted(names) == sorted(f"g{n}" for n in range(count))
    assert codebase.count("segments") <= 4
    assert await codebase.references(agent, "g7") == ["m7.py:2"]
    (before,) = codebase.rows(sa.select(sa.func.max(files.c.file_no)))
    codebase.watched.stale = True
    await codebase.symbols(agent)
    assert codebase.rows(sa.select(sa.func.max(files.c.file_no))) == [before]


async def test_a_project_that_moves_is_indexed_anew(codebase: Codebase) -> None:
    agent = await codebase.open({"a.py": "def a(): pass\n"})
    assert await codebase.symbols(agent)
    codebase.fleet.platform.database.direct(
        lambda tx: tx.run(sa.update(projects).values(root="/elsewhere")), write=True
    )
    assert await codebase.symbols(agent) == ["a.py:1-1 function a"]
    assert len(codebase.kept) == 1


async def test_the_loop_goes_on_while_files_are_read(codebase: Codebase) -> None:
    body = "\n".join(f"def f{n}(a, b):\n    return a.x{n}(b)" for n in range(1500))
    agent = await codebase.open({f"m{n}.py": body for n in range(12)})
    longest, last = 0.0, time.monotonic()
    indexing = asyncio.create_task(codebase.symbols(agent, "=f7"))
    while not indexing.done():
        await asyncio.sleep(0)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert len(await indexing) == 12
    assert longest < 2.0


async def test_a_call_that_is_given_up_leaves_an_index_that_goes_on(codebase: Codebase) -> None:
    body = "\n".join(f"def f{n}(a, b):\n    return a.x{n}(b)" for n in range(800))
    agent = await codebase.open({f"m{n}.py": body for n in range(20)})
    given_up = asyncio.create_task(codebase.symbols(agent, "=f7"))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises((asyncio.CancelledError, RookeryError)):
        await given_up
    assert len(await codebase.symbols(agent, "=f7")) == 20


PATTERNS = [
    "*.py",
    "/a",
    "b/",
    "a/**",
    "!c.py",
    "**/d",
    "a/*/c.py",
    "[ab].py",
    "\\!x",
    "# no",
    "",
    "a/b",
    "?.py",
    "!b/",
    "*a*c*",
    "**/a/**/c.py",
    "**/b/**/*.*y",
    "[!a].py",
]
# Not `a**/c.py`: by its documentation git takes these asterisks for one, but in fact they go through folders.
PATHS = ["a.py", "c.py", "a/c.py", "a/b/c.py", "b/c.py", "b/d/x.py", "d/b.py", "x/d/y.py", "a/b/d/c.py"]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(PATTERNS), max_size=5), st.lists(st.sampled_from(PATTERNS), max_size=2))
def test_what_is_ignored_is_what_git_ignores(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], below: list[str]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    for path in PATHS:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    (root / ".gitignore").write_text("\n".join(top) + "\n")
    (root / "a" / ".gitignore").write_text("\n".join(below) + "\n")
    rules = {
        folder: found
        for folder in ("", "a/")
        if (found := rules_of((root / folder / ".gitignore").read_bytes(), folder)) is not None
    }

    def left_out(path: str) -> bool:
        """As a walk would: what is below an ignored folder is never reached."""
        parts = path.split("/")
        steps = ["/".join(parts[: n + 1]) + ("/" if n + 1 < len(parts) else "") for n in range(len(parts))]
        return any(
            ignored(step, tuple(each for folder, each in rules.items() if step != folder and step.startswith(folder)))
            for step in steps
        )

    told = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {path for path in PATHS if not left_out(path)} == set(told) - {".gitignore", "a/.gitignore"}


NAMES = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs", "Cf", "Cn", "Co")), min_size=1, max_size=8
)


@settings(deadline=None)
@given(st.lists(st.tuples(NAMES, st.lists(st.integers(1, 99), max_size=3, unique=True)), max_size=12))
def test_a_segment_gives_back_what_it_took(found: list[tuple[str, list[int]]]) -> None:
    segment = Segment()
    for name, lines in found:
        segment.mentions.setdefault(name.encode(), []).extend(segment.before + line for line in sorted(lines))
        segment.add((name,), [[name, "class", 1, 1, -1, 0, None]], 99)
    about, starts, defined, used = segment.packed()
    assert [each for (each,) in about] == [name for name, _ in found]
    for name, _ in found:
        line = line_of(defined, name)
        assert line is not None
        assert [each.file for each in defined_in(line)] == [n for n, (other, _) in enumerate(found) if other == name]
        lines_of = {n: sorted(lines) for n, (other, lines) in enumerate(found) if other == name and lines}
        mentioned = line_of(used[bucket_of(name)], name)
        assert mentioned is not None
        assert dict(mentioned_in(mentioned, starts)) == lines_of
        hits = lines_like({0: fold(defined)}, name, "exact")
        assert name in {defined[start:end].partition("\t")[0] for _, _, start, end in hits}


@settings(deadline=None)
@given(
    st.lists(st.text("abAB_", min_size=1, max_size=6), max_size=10, unique=True),
    st.text("abAB_x", min_size=1, max_size=4),
)
def test_names_are_found_as_by_looking_at_each(names: list[str], query: str) -> None:
    segment = Segment()
    segment.add(("x",), [[name, "class", 1, 1, -1, 0, None] for name in names], 1)
    text = segment.packed()[2]
    small = query.lower()

    def found(match: Literal["exact", "prefix", "fuzzy"]) -> set[str]:
        hits = lines_like({0: fold(text)}, query, match)
        return {text[start:end].partition("\t")[0] for _, _, start, end in hits}

    assert found("exact") == {name for name in names if name.lower() == small}
    assert found("prefix") == {name for name in names if name.lower().startswith(small)}
    containing = {name for name in names if small in name.lower()}
    if containing:
        assert found("fuzzy") == containing
