"""Files of the intake folder: what is taken in, what waits, what is told and left, and that nothing is lost."""

import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.engine import intake_folder
from rookery.engine.intake_store import MAX_TEXT
from rookery.engine.tables import intake_requests
from tests.engine.background import Background
from tests.engine.crew import Crew


@pytest.fixture
async def shop(crew: Crew) -> Background:
    shop = Background(crew)
    await shop.open(intake_folder="wishes")
    (crew.repository / "wishes").mkdir()
    return shop


def put(shop: Background, name: str, text: str | bytes, *, age_s: float = 60.0) -> Path:
    """A file that was last written to so long ago."""
    path = shop.crew.repository / "wishes" / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    at = time.time() - age_s
    os.utime(path, (at, at))
    return path


def names(shop: Background) -> tuple[list[str], list[str]]:
    """What lies in the folder, and what was put away."""
    folder = shop.crew.repository / "wishes"
    away = folder / "done"
    left = sorted(each.name for each in folder.iterdir() if each.name != "done")
    return left, sorted(each.name for each in away.iterdir()) if away.is_dir() else []


async def test_without_a_folder_nothing_is_taken_in(shop: Background, caplog: pytest.LogCaptureFixture) -> None:
    shop.crew.set(intake_folder="")
    assert await shop.take_in() == 0
    shop.crew.set(intake_folder="nowhere")
    with caplog.at_level(logging.WARNING, "rookery.intake"):
        assert [await shop.take_in() for _ in range(3)] == [0, 0, 0]
    assert ["the folder cannot be read" in each.getMessage() for each in caplog.records] == [True]


async def test_what_cannot_be_taken_in_is_told_once_and_left(
    shop: Background, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("do not read this", encoding="utf-8")
    folder = shop.crew.repository / "wishes"
    (folder / "link.md").symlink_to(secret)
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    put(shop, "latin.txt", "schön".encode("latin-1"))
    put(shop, "empty.md", " \n")
    put(shop, "long.md", "x" * (MAX_TEXT + 1))
    put(shop, "huge.md", "x" * (5 * MAX_TEXT))
    put(shop, "null.md", "a\0b")
    put(shop, "good.md", "the export is slow")
    with caplog.at_level(logging.WARNING, "rookery.intake"):
        assert [await shop.take_in() for _ in range(3)] == [1, 0, 0]
    wrong = ["empty.md", "folder.md", "huge.md", "latin.txt", "link.md", "long.md", "null.md", "pipe.md"]
    assert names(shop) == (wrong, ["good.md"])
    assert sorted(each.getMessage().split(" is not")[0].rpartition("/")[2] for each in caplog.records) == wrong
    assert [row.text for row in shop.requests()] == ["the export is slow"]


async def test_a_file_that_cannot_be_opened_is_told_and_left(
    shop: Background, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: Any) -> None:
        raise PermissionError(13, "Permission denied")

    put(shop, "a.md", "the export is slow")
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "rookery.intake"):
        patched.setattr(intake_folder, "read_inside", refuse)
        assert await shop.take_in() == 0
    assert "Permission denied" in caplog.text
    assert await shop.take_in() == 1


async def test_other_files_are_none_of_its_business(shop: Background) -> None:
    others = [".hidden.md", "a.md.part", "a.md~", "~a.md", "#a.md#", "notes.pdf", "md"]
    for name in others:
        put(shop, name, "the export is slow")
    assert await shop.take_in() == 0
    assert names(shop) == (sorted(others), [])


async def test_a_file_that_may_still_be_written_waits_and_one_with_the_time_of_another_clock_does_not(
    shop: Background,
) -> None:
    fresh = put(shop, "fresh.md", "the export is", age_s=0.1)
    put(shop, "future.md", "a dark theme", age_s=-86_400)
    assert await shop.take_in() == 1
    assert names(shop)[0] == ["fresh.md"]
    fresh.write_text("the export is slow", encoding="utf-8")
    os.utime(fresh, (time.time() - 5, time.time() - 5))
    assert await shop.take_in() == 1
    assert [row.text for row in shop.requests()] == ["a dark theme", "the export is slow"]


