"""Workspaces in repositories as people have them, and as agents leave them."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rookery.core.errors import RookeryError, ServiceUnavailable
from rookery.domains.tracker.diff import parse_diff
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.worktree import diff_against
from rookery.engine import worktrees
from rookery.engine.approvals import merged_alone
from rookery.engine.project_settings import OrchestratorSettings
from rookery.engine.workspace_names import digest
from rookery.engine.workspaces import Site, changed_outside, discard, marks_outside, prepare, reading_copy, remove
from tests.domains.work.workshop import git
from tests.engine.yard import IDENTIFIER, ISSUE, commit, make_site, row_of


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


@pytest.mark.parametrize("where", ["the repository", "worktrees alone"])
async def test_filters_that_an_agent_set_up_run_in_no_workspace_and_in_no_copy(
    site: Site, tmp_path: Path, where: str
) -> None:
    evil = tmp_path / "evil"
    commit(site.repository, ".gitattributes", "* filter=evil\n")
    if where == "the repository":
        git(site.repository, "config", "filter.evil.smudge", f"touch {evil}; cat")
    else:
        (tmp_path / "more").write_text(f'[filter "evil"]\n\tsmudge = "touch {evil}; cat"\n', encoding="utf-8")
        git(site.repository, "config", "includeIf.gitdir:**/worktrees/**.path", str(tmp_path / "more"))
    await prepare(site, ISSUE, IDENTIFIER)
    await discard(site, await reading_copy(site, "judge", None))
    assert not evil.exists()


async def test_objects_that_are_missing_are_fetched_by_no_program_of_the_repository(site: Site, tmp_path: Path) -> None:
    commit(site.repository, "big.txt", "large\n")
    blob = git(site.repository, "rev-parse", "HEAD:big.txt")
    Path(site.repository, ".git", "objects", blob[:2], blob[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": f"ext::touch {tmp_path}/evil",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
    }.items():
        git(site.repository, "config", key, value)
    with pytest.raises(RookeryError):
        await prepare(site, ISSUE, IDENTIFIER)
    assert not (tmp_path / "evil").exists()


async def test_a_worktree_whose_name_is_several_lines_is_no_obstacle(site: Site, tmp_path: Path) -> None:
    lying = f"x\n\nworktree {site.workspace(ISSUE, IDENTIFIER)}\nbranch refs/heads/other\nlocked mine"
    git(site.repository, "worktree", "add", "-q", "--detach", str(tmp_path / "a" / "b\n\nc"))
    os.makedirs(tmp_path / os.path.dirname(lying))
    git(site.repository, "worktree", "add", "-q", "--detach", str(tmp_path / lying))
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert await remove(site, row_of(made.path, made.branch)) is None


async def test_a_workspace_that_was_made_to_lead_to_another_worktree_is_mended_and_the_other_stays(
    site: Site, tmp_path: Path
) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(site.repository, "worktree", "add", "-q", "-b", "mine", str(tmp_path / "mine"))
    before = git(site.repository, "worktree", "list")
    Path(made.path, ".git").write_text(f"gitdir: {site.repository}/.git/worktrees/mine\n", encoding="utf-8")
    assert not (await prepare(site, ISSUE, IDENTIFIER)).created
    assert git(made.path, "branch", "--show-current") == made.branch
    assert git(site.repository, "worktree", "list") == before


@pytest.mark.parametrize("what", [".git", "note"])
async def test_a_pipe_in_the_place_of_a_small_file_is_not_waited_for(site: Site, what: str) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    file = Path(made.path, ".git") if what == ".git" else Path(site.repository, ".git/rookery", f"{digest(ISSUE)}.json")
    file.unlink()
    os.mkfifo(file)
    assert (await prepare(site, ISSUE, IDENTIFIER)).path == made.path


async def test_a_worktree_that_another_git_is_about_to_make_is_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Path(site.repository, ".git", "worktrees", "begun")
    begun.mkdir(parents=True)
    (begun / "gitdir").write_text("/srv/trees/begun/.git\n", encoding="utf-8")
    (begun / "HEAD").write_text("ref: refs/heads/begun\n", encoding="utf-8")
    (begun / "commondir").touch()
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        (begun / "commondir").write_text("../..\n", encoding="utf-8")

    monkeypatch.setattr(worktrees.time, "sleep", wait)
    assert (await prepare(site, ISSUE, IDENTIFIER)).created
    assert len(waited) == 1


async def test_an_old_folder_that_is_no_copy_keeps_nobody_from_reading(site: Site) -> None:
    strange = Path(site.reading, "strange")
    strange.mkdir(parents=True)
    (strange / ".git").write_text("", encoding="utf-8")
    os.utime(strange / ".git", (1, 1))
    assert os.path.isfile(os.path.join(await reading_copy(site, "judge", None), "README.md"))
    assert strange.exists()


async def test_a_link_in_the_place_of_a_note_is_not_written_through(site: Site, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine\n", encoding="utf-8")
    notes = Path(site.repository, ".git", "rookery")
    notes.mkdir()
    (notes / f"{digest(ISSUE)}.json.new").symlink_to(mine)
    with pytest.raises(ServiceUnavailable):
        await prepare(site, ISSUE, IDENTIFIER)
    assert mine.read_text(encoding="utf-8") == "mine\n"


def test_nobody_is_blamed_when_it_is_not_known_how_the_checkout_stood_before(site: Site) -> None:
    there = Path(site.repository, ".git")
    there.rename(there.with_name("away"))
    before = marks_outside(site)
    there.with_name("away").rename(there)
    commit(site.repository, "mine.txt")
    Path(site.repository, "README.md").write_text("mine\n", encoding="utf-8")
    assert changed_outside(site, before) == []


async def test_a_sparse_checkout_stays_sparse(site: Site) -> None:
    commit(site.repository, "large/data.txt")
    commit(site.repository, "small/code.py")
    git(site.repository, "sparse-checkout", "set", "small")
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert not os.path.lexists(os.path.join(made.path, "large"))
    assert git(made.path, "status", "--porcelain") == ""


async def test_a_shallow_clone_is_no_obstacle(site: Site, tmp_path: Path) -> None:
    for number in range(3):
        commit(site.repository, f"{number}.txt")
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", f"file://{site.repository}", str(tmp_path / "shallow")], check=True
    )
    shallow = make_site(tmp_path, repository=tmp_path / "shallow")
    made = await prepare(shallow, ISSUE, IDENTIFIER)
    commit(made.path, "work.py")
    commit(shallow.repository, "later.txt")
    assert "work.py" in diff_against(made.path, "main")
    assert await remove(shallow, row_of(made.path, made.branch)) is None


REMOVING = """
import os
from rookery.files.folders import remove_folder
os.makedirs("x/a/b/c")
open("x/a/b/c/f", "w").close()
for folder in ("x/a/b/c", "x/a/b", "x/a", "x"):
    os.chmod(folder, {mode})
