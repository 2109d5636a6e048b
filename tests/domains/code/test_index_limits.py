"""The index against those who would stop it: rules that take for ever, processes that cannot run, a full database."""

import dataclasses
import errno
import os
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from rookery.core.errors import DatabaseError, NotFound, ServiceUnavailable
from rookery.domains.code import search, store
from rookery.domains.code.ignoring import MAX_PATTERNS, ignored, rules_of
from rookery.domains.code.linear import linear
from rookery.domains.code.matching import lines_like
from rookery.domains.code.store import Index, Indexes
from rookery.domains.code.tables import projects
from rookery.domains.code.worker import MAX_MEMORY
from rookery.domains.code.workers import Worker, WorkerLost, Workers
from tests.domains.code.codebase import Codebase

ENDLESS = "*a" * 12 + "*b\n" + "**/a/" * 12 + "b\n" + "**/" + "*a*a*a/" * 12 + "b\n"


async def test_rules_that_try_everything_cost_nothing(codebase: Codebase) -> None:
    agent = await codebase.open({".gitignore": ENDLESS, "a" * 200 + ".py": "def found(): pass\n"})
    codebase.write("a/" * 40 + "x.py", "def deep(): pass\n")
    started = time.monotonic()
    assert len(await codebase.symbols(agent)) == 2
    assert time.monotonic() - started < 10.0
    rules = rules_of(ENDLESS.encode() * 300, "")
    assert rules is not None
    started = time.monotonic()
    assert not ignored(("a" * 60 + "/") * 60 + "x.py", (rules,))
    assert time.monotonic() - started < 1.0


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "/", "/**/", "**"]), min_size=1, max_size=9).map("".join),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join),
    st.sampled_from(["", "/"]),
)
def test_a_rewritten_rule_is_about_the_same_paths(line: str, path: str, end: str) -> None:
    for each in GitIgnoreSpec.from_lines([line]).patterns:
        regex: re.Pattern[str] | None = each.regex  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if regex is not None:
            before, after = regex.match(path + end), re.match(linear(regex.pattern), path + end)
            assert (before and (before.span(), before.groupdict())) == (after and (after.span(), after.groupdict()))


def test_rules_beyond_the_first_thousand_and_endless_lines_are_not_followed() -> None:
    rules = rules_of(b"x" * 5_000 + b"\n" + b"".join(b"f%d.py\n" % n for n in range(MAX_PATTERNS + 1)), "")
    assert rules is not None
    assert ignored(f"f{MAX_PATTERNS - 1}.py", (rules,))
    assert not ignored(f"f{MAX_PATTERNS}.py", (rules,))
    assert not ignored("x" * 5_000, (rules,))


@pytest.mark.filterwarnings("error")
def test_lines_end_where_git_ends_them_and_odd_sets_warn_nobody() -> None:
    rules = rules_of(b"a.py\r\nb\x0cc.py\n[[:alpha:]].py\n[a--b].py\n[a&&b]\n", "")
    assert rules is not None
    assert [path for path in ("a.py", "c.py", "b\x0cc.py", "x.py") if ignored(path, (rules,))] == ["a.py", "b\x0cc.py"]


async def test_folders_are_entered_down_to_a_depth(codebase: Codebase) -> None:
    agent = await codebase.open({"d/" * 60 + "x.py": "def deep(): pass\n", "d/" * 70 + "x.py": "def deeper(): pass\n"})
    assert [each.rpartition(" ")[2] for each in await codebase.symbols(agent)] == ["deep"]


