"""What is easily overlooked: odd failures of a parser, a vault that is off, a disk that is not there."""

import os
import zlib
from pathlib import Path

import pytest

from rookery.core.errors import ValidationFailed
from rookery.domains.knowledge import pdf_text, walk
from rookery.domains.knowledge.extract import extract
from tests.cli.terminal import Terminal
from tests.domains.knowledge.library import Library
from tests.domains.knowledge.test_knowledge_resource import looked_up


@pytest.mark.parametrize("failure", [zlib.error("bad"), ZeroDivisionError(), NotImplementedError(), MemoryError()])
def test_whatever_a_broken_pdf_makes_of_the_parser_the_file_is_refused(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(stream: object) -> None:
        raise failure

    monkeypatch.setattr(pdf_text, "PdfReader", fail)
    with pytest.raises(ValidationFailed, match=type(failure).__name__):
        extract("a.pdf", b"%PDF-1.7")


async def test_a_vault_that_is_off_completes_no_paths(library: Library) -> None:
    await library.open()
    await library.index("docs/a.md", "# A\n\nwords")
    assert await looked_up(library, "docs", "docs/") == ["docs/a.md"]
    await library.fleet.call(library.person("docs"), "configure_vault", on=False)
    assert await looked_up(library, "docs", "docs/") == []


def test_a_folder_that_is_not_there_is_no_reason_to_prune(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    (root / "tea.md").write_text("# Tea\n\nBoil water.", encoding="utf-8")
    terminal = Terminal(tmp_path)
    terminal.ok("knowledge", "vault", "--root", str(root))
    terminal.ok("knowledge", "add")
    root.rename(tmp_path / "elsewhere")
    assert "is not there" in terminal.fails("knowledge", "add", "--prune")
    assert [each["path"] for each in terminal.json("knowledge", "list", "--json")] == ["tea.md"]


def test_a_folder_that_cannot_be_entered_is_skipped_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root" / "closed").mkdir(parents=True)
    (tmp_path / "root" / "tea.md").write_text("# Tea\n\nBoil water.", encoding="utf-8")
    scandir = os.scandir

    def refusing(place: str) -> object:
        if place.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(place)

    monkeypatch.setattr(walk.os, "scandir", refusing)
    terminal = Terminal(tmp_path)
    terminal.ok("knowledge", "vault", "--root", str(tmp_path / "root"), "--glob", "*.md")
    done = terminal.json("knowledge", "add", "--json")
    assert done["indexed"] == ["tea.md"]
    assert [each["path"] for each in done["skipped"]] == ["closed"]
