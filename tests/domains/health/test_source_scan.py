"""What is counted in the source of a project, and what is left alone."""

import hashlib
import os
import subprocess
import threading
from pathlib import Path

import pytest

from rookery.domains.health import source_scan
from rookery.domains.health.source_scan import SAMPLES, Scanned, Stopped, scan

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def counted(root: Path, *exclude: str, large_lines: int = 500) -> Scanned:
    return scan(str(root), exclude, large_lines, threading.Event())


def notes(found: Scanned) -> list[int]:
    return [found.notes[kind] for kind in (b"TODO", b"FIXME", b"HACK")]


def put(root: Path, path: str, text: str | bytes) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode() if isinstance(text, str) else text)


def repository(root: Path) -> Path:
    root.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True, env={**os.environ, **GIT}, timeout=60)
    return root


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=root, check=True, env={**os.environ, **GIT}, timeout=60, capture_output=True, text=True
    )
    return done.stdout


def indexed(root: Path, plain: str, written: str) -> None:
    """Let git's index have a name that git itself would not take, of the same length as a plain one."""
    index = root / ".git" / "index"
    index.unlink(missing_ok=True)
    put(root, plain, "x = 1\n")
    git(root, "add", plain)
    (root / plain).unlink()
    content = index.read_bytes()[:-20].replace(plain.encode(), written.encode())
    index.write_bytes(content + hashlib.sha1(content, usedforsecurity=False).digest())


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    put(secret, "a.py", "# TODO: not yours\n")
    root = tmp_path / "code"
    root.mkdir()
    (root / "linked").symlink_to(secret)
    (root / "one.py").symlink_to(secret / "a.py")
    os.mkfifo(root / "pipe.py")
    assert (counted(root).files, notes(counted(root))) == (0, [0, 0, 0])
    repository(root)
    assert (counted(root).files, notes(counted(root))) == (0, [0, 0, 0])


def test_a_name_in_gits_index_that_leads_out_is_not_read(tmp_path: Path) -> None:
    put(tmp_path, "x.py", "# TODO: not yours\n" * 600)
    put(tmp_path, "big.py", b"x" * (source_scan.MAX_BYTES + 1))
    root = repository(tmp_path / "code")
    (root / "linked").symlink_to(tmp_path)
    indexed(root, "aaaaa/x.py", ".././/x.py")
    assert ".././/x.py" in git(root, "ls-files")
    assert (counted(root).files, counted(root).large, notes(counted(root))) == (0, 0, [0, 0, 0])
    outside = str(tmp_path / "x.py")
    indexed(root, "a" * len(outside), outside)
    assert outside in git(root, "ls-files")
    assert (counted(root).files, notes(counted(root))) == (0, [0, 0, 0])
    # Not even its size is told of what lies behind a link.
    indexed(root, "linken/big.py", "linked/big.py")
    assert (counted(root).files, counted(root).large) == (0, 0)


def test_a_folder_that_is_not_there_is_an_error_and_no_zero(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        counted(tmp_path / "gone")


def test_whoever_is_told_to_stop_stops(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "x = 1\n")
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        scan(str(tmp_path), (), 500, stop)


def test_notes_are_words_and_count_once_a_line(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "# TODO one TODO\n# TODOS and MASTODON, todo\n# FIXME: HACK\n")
    put(tmp_path, "b/c.ts", "// HACK\n/* TODO */\n")
    put(tmp_path, "notes.md", "TODO: prose does not count\n")
    found = counted(tmp_path)
    assert (found.files, notes(found)) == (2, [2, 1, 2])
    assert found.samples == [
        "a.py:1: # TODO one TODO",
        "a.py:3: # FIXME: HACK",
        "b/c.ts:1: // HACK",
        "b/c.ts:2: /* TODO */",
    ]


def test_samples_are_few_short_and_printable(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "# TODO \x1b[31m red\x07\n" + f"# TODO {'x' * 500}\n" * 20)
    found = counted(tmp_path)
    assert notes(found)[0] == 21
    assert len(found.samples) == SAMPLES
    assert max(map(len, found.samples)) == 200
    assert all(sample.isprintable() for sample in found.samples)


def test_a_file_is_large_with_more_lines_than_the_limit(tmp_path: Path) -> None:
    put(tmp_path, "exact.py", "x\n" * 500)
    put(tmp_path, "more.py", "x\n" * 501)
    put(tmp_path, "open_end.py", "x\n" * 500 + "x")
    put(tmp_path, "empty.py", "")
    put(tmp_path, "lock.json", "x\n" * 9000)
    assert counted(tmp_path).large == 2
    assert counted(tmp_path, large_lines=1).large == 3
    assert counted(tmp_path, "more.py").large == 1


def test_mixed_encodings_and_binaries_do_no_harm(tmp_path: Path) -> None:
    put(tmp_path, "latin.py", "# TODO: Füße\n".encode("latin-1") + "# FIXME: Füße\n".encode())
    put(tmp_path, "binary.c", b"\x7fELF\0\0 TODO \n")
    put(tmp_path, os.fsdecode(b"odd-\xff.py"), "# HACK\n")
    found = counted(tmp_path)
    assert (found.files, notes(found)) == (2, [1, 1, 1])
    for sample in found.samples:
        sample.encode()


def test_a_file_beyond_the_size_limit_is_large_and_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_scan, "MAX_BYTES", 100)
    put(tmp_path, "huge.js", "// TODO\n" + "x" * 200)
    found = counted(tmp_path)
    assert (found.large, notes(found)) == (1, [0, 0, 0])


def test_more_files_than_are_ever_read_are_no_whole_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_scan, "MAX_FILES", 2)
    for number in range(3):
        put(tmp_path, f"{number}.py", "x\n")
    assert not counted(tmp_path).whole
    (tmp_path / "2.py").unlink()
    assert counted(tmp_path).whole


def test_what_git_ignores_or_others_installed_does_not_count(tmp_path: Path) -> None:
    for path in ("src/a.py", "node_modules/x/b.js", ".venv/c.py", "build/d.js", "src/x.min.js", "src/api_pb2.py"):
        put(tmp_path, path, "# TODO\n")
    assert notes(counted(tmp_path))[0] == 1
    repository(tmp_path)
    put(tmp_path, ".gitignore", "node_modules/\n.venv/\nout/\n")
    put(tmp_path, "out/e.py", "# TODO\n")
    # In a repository its own word counts: build/ is not ignored there.
    assert notes(counted(tmp_path))[0] == 2
    assert notes(counted(tmp_path, "build/", "!src"))[0] == 1


def test_a_folder_that_the_repository_around_it_ignores_is_looked_at_all_the_same(tmp_path: Path) -> None:
    repository(tmp_path)
    put(tmp_path, ".gitignore", "inner/\n")
    put(tmp_path, "inner/a.py", "# TODO\n")
    assert notes(counted(tmp_path / "inner"))[0] == 1


def test_a_hook_or_filter_of_the_repository_is_never_run(tmp_path: Path) -> None:
    root = repository(tmp_path / "code")
    put(root, "a.py", "# TODO\n")
    with (root / ".git" / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {tmp_path / "ran"}; false"\n')
    assert notes(counted(root))[0] == 1
    assert not (tmp_path / "ran").exists()
