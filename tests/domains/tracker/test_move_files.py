"""What becomes of an issue's artifact files when it is moved."""

import os
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, ValidationFailed
from rookery.domains.tracker import move_files
from rookery.domains.tracker.worktree import MARKER
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.moving import WHY, accept, move, refused, tree_of


@pytest.fixture
async def places(desk: Desk, tmp_path: Path) -> tuple[Path, Path]:
    """The folders of two projects, shop and api."""
    shop, api = tmp_path / "shop", tmp_path / "api"
    for folder in (shop, api):
        folder.mkdir()
        await desk.project(folder.name, folder)
    return shop, api


def write_artifacts(root: Path, identifier: str) -> Path:
    folder = root / "docs" / "tickets" / identifier
    (folder / "img").mkdir(parents=True)
    (folder / "research.md").write_text("# Research")
    (folder / "img" / "a.bin").write_bytes(b"\0\xff")
    return folder


async def test_artifact_files_are_copied_and_links_are_not(desk: Desk, places: tuple[Path, Path]) -> None:
    shop, api = places
    issue = await desk.issue(project="shop", phase="grooming")
    folder = write_artifacts(shop, issue.identifier)
    secret = shop / "secret"
    secret.write_text("secret")
    (folder / "link.md").symlink_to(secret)
    (folder / "folder").symlink_to(shop)
    os.mkfifo(folder / "pipe")
    moved = await move(desk, issue)
    assert moved.files_copied == 2
    target = api / "docs/tickets/API-001"
    assert tree_of(api) == ["docs", "docs/tickets"] + [
        f"docs/tickets/API-001{rest}" for rest in ("", "/img", "/img/a.bin", "/research.md")
    ]
    assert (target / "research.md").read_text() == "# Research"
    assert (target / "img/a.bin").read_bytes() == b"\0\xff"
    assert (folder / "research.md").exists()


async def test_what_was_accepted_is_copied_as_it_was_and_the_worktree_comes_before_the_project(
    desk: Desk, tmp_path: Path
) -> None:
    repository, api = await desk.git_project("repo"), tmp_path / "api"
    api.mkdir()
    await desk.project("api", api)
    issue = await desk.issue(project="repo", phase="grooming")
    tree = desk.worktree(repository, issue)
    (write_artifacts(tree.path, issue.identifier) / "grooming.md").write_text("in the worktree")
    (write_artifacts(repository, issue.identifier) / "grooming.md").write_text("in the project")
    await accept(desk, issue, "research", "an older claim")
    await accept(desk, issue, "research", "accepted")
    await accept(desk, issue, "architecture", "gone from the folder")
    planner = desk.actor("planner", issue, worktree=str(tree.path), cwd=str(tree.path))
    moved = await desk.call(planner, "move_issue", target_project_id="api", reason=WHY)
    folder = api / "docs/tickets" / moved.identifier
    assert {path.name: path.read_text() for path in folder.glob("*.md")} == {
        "grooming.md": "in the worktree",
        "research.md": "accepted",
        "design.md": "gone from the folder",
    }
    assert moved.files_copied == 4


async def test_without_a_folder_on_either_side_nothing_is_copied(desk: Desk, places: tuple[Path, Path]) -> None:
    shop, api = places
    plain, nowhere = await desk.issue(project="shop"), await desk.issue(project="shop")
    assert (await move(desk, plain)).files_copied == 0
    write_artifacts(shop, nowhere.identifier)
    await desk.project("gone", shop.parent / "gone")
    assert (await move(desk, nowhere, "gone")).files_copied == 0
    assert tree_of(api) == []
    assert not (shop.parent / "gone").exists()


async def test_a_refused_move_leaves_no_file_behind(
    desk: Desk, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, api = places
    issue = await desk.issue(project="shop")
    write_artifacts(shop, issue.identifier)
    planner = desk.actor("planner", issue)
    held = {"lease_subject": "agt-other", "lease_session": "s1", "lease_name": "ada", "lease_until_ms": 10**14}
    desk.change(sa.update(issues).where(issues.c.id == issue.id).values(**held))
    await refused(desk, Conflict, planner)
    assert tree_of(api) == []
    (api / "docs").mkdir()
    (api / "docs" / "tickets").write_text("no folder")
    await refused(desk, Conflict, planner)
    (api / "docs" / "tickets").unlink()
    (api / "docs" / "tickets").symlink_to(shop)
    await refused(desk, Conflict, planner)
    (api / "docs" / "tickets").unlink()
    monkeypatch.setattr(move_files, "MAX_BYTES", 5)
    await refused(desk, ValidationFailed, planner)
    monkeypatch.setattr(move_files, "MAX_BYTES", 500)
    monkeypatch.setattr(move_files, "MAX_FILES", 1)
    await refused(desk, ValidationFailed, planner)
    monkeypatch.setattr(move_files, "MAX_FILES", 100)
    monkeypatch.setattr(move_files, "MAX_FOLDERS", 1)
    await refused(desk, ValidationFailed, planner)
    assert tree_of(api) == ["docs"]
    assert tree_of(shop / "docs") == sorted(
        f"tickets{rest}" for rest in ("", *(f"/{issue.identifier}{more}" for more in FILES))
    )


FILES = ("", "/img", "/img/a.bin", "/research.md")


async def test_a_source_folder_that_is_a_link_is_not_followed(desk: Desk, places: tuple[Path, Path]) -> None:
    shop, api = places
    issue = await desk.issue(project="shop")
    write_artifacts(shop, "elsewhere")
    (shop / "docs/tickets" / issue.identifier).symlink_to(shop / "docs/tickets/elsewhere")
    assert (await move(desk, issue)).files_copied == 0
    assert tree_of(api) == []


async def test_files_that_stand_where_the_copy_would_go_are_not_touched(desk: Desk, places: tuple[Path, Path]) -> None:
    shop, api = places
    issue = await desk.issue(project="shop")
    write_artifacts(shop, issue.identifier)
    (api / "docs/tickets/API-001").mkdir(parents=True)
    (api / "docs/tickets/API-001/mine.md").write_text("mine")
    moved = await move(desk, issue)
    assert (moved.identifier, moved.files_copied) == ("API-001", 0)
    assert tree_of(api / "docs/tickets") == ["API-001", "API-001/mine.md"]


async def test_a_worktree_that_is_not_the_issues_is_refused(desk: Desk, places: tuple[Path, Path]) -> None:
    shop, api = places
    issue = await desk.issue(project="shop")
    (shop / MARKER).write_text("SHO-999")
    await desk.project("nowhere")
    for folder in (shop, shop / "gone"):
        for target in ("api", "nowhere"):
            planner = desk.actor("planner", issue, worktree=str(folder))
            await refused(desk, Conflict, planner, target_project_id=target)
    assert tree_of(api) == []