async def test_what_is_elsewhere_or_gone_takes_nobodys_place(
    codebase: Codebase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_FOUND", 20)
    many = "".join(f"def test_{n}(): pass\n" for n in range(50))
    agent = await codebase.open(
        {"many.py": many, "far/one.py": "def my_long_test_name(): pass\nclass Contested: pass\n"}
    )
    found = await codebase.fleet.call(agent, "code_symbols", query="test", limit=5)
    assert (found.total, found.note) == (20, "only the best 20 are counted; more: cursor=next_cursor")
    both = ["far/one.py:2-2 class Contested", "far/one.py:1-1 function my_long_test_name"]
    assert await codebase.symbols(agent, "test", path="far") == both
    assert await codebase.symbols(agent, "test", kinds=["class"]) == both[:1]
    (codebase.root / "many.py").unlink()
    left = await codebase.fleet.call(agent, "code_symbols", query="test")
    assert left.total == 2
    assert not hasattr(left, "note")


def test_a_query_longer_than_any_name_is_not_looked_for() -> None:
    assert lines_like({0: f"\n{'ab' * 100}\t0.0.class\n"}, "ab" * 102, "fuzzy") == []
    assert len(lines_like({0: f"\n{'ab' * 100}\t0.0.class\n"}, "ab" * 101, "fuzzy")) == 1


def test_names_that_are_nearly_the_query_are_found_by_three_letters_that_they_share() -> None:
    text = "".join(f"\n{name}\t0.0.class" for name in ("numeric", "numerics", "number", "num_of_all_the_rest")) + "\n"
    near = lines_like({0: text}, "numreic", "fuzzy")
    assert [text[start:end].partition("\t")[0] for _, _, start, end in near] == ["numeric", "numerics"]


def _in_every_process(place: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have processes that start from now on run this first."""
    place.mkdir()
    (place / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", f"{place}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


async def test_processes_that_cannot_start_are_said_and_no_file_is_blamed(
    codebase: Codebase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await codebase.open({"a.py": "def a(): pass\n", "b.py": "def b(): pass\n"})
    with monkeypatch.context() as patch:
        broken = "import os\nos.write(2, b'so much text\\nno such library\\n')\nos._exit(1)\n"
        _in_every_process(tmp_path / "broken", broken, patch)
        with pytest.raises(ServiceUnavailable, match="can run: no such library"):
            await codebase.symbols(agent)
    assert codebase.kept == {}
    assert len(await codebase.symbols(agent)) == 2


async def test_processes_that_print_what_is_no_answer_are_said(
    codebase: Codebase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await codebase.open({"a.py": "def a(): pass\n"})
    for number, said in enumerate(("Welcome to this computer!", "\\1\\0\\0\\0\\0\\0\\0\\0?")):
        with monkeypatch.context() as patch:
            _in_every_process(tmp_path / str(number), f"import os\nos.write(1, b'{said}')\n", patch)
            with pytest.raises(ServiceUnavailable, match="no process that parses code can run"):
                await codebase.symbols(agent)
    assert codebase.kept == {}
    assert len(await codebase.symbols(agent)) == 1


async def test_processes_that_the_system_refuses_are_said(codebase: Codebase, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Worker) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    agent = await codebase.open({"a.py": "def a(): pass\n"})
    with monkeypatch.context() as patch:
        patch.setattr(Worker, "__init__", refused)
        with pytest.raises(ServiceUnavailable, match="Too many open files"):
            await codebase.symbols(agent)
    assert len(await codebase.symbols(agent)) == 1


def test_a_process_ends_by_itself_and_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless.py").write_text("")
    endless = (
        "import os, signal\nreal, alarm = os.open, signal.alarm\nsignal.alarm = lambda s: alarm(min(s, 1))\n"
        "def slow(path, *rest, **how):\n    while path == 'endless.py': pass\n    return real(path, *rest, **how)\n"
        "os.open = slow\n"
    )
    _in_every_process(tmp_path / "slow", endless, monkeypatch)
    worker = Workers().proven(str(tmp_path))
    pid = worker._process.pid  # pyright: ignore[reportPrivateUsage]
    assert os.getsid(pid) == pid
    assert f"Max address space         {MAX_MEMORY} " in Path(f"/proc/{pid}/limits").read_text()
    with pytest.raises(WorkerLost, match="-14"):
        worker.read(str(tmp_path), [("endless.py", "")])


async def test_a_write_that_fails_is_told_as_what_it_is(codebase: Codebase, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Indexes, no: int, answers: object) -> None:
        raise DatabaseError("the disk is full")

    agent = await codebase.open({f"m{n}.py": "def a(): pass\n" for n in range(5)})
    with monkeypatch.context() as patch:
        patch.setattr(Indexes, "save", full)
        with pytest.raises(DatabaseError, match="the disk is full"):
            await codebase.symbols(agent)
    assert len(await codebase.symbols(agent)) == 5


async def test_many_files_go_in_short_transactions(codebase: Codebase, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await codebase.open({f"old/m{n}.py": "def a(): pass\n" for n in range(10)})
    await codebase.symbols(agent)
    real, removed = Indexes.remove, list[int]()

    def remove(self: Indexes, no: int, paths: Sequence[str]) -> None:
        removed.append(len(paths))
        real(self, no, paths)

    monkeypatch.setattr(Indexes, "remove", remove)
    monkeypatch.setattr(store, "AT_ONCE", 4)
    shutil.rmtree(codebase.root / "old")
    assert await codebase.symbols(agent) == []
    assert removed == [4, 4, 2]
    assert (codebase.kept, codebase.count("segments"), codebase.count("words")) == ({}, 0, 0)


async def test_an_index_of_another_folder_is_emptied_in_portions(
    codebase: Codebase, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await codebase.open({f"m{n}.py": "" for n in range(store.AT_ONCE + 20)})
    await codebase.symbols(agent)
    codebase.fleet.platform.database.direct(
        lambda tx: tx.run(sa.update(projects).values(root="/elsewhere")), write=True
    )
    real, opened = Indexes.open, list[Index | None]()

    def open_(self: Indexes, project_id: str, root: str) -> Index | None:
        opened.append(real(self, project_id, root))
        return opened[-1]

    monkeypatch.setattr(Indexes, "open", open_)
    codebase.write("m1.py", "def a(): pass\n")
    assert len(await codebase.symbols(agent)) == 1
    assert [each is None for each in opened] == [True, False]
    assert len(codebase.kept) == store.AT_ONCE + 20


async def test_a_session_without_a_project_is_told_to_name_one(codebase: Codebase) -> None:
    await codebase.open({"a.py": "def a(): pass\n"})
    with pytest.raises(NotFound, match="this session has no project"):
        await codebase.symbols(dataclasses.replace(codebase.fleet.actor(), project=None), "a")
