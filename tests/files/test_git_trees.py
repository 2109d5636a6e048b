"""What a commit holds, read from real repositories."""

import os
from pathlib import Path

import pytest

from rookery.core.errors import ValidationFailed
from rookery.files.git import open_repository, resolve
from rookery.files.git_trees import blob_at, texts_among, tree_files
from tests.domains.tracker.desk import git


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("print(1)\n", encoding="utf-8")
    (folder / "src" / "[x]*.py").write_text("print(2)\n", encoding="utf-8")
    (folder / "grüße.txt").write_text("hallo\n", encoding="utf-8")
    (folder / "logo.png").write_bytes(b"\x89PNG\0\1\2")
    (folder / "empty.py").write_bytes(b"")
    (folder / "link.py").symlink_to("src/a.py")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_a_commit_that_is_not_there_is_refused(folder: Path) -> None:
    repository = open_repository(str(folder))
    with pytest.raises(ValidationFailed):
        tree_files(repository, "0" * 40)
    with pytest.raises(ValidationFailed):
        blob_at(repository, "0" * 40, "src/a.py")


def test_the_regular_files_of_a_commit_are_listed_with_their_hashes_whatever_the_folder_has_now(folder: Path) -> None:
    repository = open_repository(str(folder))
    commit = resolve(repository, "main")
    (folder / "src" / "a.py").write_text("changed\n", encoding="utf-8")
    (folder / "new.py").write_text("new\n", encoding="utf-8")
    found = {file.path: file for file in tree_files(repository, commit)}
    assert set(found) == {"src/a.py", "src/[x]*.py", "grüße.txt", "logo.png", "empty.py"}
    assert found["src/a.py"].blob == git(folder, "rev-parse", "main:src/a.py").strip()
    assert (found["src/a.py"].size, found["empty.py"].size) == (9, 0)


def test_a_name_that_is_not_utf8_is_left_out(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.py")).write_text("x\n", encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "second")
    repository = open_repository(str(folder))
    assert all(file.path.isprintable() for file in tree_files(repository, resolve(repository, "main")))


def test_one_file_is_found_by_its_name_and_by_nothing_else(folder: Path) -> None:
    repository = open_repository(str(folder))
    commit = resolve(repository, "main")
    assert blob_at(repository, commit, "src/a.py") == git(folder, "rev-parse", "main:src/a.py").strip()
    assert blob_at(repository, commit, "src/[x]*.py") == git(folder, "rev-parse", "main:src/[x]*.py").strip()
    for path in ("src", "src/*.py", "no.py", "link.py", "src/a.py/x", "--help"):
        assert blob_at(repository, commit, path) is None


def test_of_some_files_those_with_text_are_told(folder: Path) -> None:
    repository = open_repository(str(folder))
    commit = resolve(repository, "main")
    paths = ["src/a.py", "src/[x]*.py", "grüße.txt", "logo.png", "empty.py", "no.py"]
    assert texts_among(repository, commit, paths) == {"src/a.py", "src/[x]*.py", "grüße.txt"}
    assert texts_among(repository, commit, ["logo.png"]) == set()
    assert texts_among(repository, commit, []) == set()
