"""The worktree of an issue: made, found as it was left, mended, and never in anybody's way. On real repositories."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from rookery.core.errors import Conflict, ValidationFailed
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.worktree import MARKER, is_clean, verify_worktree
from rookery.engine.project_settings import OrchestratorSettings
from rookery.engine.workspaces import Site, prepare, site_of
from rookery.settings import Settings
from tests.domains.work.workshop import git, make_repository
from tests.engine.yard import IDENTIFIER, ISSUE, commit, make_site, state_of


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


def project(path: Path | None) -> ProjectSettings:
    return ProjectSettings(project_id="prj_1", slug="shop", path=None if path is None else str(path), prefix="SHO")


def test_a_project_without_a_repository_has_no_site(tmp_path: Path) -> None:
    installed = Settings(home=str(tmp_path / "home"))
    for folder, said in ((None, "has no folder"), (tmp_path / "gone", "does not exist"), (tmp_path, "not the root")):
        with pytest.raises(ValidationFailed, match=said):
            site_of(project(folder), OrchestratorSettings(), installed)
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    with pytest.raises(ValidationFailed, match="bare repository"):
        site_of(project(tmp_path / "bare.git"), OrchestratorSettings(), installed)
    shop = make_repository(tmp_path / "shop")
    (shop / "inner").mkdir()
    with pytest.raises(ValidationFailed, match=r"is a part of the repository .*/shop$"):
        site_of(project(shop / "inner"), OrchestratorSettings(), installed)


@pytest.mark.parametrize("inner", ["", "trees", ".git/trees"])
def test_workspaces_are_never_inside_of_the_repository(tmp_path: Path, inner: str) -> None:
    shop = make_repository(tmp_path / "shop")
    installed = Settings(home=str(tmp_path / "home"), worktree_base_dir=str(shop / inner))
    with pytest.raises(ValidationFailed, match="inside of the repository"):
        site_of(project(shop), OrchestratorSettings(), installed)


def test_workspaces_are_beside_the_repository_or_where_the_settings_say(tmp_path: Path) -> None:
    shop = make_repository(tmp_path / "shop")
    beside = site_of(project(shop), OrchestratorSettings(), Settings(home=str(tmp_path / "home")))
    assert beside.root == str(tmp_path.resolve() / ".rookery-worktrees")
    chosen = Settings(home=str(tmp_path / "home"), worktree_base_dir=str(tmp_path / "w"))
    assert site_of(project(shop), OrchestratorSettings(), chosen).root == str(tmp_path.resolve() / "w")


async def test_an_issue_gets_a_branch_and_a_worktree_with_its_marker(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert made.branch == "rookery/SHO-1"
    assert made.base == git(site.repository, "rev-parse", "main")
    assert made.created
    assert git(made.path, "symbolic-ref", "--short", "HEAD") == made.branch
    assert verify_worktree(made.path, made.path, IDENTIFIER, ISSUE).branch == made.branch
    assert is_clean(made.path)
    assert git(made.path, "status", "--porcelain") == ""
    assert oct(os.stat(site.folder).st_mode)[-3:] == "700"


async def test_what_was_left_there_is_there_the_next_time(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    commit(made.path, "done.txt")
    Path(made.path, "half.txt").write_text("half", encoding="utf-8")
    commit(site.repository, "meanwhile.txt")
    again = await prepare(site, ISSUE, IDENTIFIER)
    assert again == replace(made, created=False)
    assert Path(made.path, "half.txt").exists()
    assert Path(made.path, "done.txt").exists()


@pytest.mark.parametrize("what", ["another branch", "detached", "a rebase"])
async def test_an_agents_own_state_is_left_as_it_is(site: Site, what: str) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    words = {
        "another branch": ("checkout", "-q", "-b", "mine"),
        "detached": ("checkout", "-q", "--detach"),
        "a rebase": ("rebase", "-q", "--exec", "false", "HEAD~1"),
    }
    commit(made.path, "a.txt")
    if what == "a rebase":
        with pytest.raises(Exception, match="non-zero exit status"):
            git(made.path, *words[what])
    else:
        git(made.path, *words[what])
    before = git(made.path, "status")
    assert (await prepare(site, ISSUE, IDENTIFIER)).path == made.path
    assert git(made.path, "status") == before


async def test_the_main_checkout_is_never_touched(site: Site) -> None:
    Path(site.repository, "README.md").write_text("changed", encoding="utf-8")
    Path(site.repository, "staged.txt").write_text("staged", encoding="utf-8")
    git(site.repository, "add", "staged.txt")
    Path(site.repository, "new.txt").write_text("new", encoding="utf-8")
    before = state_of(site.repository)
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert state_of(site.repository) == before
    assert Path(made.path, "README.md").read_text(encoding="utf-8") == "# A shop\n"
    assert not Path(made.path, "staged.txt").exists()


async def test_the_base_branch_need_not_be_checked_out_here(site: Site) -> None:
    base = git(site.repository, "rev-parse", "main")
    git(site.repository, "checkout", "-q", "-b", "other")
    commit(site.repository, "other.txt")
    git(site.repository, "worktree", "add", "-q", f"{site.root}/person", "main")
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert made.base == base
    assert not Path(made.path, "other.txt").exists()


async def test_a_base_branch_that_only_origin_has_is_enough(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    git(origin, "checkout", "-q", "-b", "develop")
    base = commit(origin, "develop.txt")
    git(origin, "checkout", "-q", "main")
    git(tmp_path, "clone", "-q", str(origin), "clone")
    site = make_site(tmp_path, repository=tmp_path / "clone", base_branch="develop")
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert made.base == base
    assert git(made.path, "config", "--get-regexp", "^branch.main").startswith("branch.main")
    with pytest.raises(Exception, match="non-zero exit status"):
        git(made.path, "config", f"branch.{made.branch}.merge")


async def test_a_missing_base_branch_is_told(site: Site) -> None:
    with pytest.raises(ValidationFailed, match=r"the base branch 'develop' is not in .*code/shop") as refused:
        await prepare(replace(site, base_branch="develop"), ISSUE, IDENTIFIER)
    assert "configure_project" in (refused.value.hint or "")
    assert git(site.repository, "branch", "--list", "rookery/*") == ""
    for name in ("", "-x", "main^", "main:README.md", "@{-1}", "x" * 400):
        with pytest.raises(ValidationFailed, match="the base branch"):
            await prepare(replace(site, base_branch=name), ISSUE, IDENTIFIER)


async def test_a_repository_without_a_commit_is_told(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q", "-b", "main")
    with pytest.raises(ValidationFailed, match="has no commit yet"):
        await prepare(make_site(tmp_path, repository=empty), ISSUE, IDENTIFIER)


async def test_a_repository_that_is_gone_is_told(site: Site) -> None:
    os.rename(site.repository, f"{site.repository}-moved")
    with pytest.raises(ValidationFailed, match="does not exist"):
        await prepare(site, ISSUE, IDENTIFIER)


@pytest.mark.parametrize("taken", ["rookery/SHO-1", "rookery/sho-1", "rookery/SHO-1/more"])
async def test_somebody_elses_branch_is_left_alone(site: Site, taken: str) -> None:
    git(site.repository, "checkout", "-q", "-b", taken)
    tip = commit(site.repository, "theirs.txt")
    git(site.repository, "checkout", "-q", "main")
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert made.branch.startswith("rookery/SHO-1-")
    assert git(site.repository, "rev-parse", taken) == tip
    assert (await prepare(site, ISSUE, IDENTIFIER)).branch == made.branch


async def test_a_branch_at_origin_is_somebody_elses_too(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    git(origin, "branch", "rookery/SHO-1")
    git(tmp_path, "clone", "-q", str(origin), "clone")
    made = await prepare(make_site(tmp_path, repository=tmp_path / "clone"), ISSUE, IDENTIFIER)
    assert made.branch.startswith("rookery/SHO-1-")


async def test_a_branch_called_like_our_folder_of_branches_is_no_obstacle(site: Site) -> None:
    git(site.repository, "branch", "rookery")
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert made.branch.startswith("rookery-SHO-1-")
    assert not (await prepare(site, ISSUE, IDENTIFIER)).created


async def test_our_branch_from_before_is_used_again(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    tip = commit(made.path, "done.txt")
    git(site.repository, "worktree", "remove", "--force", made.path)
    again = await prepare(site, ISSUE, IDENTIFIER)
    assert (again.branch, again.base, again.created) == (made.branch, made.base, True)
    assert git(again.path, "rev-parse", "HEAD") == tip


async def test_a_worktree_that_was_deleted_by_hand_is_made_again_from_its_branch(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    tip = commit(made.path, "done.txt")
    os.rename(site.root, f"{site.root}-gone")
    again = await prepare(site, ISSUE, IDENTIFIER)
    assert (again.path, again.created) == (made.path, True)
    assert git(again.path, "rev-parse", "HEAD") == tip
    assert verify_worktree(again.path, again.path, IDENTIFIER, ISSUE)


async def test_a_branch_that_was_deleted_with_its_worktree_begins_again_at_the_base(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(site.repository, "worktree", "remove", "--force", made.path)
    git(site.repository, "branch", "-D", made.branch)
    newer = commit(site.repository, "newer.txt")
    assert (await prepare(site, ISSUE, IDENTIFIER)).base == newer


async def test_a_worktree_that_lost_its_git_file_is_mended_with_all_that_is_in_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    Path(made.path, "half.txt").write_text("half", encoding="utf-8")
    Path(made.path, ".git").unlink()
    assert not (await prepare(site, ISSUE, IDENTIFIER)).created
    assert git(made.path, "status", "--porcelain") == "?? half.txt"


async def test_a_worktree_whose_paths_are_relative_is_found(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    own = git(made.path, "rev-parse", "--absolute-git-dir")
    Path(own, "gitdir").write_text(f"{os.path.relpath(made.path, own)}/.git\n", encoding="utf-8")
    Path(made.path, ".git").write_text(f"gitdir: {os.path.relpath(own, made.path)}\n", encoding="utf-8")
    assert await prepare(site, ISSUE, IDENTIFIER) == replace(made, created=False)


async def test_branches_of_any_name_are_no_obstacle(site: Site) -> None:
    git(site.repository, "branch", "rookery/a\u2028b\x85c")
    git(site.repository, "worktree", "add", "-q", "-b", "other\u2028branch", f"{site.root}/a\u2028b", "main")
    assert (await prepare(site, ISSUE, IDENTIFIER)).branch == "rookery/SHO-1"


async def test_a_worktree_that_git_has_forgotten_is_left_to_a_person(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    Path(made.path, "half.txt").write_text("half", encoding="utf-8")
    os.rename(made.path, f"{made.path}-away")
    git(site.repository, "worktree", "prune")
    os.rename(f"{made.path}-away", made.path)
    for _ in range(2):
        with pytest.raises(Conflict, match=r"is no working tree of .* any more"):
            await prepare(site, ISSUE, IDENTIFIER)
    assert Path(made.path, "half.txt").exists()


async def test_a_lost_note_does_not_cost_the_work(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    Path(made.path, "half.txt").write_text("half", encoding="utf-8")
    (note,) = Path(site.repository, ".git", "rookery").glob("*.json")
    for text in (None, "", "[]", "{}", '{"issue_id": 1}', json.dumps({"issue_id": ISSUE, "branch": "main"})):
        note.unlink() if text is None else note.write_text(text, encoding="utf-8")
        assert await prepare(site, ISSUE, IDENTIFIER) == replace(made, created=False)
    assert Path(made.path, "half.txt").exists()


async def test_a_forged_note_leads_nowhere_else(site: Site, tmp_path: Path) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    other = await prepare(site, "iss_2", "SHO-2")
    (note,) = [each for each in Path(site.repository, ".git", "rookery").glob("*.json") if ISSUE in each.read_text()]
    forged = json.loads(note.read_text())
    for change in ({"path": other.path}, {"path": site.repository}, {"branch": "main"}, {"base": "--output=/x"}):
        note.write_text(json.dumps(forged | change), encoding="utf-8")
        assert (await prepare(site, ISSUE, IDENTIFIER)).path == made.path


@pytest.mark.parametrize("what", ["folder", "file", "link", "link to nowhere"])
async def test_what_somebody_else_put_there_stays(site: Site, tmp_path: Path, what: str) -> None:
    place = Path(site.workspace(ISSUE, IDENTIFIER))
    place.parent.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    if what == "folder":
        place.mkdir()
        (place / "mine.txt").write_text("mine", encoding="utf-8")
    elif what == "file":
        place.write_text("mine", encoding="utf-8")
    else:
        place.symlink_to(elsewhere)
        if what == "link":
            elsewhere.mkdir()
    for _ in range(2):
        with pytest.raises(Conflict, match="where something else is"):
            await prepare(site, ISSUE, IDENTIFIER)
    assert place.is_symlink() == what.startswith("link")
    if what == "folder":
        assert (place / "mine.txt").exists()
    assert not elsewhere.exists() or not any(elsewhere.iterdir())


async def test_a_project_folder_that_leads_elsewhere_is_refused(site: Site, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    Path(site.root).mkdir()
    Path(site.folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValidationFailed, match="leads out of"):
        await prepare(site, ISSUE, IDENTIFIER)
    assert not any((tmp_path / "elsewhere").iterdir())


async def test_a_branch_that_a_person_has_checked_out_is_not_taken_away(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(site.repository, "worktree", "remove", "--force", made.path)
    git(site.repository, "checkout", "-q", made.branch)
    with pytest.raises(Conflict, match=f"{made.branch} of SHO-1 is checked out in {site.repository}"):
        await prepare(site, ISSUE, IDENTIFIER)
    git(site.repository, "checkout", "-q", "main")
    assert (await prepare(site, ISSUE, IDENTIFIER)).branch == made.branch


async def test_issues_of_two_tenants_and_two_projects_keep_apart_in_one_repository(site: Site) -> None:
    sites = [site, replace(site, project_id="prj_2"), replace(site, project_id="prj_3", slug="SHOP")]
    made = [await prepare(each, f"iss_{number}", IDENTIFIER) for number, each in enumerate(sites)]
    assert len({each.path.casefold() for each in made}) == len({each.branch.casefold() for each in made}) == 3
    for number, each in enumerate(made):
        assert verify_worktree(each.path, each.path, IDENTIFIER, f"iss_{number}")


@pytest.mark.parametrize("identifier", ["ÄÖ-1", "日本-2", "a/../../b", "..", "x" * 3_000, "sho-1", "-b"])
async def test_any_identifier_has_a_workspace(site: Site, identifier: str) -> None:
    await prepare(site, ISSUE, IDENTIFIER)
    made = await prepare(site, "iss_2", identifier)
    assert os.path.dirname(made.path) == site.folder
    assert git(made.path, "symbolic-ref", "--short", "HEAD") == made.branch
    assert not (await prepare(site, "iss_2", identifier)).created


async def test_an_issue_that_has_moved_or_whose_folder_is_set_elsewhere_keeps_its_workspace(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    Path(made.path, "half.txt").write_text("half", encoding="utf-8")
    moved = replace(site, slug="mall", root=f"{site.root}-new")
    again = await prepare(moved, ISSUE, "MAL-7")
    assert again == replace(made, created=False)
    assert verify_worktree(again.path, again.path, "MAL-7", ISSUE)


async def test_hooks_of_the_repository_do_not_run(site: Site, tmp_path: Path) -> None:
    hook = Path(site.repository, ".git", "hooks", "post-checkout")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    hook.chmod(0o755)
    await prepare(site, ISSUE, IDENTIFIER)
    assert not (tmp_path / "ran").exists()


async def test_a_repository_with_submodules_and_one_that_is_a_worktree_itself_are_no_obstacle(tmp_path: Path) -> None:
    part = make_repository(tmp_path / "part")
    site = make_site(tmp_path)
    git(site.repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part), "part")
    git(site.repository, "commit", "-q", "-m", "with a part")
    git(site.repository, "worktree", "add", "-q", "--detach", f"{tmp_path}/second")
    for repository in (site.repository, f"{tmp_path}/second", f"{site.repository}/part"):
        made = await prepare(replace(site, repository=repository), repository, IDENTIFIER)
        assert git(made.path, "status", "--porcelain") == ""
        assert git(made.path, "rev-parse", "--show-toplevel") == made.path


async def test_a_marker_that_is_committed_is_replaced_and_a_link_is_not_followed(site: Site, tmp_path: Path) -> None:
    Path(site.repository, MARKER).symlink_to(tmp_path / "target")
    git(site.repository, "add", "-f", MARKER)
    git(site.repository, "commit", "-q", "-m", "a marker")
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert not (tmp_path / "target").exists()
    assert verify_worktree(made.path, made.path, IDENTIFIER, ISSUE)


async def test_many_are_made_at_once(site: Site) -> None:
    numbers = range(8)
    made = await asyncio.gather(*(prepare(site, f"iss_{number}", f"SHO-{number}") for number in numbers))
    assert len({each.path for each in made}) == len(numbers)
    again = await asyncio.gather(*(prepare(site, "iss_same", IDENTIFIER) for _ in range(4)))
    assert sorted(each.created for each in again) == [False, False, False, True]
