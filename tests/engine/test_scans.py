"""Scans of a real repository: what is given to whom, what counts as examined, and when it comes again."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.tables import coverage, scan_readings
from rookery.engine import scan_wish
from rookery.engine.background import background_outcome, background_prompt, background_wishes
from rookery.engine.dispatches import Dispatches
from rookery.engine.tables import dispatches
from tests.engine.background import Background, paths, record, scan_all
from tests.engine.crew import Crew, Started, call


@pytest.fixture
async def shop(crew: Crew) -> Background:
    """A project with three files, of which two have code in them, that are scanned for one concept."""
    shop = Background(crew)
    await shop.open(scan_concepts=["errors"], scan_paths=["*.py"])
    shop.commit(a__py="a = 1\n", b__py="b = 1\n")
    crew.runtime.script = scan_all
    return shop


async def test_a_project_without_concepts_or_without_a_folder_is_not_scanned(crew: Crew) -> None:
    shop = Background(crew)
    await shop.open()
    assert await shop.wishes() == []
    await crew.open(scan_concepts=["  "])
    assert await shop.wishes() == []
    tenant, project, settings = shop.place
    bare = project.model_copy(update={"path": None})
    with_concept = settings.model_copy(update={"scan_concepts": ("errors",)})
    assert await background_wishes(crew.platform, tenant, bare, with_concept) == []


async def test_a_folder_that_is_no_repository_and_a_branch_that_is_missing_are_told(
    shop: Background, tmp_path: Path
) -> None:
    tenant, project, settings = shop.place
    for wrong in ({"path": str(tmp_path / "nowhere")}, {"base_branch": "trunk"}):
        with pytest.raises(ValidationFailed):
            await background_wishes(shop.crew.platform, tenant, project.model_copy(update=wrong), settings)
    await shop.bring("the export is slow")
    broken = project.model_copy(update={"base_branch": "trunk"})
    (wish,) = await background_wishes(shop.crew.platform, tenant, broken, settings)
    assert wish.new.work == "intake"


async def test_an_agent_cannot_claim_to_have_read_another_content_than_it_was_given(shop: Background) -> None:
    wish = await shop.wish()
    assert paths(wish) == ["a.py", "b.py"]

    def cheats(started: Started) -> Sequence[str]:
        # It commits another content where it reads, and the base branch moves on meanwhile.
        shop.commit(b__py="b = 2\n")
        return ["!write a.py a = 666", "!commit mine", record("a.py"), record("b.py"), record("b.py", content="x")]

    before = {path: shop.blob(path) for path in ("a.py", "b.py")}
    shop.crew.runtime.script = cheats
    row = await shop.run(wish)
    assert shop.crew.came_to(row) == ("ended", "succeeded", None)
    assert shop.covered() == before
    assert paths(await shop.wish()) == ["b.py"]


async def test_another_tenant_and_another_project_have_no_part_in_it(shop: Background) -> None:
    await shop.run()
    await shop.crew.git_project("other")
    tenant, project, settings = shop.place
    other = shop.crew.person("other")
    elsewhere = project.model_copy(update={"project_id": other.project, "path": project.path})
    (wish,) = await background_wishes(shop.crew.platform, tenant, elsewhere, settings)
    assert paths(wish.new) == ["a.py", "b.py"]
    (wish,) = await background_wishes(shop.crew.platform, "other", project, settings)
    assert paths(wish.new) == ["a.py", "b.py"]
    assert await shop.wishes() == []


async def test_what_is_covered_and_unchanged_is_never_given_again_and_what_changes_is(shop: Background) -> None:
    row = await shop.run()
    assert shop.crew.came_to(row) == ("ended", "succeeded", None)
    assert shop.covered() == {path: shop.blob(path) for path in ("a.py", "b.py")}
    assert await shop.wishes() == []
    shop.commit(README__md="# More\n")
    assert await shop.wishes() == []
    shop.commit(a__py="a = 2\n", c__py="c = 1\n")
    assert paths(await shop.wish()) == ["c.py", "a.py"]
    await shop.run()
    assert await shop.wishes() == []


async def test_a_deleted_file_is_forgotten_and_a_renamed_one_is_examined_under_its_new_name(shop: Background) -> None:
    await shop.run()
    shop.commit(a__py=None, renamed__py="a = 1\n")
    assert paths(await shop.wish()) == ["renamed.py"]
    await shop.run()
    assert set(shop.covered()) == {"a.py", "b.py", "renamed.py"}
    assert await shop.wishes() == []


async def test_a_file_that_is_deleted_while_it_is_examined_counts_as_examined(shop: Background) -> None:
    def meanwhile(started: Started) -> Sequence[str]:
        shop.commit(a__py=None)
        return scan_all(started)

    shop.crew.runtime.script = meanwhile
    row = await shop.run()
    assert row.outcome == "succeeded"
    assert await shop.wishes() == []


async def test_a_file_with_issues_rests_while_its_ticket_is_open_and_after_that_until_it_changes(
    shop: Background,
) -> None:
    def finds(started: Started) -> Sequence[str]:
        seen = {"file_path": "a.py", "concept": "errors", "status": "has_issues", "ticket_id": "SHO-001"}
        return [call("create_issue", title="a is wrong"), call("record_coverage", **seen), record("b.py")]

    shop.crew.runtime.script = finds
    row = await shop.run()
    assert row.outcome == "succeeded"
    shop.commit(a__py="a = 2\n")
    assert await shop.wishes() == []
    person = shop.crew.person("shop")
    await shop.crew.call(person, "set_issue_status", issue_id="SHO-001", status="cancelled")
    assert paths(await shop.wish()) == ["a.py"]
    shop.crew.runtime.script = scan_all
    await shop.run()
    assert "has issues, SHO-001 (cancelled)" in shop.crew.runtime.prompts[-1]
    assert await shop.wishes() == []


async def test_a_scanner_is_told_its_files_its_concept_and_how_to_record_them(shop: Background) -> None:
    await shop.run()
    (prompt,) = shop.crew.runtime.prompts
    assert "For the concept `errors`:\n\n- `a.py`\n- `b.py`" in prompt
    assert "# You are a scanner" in prompt
    (started,) = shop.crew.runtime.started
    assert started.actor.profile == "scanner"


async def test_files_that_a_scanner_skips_come_again_in_smaller_batches_and_are_given_up_in_the_end(
    shop: Background,
) -> None:
    shop.crew.set(scan_batch=2, max_retries=2)
    shop.crew.play(record("a.py"))
    row = await shop.run()
    assert shop.crew.came_to(row) == ("ended", "succeeded", "1 of 2 files were not recorded: b.py")
    tries = 1
    while wishes := await shop.wishes():
        assert paths(wishes[0]) == ["b.py"]
        row = await shop.run(wishes[0])
        assert shop.crew.came_to(row) == ("ended", "idle", "1 of 1 files were not recorded: b.py")
        tries += 1
    assert tries == 3
    shop.commit(b__py="b = 2\n")
    assert paths(await shop.wish()) == ["b.py"]
    shop.commit(b__py="b = 1\n")
    assert await shop.wishes() == []
    shop.crew.set(max_retries=2)
    assert paths(await shop.wish()) == ["b.py"]


async def test_a_session_that_fails_after_some_records_fails_and_leaves_the_rest_to_another(shop: Background) -> None:
    shop.crew.play(record("a.py"), "!fail the model is away")
    row = await shop.run()
    assert (row.outcome, row.error) == ("failed", "the model is away")
    assert paths(await shop.wish()) == ["b.py"]


async def test_while_a_scan_lives_there_is_no_other_and_the_next_one_waits_for_its_time(shop: Background) -> None:
    shop.crew.set(scan_batch=1, scan_every_s=3600)
    row = shop.queue(await shop.wish())
    assert await shop.wishes() == []
    await shop.crew.work()
    assert shop.crew.row(row).outcome == "succeeded"
    assert await shop.wishes() == []
    shop.crew.change(sa.update(dispatches).values(created_ms=dispatches.c.created_ms - 3_600_000))
    assert paths(await shop.wish()) == ["b.py"]


async def test_git_is_not_asked_again_while_nothing_has_changed(
    shop: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.run()
    assert await shop.wishes() == []
    shop.commit(c__py="c = 1\n")
    waits = await shop.wishes()

    def refuse(*arguments: object) -> None:
        raise AssertionError("somebody asked git")

    with monkeypatch.context() as patched:
        patched.setattr(scan_wish, "scannable", refuse)
        assert await shop.wishes() == waits
    await shop.run(*waits)
    assert await shop.wishes() == []
    monkeypatch.setattr(scan_wish, "scannable", refuse)
    assert await shop.wishes() == []
    shop.commit(a__py="a = 2\n")
    with pytest.raises(AssertionError, match="asked git"):
        await shop.wishes()


async def test_binary_files_are_left_out(shop: Background) -> None:
    (shop.crew.repository / "c.py").write_bytes(b"\0\1\2")
    shop.commit(d__py="d = 1\n")
    assert paths(await shop.wish()) == ["a.py", "b.py", "d.py"]
    await shop.run()
    assert await shop.wishes() == []


async def test_a_worker_that_dies_leaves_nothing_behind_and_what_was_recorded_counts(shop: Background) -> None:
    crew = shop.crew
    row = shop.queue(await shop.wish())
    crew.write(lambda tx: Dispatches(tx, "default").begin(row, session=f"dispatch:{row.id}"))
    scanner = crew.fleet.actor(profile="scanner", project="shop", session=f"dispatch:{row.id}")
    await background_prompt(crew.platform, crew.row(row), scanner)
    await crew.call(scanner, "record_coverage", file_path="a.py", concept="errors", status="covered")
    assert crew.count(scan_readings) == 1
    crew.write(lambda tx: Dispatches(tx, "default").end(row.id, "lost", "its worker died"))
    assert paths(await shop.wish()) == ["b.py"]
    assert crew.count(scan_readings) == 0
    assert crew.platform.database.direct(lambda tx: background_outcome(tx, crew.row(row)), write=True) == (
        "idle",
        "1 of 2 files were not recorded: b.py",
    )


async def test_a_scanner_of_its_own_accord_is_taken_to_have_read_the_base_branch(shop: Background) -> None:
    scanner = shop.crew.fleet.actor(profile="scanner", project="shop")
    for path in ("a.py", "nowhere.py"):
        await shop.crew.call(scanner, "record_coverage", file_path=path, concept="errors", status="covered")
    assert shop.covered() == {"a.py": shop.blob("a.py"), "nowhere.py": None}
    assert paths(await shop.wish()) == ["b.py"]
    # As records were before contents were kept.
    shop.crew.change(sa.update(coverage).values(content=None))
    shop.commit(README__md="# More\n")
    assert paths(await shop.wish()) == ["b.py", "a.py"]
