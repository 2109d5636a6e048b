"""The owner's commands around a workspace: when they run, and what follows when they fail."""

from pathlib import Path

import pytest

from rookery.core.errors import ValidationFailed
from rookery.engine.workspaces import after_run, before_run, prepare, remove
from tests.domains.work.workshop import git
from tests.engine.yard import IDENTIFIER, ISSUE, make_site, row_of


async def test_what_fails_before_a_run_is_told_with_its_output(tmp_path: Path) -> None:
    site = make_site(tmp_path, before_run="echo no database >&2; exit 4")
    made = await prepare(site, ISSUE, IDENTIFIER)
    with pytest.raises(ValidationFailed, match="before_run of shop failed with exit code 4: no database"):
        await before_run(site, made.path)


async def test_a_command_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    site = make_site(tmp_path, before_run="echo started; sleep 60", limit_s=1)
    made = await prepare(site, ISSUE, IDENTIFIER)
    with pytest.raises(ValidationFailed, match=r"started\nstopped after 1 s"):
        await before_run(site, made.path)


async def test_what_fails_after_a_run_is_only_told(tmp_path: Path) -> None:
    site = make_site(tmp_path, after_run="exit 5")
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert await after_run(site, made.path) == "the command after_run of shop failed with exit code 5: exit code 5"


async def test_a_workspace_whose_creation_failed_is_not_handed_out_until_it_succeeds(tmp_path: Path) -> None:
    site = make_site(tmp_path, after_create=f"echo once >> {tmp_path}/count; test -e {tmp_path}/mended")
    for _ in range(2):
        with pytest.raises(ValidationFailed, match="after_create of shop failed with exit code 1"):
            await prepare(site, ISSUE, IDENTIFIER)
    (tmp_path / "mended").touch()
    assert (await prepare(site, ISSUE, IDENTIFIER)).created
    assert not (await prepare(site, ISSUE, IDENTIFIER)).created
    assert (tmp_path / "count").read_text(encoding="utf-8").split() == ["once"] * 3


async def test_they_run_in_the_workspace_and_in_order(tmp_path: Path) -> None:
    moments = ("after_create", "before_run", "after_run", "before_remove")
    site = make_site(tmp_path, **{name: f"echo {name} $(pwd) >> {tmp_path}/ran" for name in moments})
    made = await prepare(site, ISSUE, IDENTIFIER)
    await before_run(site, made.path)
    assert await after_run(site, made.path) is None
    assert await remove(site, row_of(made.path, made.branch)) is None
    ran = (tmp_path / "ran").read_text(encoding="utf-8").splitlines()
    assert ran == [f"{name} {made.path}" for name in moments]


async def test_a_workspace_is_kept_if_the_command_before_fails_or_leaves_something(tmp_path: Path) -> None:
    failing = make_site(tmp_path, before_remove="echo in use; exit 1")
    made = await prepare(failing, ISSUE, IDENTIFIER)
    row = row_of(made.path, made.branch)
    said = await remove(failing, row)
    assert said == "the command before_remove of shop failed with exit code 1: in use"
    leaving = make_site(tmp_path, repository=failing.repository, before_remove="echo report > report.txt")
    said = await remove(leaving, row)
    assert said == "files that are not committed: report.txt"
    assert git(made.path, "status", "--porcelain") == "?? report.txt"
