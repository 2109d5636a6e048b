"""What changed in a project's own checkout while an agent worked elsewhere."""

import os
from pathlib import Path

import pytest

from rookery.engine.workspaces import Site, changed_outside, marks_outside, prepare
from tests.domains.work.workshop import git
from tests.engine.yard import IDENTIFIER, ISSUE, commit, make_site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


def write(site: Site, name: str, text: str) -> None:
    path = Path(site.repository, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


async def test_what_an_agent_does_in_its_own_workspace_is_not_outside(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    before = marks_outside(site)
    commit(made.path, "a.txt")
    Path(made.path, "b.txt").write_text("b", encoding="utf-8")
    assert changed_outside(site, before) == []


def test_every_kind_of_change_is_seen(site: Site) -> None:
    write(site, "dirty.txt", "one")
    write(site, "new/one.txt", "one")
    write(site, "undone.txt", "one")
    before = marks_outside(site)
    write(site, "README.md", "changed")
    write(site, "dirty.txt", "other")
    write(site, "new/Über two.txt", "two")
    os.unlink(Path(site.repository, "undone.txt"))
    assert changed_outside(site, before) == ["README.md", "dirty.txt", "new/Über two.txt", "undone.txt"]


def test_what_was_dirty_before_and_is_left_alone_is_not_told(site: Site) -> None:
    write(site, "README.md", "changed")
    write(site, "new.txt", "new")
    git(site.repository, "add", "new.txt")
    assert changed_outside(site, marks_outside(site)) == []


def test_a_commit_there_is_told_and_a_merge_is_not(site: Site) -> None:
    git(site.repository, "checkout", "-q", "-b", "work")
    commit(site.repository, "a.txt")
    git(site.repository, "checkout", "-q", "main")
    before = marks_outside(site)
    git(site.repository, "merge", "-q", "--ff-only", "work")
    assert changed_outside(site, before) == []
    commit(site.repository, "b.txt")
    assert changed_outside(site, before) == ["HEAD: commit: add b.txt"]


def test_a_checkout_that_cannot_be_read_tells_nothing(site: Site) -> None:
    before = marks_outside(site)
    os.rename(site.repository, f"{site.repository}-moved")
    assert changed_outside(site, before) == []
    assert marks_outside(site).files == {}


def test_looking_changes_nothing(site: Site) -> None:
    index = Path(site.repository, ".git", "index")
    os.utime(Path(site.repository, "README.md"), (1, 1))
    before = index.read_bytes()
    marks_outside(site)
    assert index.read_bytes() == before
