"""Copies for reading: at one commit, for one reader, and gone without a trace."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rookery.core.errors import ValidationFailed
from rookery.engine.workspace_copies import KEPT_S
from rookery.engine.workspaces import Site, discard, prepare, reading_copy
from tests.domains.work.workshop import git
from tests.engine.yard import IDENTIFIER, ISSUE, commit, make_site, state_of


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


async def test_nothing_but_a_copy_is_thrown_away(site: Site, tmp_path: Path) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    (tmp_path / "other").mkdir()
    for path in (made.path, site.repository, site.root, f"{site.reading}/..", str(tmp_path / "other"), "/"):
        with pytest.raises(ValidationFailed, match="is no copy for reading"):
            await discard(site, path)
    assert Path(made.path, ".git").exists()


async def test_a_commit_or_branch_that_is_not_there_is_told(site: Site) -> None:
    for commit_ in ("0" * 40, "nowhere", "--detach", "main~1"):
        with pytest.raises(ValidationFailed, match=r"there is no (commit|branch)"):
            await reading_copy(site, "dsp_1", commit_)
    with pytest.raises(ValidationFailed, match="the base branch"):
        await reading_copy(replace(site, base_branch="gone"), "dsp_1", None)


async def test_a_copy_is_at_its_commit_and_on_no_branch(site: Site) -> None:
    first = git(site.repository, "rev-parse", "HEAD")
    commit(site.repository, "later.txt")
    old, new = await reading_copy(site, "dsp_1", first), await reading_copy(site, "dsp_2", None)
    assert not Path(old, "later.txt").exists()
    assert Path(new, "later.txt").exists()
    assert git(old, "branch", "--show-current") == git(new, "branch", "--show-current") == ""


async def test_what_was_done_in_a_copy_is_gone_with_it(site: Site) -> None:
    before = state_of(site.repository), git(site.repository, "for-each-ref")
    copy = await reading_copy(site, "dsp_1", None)
    commit(copy, "a.txt")
    Path(copy, "shut").mkdir()
    Path(copy, "shut", "file").touch()
    Path(copy, "shut").chmod(0o500)
    await discard(site, copy)
    await discard(site, copy)
    assert not os.path.lexists(copy)
    assert git(site.repository, "worktree", "list").count("\n") == 0
    assert (state_of(site.repository), git(site.repository, "for-each-ref")) == before
    assert os.listdir(site.reading) == [".removed"]
    assert os.listdir(f"{site.reading}/.removed") == []


async def test_a_copy_that_a_killed_reader_left_is_made_anew(site: Site) -> None:
    copy = await reading_copy(site, "dsp_1", None)
    Path(copy, "README.md").write_text("spoiled", encoding="utf-8")
    git(site.repository, "worktree", "lock", copy)
    assert await reading_copy(site, "dsp_1", None) == copy
    assert git(copy, "status", "--porcelain") == ""


async def test_copies_that_nobody_threw_away_go_when_they_are_old(site: Site) -> None:
    left, in_use = await reading_copy(site, "dsp_1", None), await reading_copy(site, "dsp_2", None)
    then = time.time() - KEPT_S - 1
    os.utime(Path(left, ".git"), (then, then))
    await reading_copy(site, "dsp_3", None)
    assert not os.path.lexists(left)
    assert os.path.lexists(in_use)


async def test_a_link_in_the_place_of_a_copy_goes_and_what_it_leads_to_stays(site: Site, tmp_path: Path) -> None:
    copy = await reading_copy(site, "dsp_1", None)
    os.rename(copy, tmp_path / "kept")
    os.symlink(tmp_path / "kept", copy)
    await discard(site, copy)
    assert not os.path.lexists(copy)
    assert (tmp_path / "kept" / "README.md").exists()


async def test_a_copy_goes_though_its_repository_is_gone(site: Site) -> None:
    copy = await reading_copy(site, "dsp_1", None)
    os.rename(site.repository, f"{site.repository}-moved")
    await discard(site, copy)
    assert not os.path.lexists(copy)


@pytest.mark.parametrize("name", ["../../x", "..", "", "gates-fnd_1", "ä" * 400])
async def test_no_name_leads_elsewhere(site: Site, name: str) -> None:
    copy = await reading_copy(site, name, None)
    assert os.path.dirname(os.path.realpath(copy)) == site.reading
