"""Repositories in which somebody else is at work, or was: waited for, told, and not mended behind anybody's back."""

import os
import threading
import time
from pathlib import Path

import pytest

from rookery.core.errors import RookeryError, ServiceUnavailable
from rookery.engine import worktrees
from rookery.engine.workspaces import Site, discard, prepare, reading_copy
from tests.domains.work.workshop import git
from tests.engine.yard import IDENTIFIER, ISSUE, commit, make_site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktrees, "BUSY_S", 0.0)


def lock(site: Site, *names: str, age_s: float = 0.0) -> Path:
    path = Path(site.repository, ".git", *names)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - age_s, time.time() - age_s))
    return path


@pytest.mark.usefixtures("impatient")
async def test_a_branch_that_another_git_holds_is_worth_another_try(site: Site) -> None:
    held = lock(site, "refs", "heads", "rookery", "SHO-1.lock")
    with pytest.raises(ServiceUnavailable, match=r"the repository is busy: .*SHO-1.lock': File exists") as refused:
        await prepare(site, ISSUE, IDENTIFIER)
    assert refused.value.retryable
    held.unlink()
    assert (await prepare(site, ISSUE, IDENTIFIER)).branch == "rookery/SHO-1"


async def test_a_lock_that_goes_away_in_time_is_no_trouble(site: Site) -> None:
    held = lock(site, "refs", "heads", "rookery", "SHO-1.lock")
    going = threading.Timer(0.3, held.unlink)
    going.start()
    assert (await prepare(site, ISSUE, IDENTIFIER)).created
    going.join()


async def test_a_main_checkout_in_which_git_is_at_work_is_no_trouble(site: Site) -> None:
    held = lock(site, "index.lock")
    made = await prepare(site, ISSUE, IDENTIFIER)
    copy = await reading_copy(site, "dsp_1", None)
    await discard(site, copy)
    assert held.exists()
    assert git(made.path, "status", "--porcelain") == ""


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock"])
async def test_a_lock_in_the_workspace_is_that_of_a_git_that_died_once_it_is_old(site: Site, name: str) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    own = Path(git(made.path, "rev-parse", "--git-dir"), name)
    young = lock(site, "worktrees", own.parent.name, name)
    assert own == young
    with pytest.raises(ServiceUnavailable, match=name):
        await prepare(site, ISSUE, IDENTIFIER)
    assert young.exists()
    lock(site, "worktrees", own.parent.name, name, age_s=worktrees.STALE_S + 1)
    await prepare(site, ISSUE, IDENTIFIER)
    assert not own.exists()
    commit(made.path, "a.txt")


async def test_a_lock_that_a_killed_git_left_on_the_branch_goes_once_it_is_old(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    held = lock(site, "refs", "heads", f"{made.branch}.lock", age_s=worktrees.STALE_S + 1)
    await prepare(site, ISSUE, IDENTIFIER)
    assert not held.exists()


async def test_what_the_file_system_refuses_is_told(site: Site) -> None:
    Path(site.root).write_text("a file", encoding="utf-8")
    with pytest.raises(RookeryError, match=r"could not be made or removed: .*trees"):
        await prepare(site, ISSUE, IDENTIFIER)
    notes = Path(site.repository, ".git", "rookery")
    notes.rename(notes.with_name("elsewhere"))
    notes.write_text("a file", encoding="utf-8")
    with pytest.raises(ServiceUnavailable, match=r"nothing can be written to .*rookery/locks"):
        await prepare(site, ISSUE, IDENTIFIER)
