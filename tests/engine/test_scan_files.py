"""Which files of a real repository a scanner may be given, and whether its branch has moved."""

from pathlib import Path

import pytest

from rookery.core.errors import ValidationFailed
from rookery.engine.scan_files import MAX_BYTES, branch_marks, scannable
from tests.domains.tracker.desk import git


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, {"src/a.py": "1\n", "src/b.py": "2\n", "docs/x.md": "# X\n"})
    return folder


def commit(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "more")


def paths(folder: Path, *patterns: str) -> list[str]:
    return [file.path for file in scannable(str(folder), "main", patterns or ("**",)).files]


def test_a_folder_that_is_no_repository_a_branch_and_a_pattern_that_are_none_are_refused(folder: Path) -> None:
    with pytest.raises(ValidationFailed, match="not the root of a git"):
        scannable(str(folder / "src"), "main", ("**",))
    with pytest.raises(ValidationFailed, match="no branch 'trunk'"):
        scannable(str(folder), "trunk", ("**",))
    with pytest.raises(ValidationFailed, match="not a path pattern"):
        scannable(str(folder), "main", ("[[:alpha:]&&[a]]" * 9,))


def test_patterns_choose_and_leave_out_as_in_gitignore(folder: Path) -> None:
    assert paths(folder) == ["docs/x.md", "src/a.py", "src/b.py"]
    assert paths(folder, "src/**", "!src/b.py") == ["src/a.py"]
    assert scannable(str(folder), "main", ()).files == []


def test_what_is_generated_empty_too_long_or_cannot_be_recorded_is_left_out(folder: Path) -> None:
    more = {"uv.lock": "x\n", "app.min.js": "x\n", "empty.py": "", "data.py": "x" * (MAX_BYTES + 1), "a\\b.py": "x\n"}
    commit(folder, {**more, "ok.py": "x\n", "line\nbreak.py": "x\n"})
    assert paths(folder) == ["docs/x.md", "ok.py", "src/a.py", "src/b.py"]


def test_the_marks_change_with_the_branch_and_with_nothing_else(folder: Path) -> None:
    first = branch_marks(str(folder), "main")
    (folder / "src" / "a.py").write_text("dirty\n", encoding="utf-8")
    git(folder, "branch", "other")
    assert branch_marks(str(folder), "main") == first
    commit(folder, {"src/c.py": "3\n"})
    second = branch_marks(str(folder), "main")
    assert second != first
    git(folder, "pack-refs", "--all")
    packed = branch_marks(str(folder), "main")
    assert packed != second
    git(folder, "update-ref", "refs/heads/main", "main~1")
    assert branch_marks(str(folder), "main") not in (second, packed)
