"""Puts together what a diff page shows of each file. It takes time with large diffs, so it is done in a thread."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from rookery.core.errors import NotFound
from rookery.domains.tracker.diff_files import ChangedFile, Side
from rookery.web.diff_outline import FilePage, Outline, file_page, folders, opened, outline_of, what_happened
from rookery.web.diff_view import Clock, Notes, Shown, View, file_rows
from rookery.web.rendering import rendered

_READERS = ThreadPoolExecutor(2, thread_name_prefix="diff")
"""More threads that read diffs at the same time would only take the time of those who do other things."""
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileShown:
    """A file with what is said of it; `body` is None until it is fetched."""

    file: ChangedFile
    happened: str
    deceiving: int
    notes: int
    body: Shown | None


@dataclass(frozen=True, slots=True)
class DiffShown:
    """One page of a diff."""

    outline: Outline
    page: FilePage
    files: Sequence[FileShown]
    tree: Sequence[tuple[str, Sequence[FileShown]]]
    deceiving_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants to see of a diff. `around` are the values that templates of comments use."""

    pr_id: str
    diff: str
    view: View
    comments: Sequence[Record]
    around: Mapping[str, Any]


async def shown_page(asked: Asked, wanted: str, page: int) -> DiffShown:
    """A page of files, as many of them open as a page can bear."""
    return await asyncio.get_running_loop().run_in_executor(_READERS, _page, asked, wanted, page)


async def shown_file(asked: Asked, number: int) -> FileShown | None:
    """One file, open; None if there is none with this number."""
    return await asyncio.get_running_loop().run_in_executor(_READERS, _one, asked, number)


async def path_of(read: Mapping[str, Any], number: int, side: str) -> str:
    """The path of a file on one side of a diff, or NotFound. Names can hold what no form brings back as it was."""
    work = asyncio.get_running_loop().run_in_executor(_READERS, outline_of, read["pr_id"], read["diff"])
    files = (await work).files
    if not 0 <= number < len(files):
        raise NotFound("the change has no such file", hint="its page lists those it has")
    return _path_on(files[number], "old" if side == "old" else "new")


def _page(asked: Asked, wanted: str, number: int) -> DiffShown:
    outline = outline_of(asked.pr_id, asked.diff)
    page = file_page(outline.files, wanted, number)
    open_now = opened(page.files, {comment["path"] for comment in asked.comments})
    clock = Clock()
    files = [_file(asked, outline, file, clock, is_open=file.number in open_now) for file in page.files]
    by_number = {each.file.number: each for each in files}
    tree = [(name, [by_number[file.number] for file in group]) for name, group in folders(page.files)]
    return DiffShown(outline, page, files, tree, sum(1 for count in outline.deceiving if count))


def _one(asked: Asked, number: int) -> FileShown | None:
    outline = outline_of(asked.pr_id, asked.diff)
    if not 0 <= number < len(outline.files):
        return None
    return _file(asked, outline, outline.files[number], Clock(), is_open=True)


def _file(asked: Asked, outline: Outline, file: ChangedFile, clock: Clock, *, is_open: bool) -> FileShown:
    own = [each for each in asked.comments if each["path"] == _path_on(file, each["side"])]
    body = file_rows(asked.diff, file, asked.view, _notes(own, asked.around), clock) if is_open else None
    return FileShown(file, what_happened(file), outline.deceiving[file.number], len(own), body)


def _path_on(file: ChangedFile, side: Side) -> str:
    return (file.old_path or file.path) if side == "old" else file.path


def _notes(comments: Sequence[Record], around: Mapping[str, Any]) -> Notes:
    notes: dict[tuple[Side, int], list[Markup]] = {}
    for comment in comments:
        note = rendered("diff_note.html", {**around, "note": comment})
        notes.setdefault((comment["side"], comment["line"]), []).append(note)
    return notes