remove_folder("x")
assert not os.path.lexists("x")
"""


@pytest.mark.parametrize("mode", ["0", "0o555"])
def test_folders_within_folders_that_nobody_may_open_are_removed(mode: str) -> None:
    """As a user who is not root, whom no right stops."""
    program = f"import os, sys, tempfile\nsys.path[:0] = {sys.path!r}\n"
    program += "import rookery.files.folders\n"
    program += "os.chdir(tempfile.mkdtemp())\nos.chmod('.', 0o777)\nos.getuid() == 0 and os.setuid(65534)\n"
    subprocess.run([sys.executable, "-c", program + REMOVING.format(mode=mode)], check=True)


@pytest.mark.parametrize("name", ["app.js", "package-lock.json", "logo.png"])
async def test_what_nobody_reads_in_a_diff_waits_for_a_person(site: Site, name: str) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    commit(made.path, name, "/*\0*/" + "steal();\n" * 5_000 if name != "package-lock.json" else "{}\n" * 9_000)
    stats = parse_diff(diff_against(made.path, "main")).as_json()
    pr: Any = SimpleNamespace(risk_level="low", stats=stats)
    project = ProjectSettings(project_id="prj_1", slug="shop", path=None, prefix=None)
    assert not merged_alone(OrchestratorSettings(auto_merge=True), project, pr, [])
    commit(made.path, "small.py")
    stats = parse_diff(diff_against(made.path, git(made.path, "rev-parse", "HEAD~1"))).as_json()
    pr = SimpleNamespace(risk_level="low", stats=stats)
    assert merged_alone(OrchestratorSettings(auto_merge=True), project, pr, [])