async def test_each_file_is_one_request_which_says_where_it_came_from(shop: Background) -> None:
    put(shop, "b.md", "\ufeff# Export\r\n\r\nIt is slow.\r\n")
    put(shop, "A.TXT", "a dark theme")
    assert await shop.take_in() == 2
    assert [(row.text, row.source, row.submitted_by) for row in shop.requests()] == [
        ("a dark theme", "folder: A.TXT", "folder"),
        ("# Export\r\n\r\nIt is slow.", "folder: b.md", "folder"),
    ]
    assert (await shop.wish()).payload == {"requests": [row.id for row in shop.requests()]}


async def test_a_request_that_is_known_is_put_away_without_being_taken_in_twice(shop: Background) -> None:
    await shop.bring("the export is slow")
    put(shop, "a.md", "The export is slow")
    assert await shop.take_in() == 0
    assert names(shop) == ([], ["a.md"])
    assert shop.crew.count(intake_requests) == 1


async def test_whoever_dies_between_storing_and_putting_away_loses_nothing_and_doubles_nothing(
    shop: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*arguments: Any) -> None:
        raise Killed

    put(shop, "a.md", "the export is slow")
    with monkeypatch.context() as patched:
        patched.setattr(intake_folder, "_put_away", die)
        with pytest.raises(Killed):
            await shop.take_in()
    assert names(shop) == (["a.md"], [])
    assert shop.states() == ["new"]
    assert await shop.take_in() == 0
    assert names(shop) == ([], ["a.md"])
    assert shop.states() == ["new"]


async def test_what_was_put_away_before_is_not_overwritten(shop: Background) -> None:
    for number in range(3):
        put(shop, "a.md", f"wish {number}")
        assert await shop.take_in() == 1
    assert names(shop) == ([], ["a-2.md", "a-3.md", "a.md"])
    away = shop.crew.repository / "wishes" / "done"
    assert [(away / name).read_text("utf-8") for name in ("a.md", "a-2.md", "a-3.md")] == ["wish 0", "wish 1", "wish 2"]


async def test_a_file_that_was_written_again_meanwhile_stays_for_the_next_look(
    shop: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(shop, "a.md", "first")
    away = intake_folder._put_away

    def meanwhile(folder: str, found: Any) -> None:
        path.write_text("second", encoding="utf-8")
        away(folder, found)

    with monkeypatch.context() as patched:
        patched.setattr(intake_folder, "_put_away", meanwhile)
        assert await shop.take_in() == 1
    assert names(shop) == (["a.md"], [])
    put(shop, "a.md", "second")
    assert await shop.take_in() == 1
    assert [row.text for row in shop.requests()] == ["first", "second"]


async def test_a_place_to_put_files_away_that_leads_elsewhere_is_not_used(
    shop: Background, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (shop.crew.repository / "wishes" / "done").symlink_to(elsewhere)
    put(shop, "a.md", "the export is slow")
    with caplog.at_level(logging.WARNING, "rookery.intake"):
        assert await shop.take_in() == 0
    assert "it is no folder" in caplog.text
    assert list(elsewhere.iterdir()) == []
    assert shop.requests() == []


async def test_an_absolute_folder_may_be_anywhere(shop: Background, tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    shop.crew.set(intake_folder=str(box))
    (box / "a.md").write_text("the export is slow", encoding="utf-8")
    os.utime(box / "a.md", (1, 1))
    assert await shop.take_in() == 1
    assert [each.name for each in (box / "done").iterdir()] == ["a.md"]


async def test_many_files_are_taken_in_by_and_by(shop: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_folder, "MAX_FILES", 2)
    for number in range(5):
        put(shop, f"{number}.md", f"wish {number}")
    assert [await shop.take_in() for _ in range(4)] == [2, 2, 1, 0]
    texts = shop.crew.rows(sa.select(intake_requests.c.text).order_by(intake_requests.c.created_ms))
    assert sorted(row.text for row in texts) == [f"wish {number}" for number in range(5)]
