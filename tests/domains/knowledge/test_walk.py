"""Which files of a tree are taken for documents."""

from pathlib import Path

import pytest

from rookery.core.errors import InvalidParams
from rookery.domains.knowledge.walk import covered, files_below, patterns


def test_a_pattern_that_means_nothing_is_refused() -> None:
    with pytest.raises(InvalidParams):
        patterns(["!"])


def test_nothing_hidden_installed_linked_or_unknown_is_found(tmp_path: Path) -> None:
    for name in ("b.md", "a.md", "sub/c.py", ".git/d.md", "node_modules/x/e.md", "f.png", ".env", "sub/g"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x", encoding="utf-8")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "link.md").symlink_to(tmp_path / "a.md")
    assert list(files_below(str(tmp_path), ())) == [("a.md",), ("b.md",), ("sub", "c.py")]
    assert list(files_below(str(tmp_path), ("sub",))) == [("sub", "c.py")]
    assert list(files_below(str(tmp_path), ("f.png",))) == [("f.png",)]


def test_folders_and_patterns_say_what_belongs_to_a_vault() -> None:
    assert covered(("any", "file"), (), ())
    assert covered(("docs", "a.md"), ("docs",), ("*.md",))
    assert covered(("docs", "deep", "a.md"), ("docs/deep/", "x"), ())
    assert not covered(("docs2", "a.md"), ("docs",), ())
    assert not covered(("docs", "a.txt"), ("docs",), ("*.md",))
    assert not covered(("docs", ".secret", "a.md"), ("docs",), ())
