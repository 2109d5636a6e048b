"""Takes the files of a project's intake folder in as requests, each file as one.

A file is stored before it is put away, and a request that is stored already is only put away: whoever dies in between
loses nothing and takes nothing in twice. What cannot be taken in is told and stays where it is.
"""

import asyncio
import contextlib
import logging
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from rookery.core.errors import RookeryError, ValidationFailed
from rookery.db.database import Database
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.engine.intake_store import MAX_TEXT, Requests
from rookery.engine.project_settings import OrchestratorSettings
from rookery.files.tree_files import read_inside
from rookery.jobs.running import Ground

log = logging.getLogger("rookery.intake")
DONE = "done"
ENDINGS = (".md", ".txt")
SETTLED_S = 2.0
"""A file that was written to more recently may not be whole yet."""
MAX_FILES = 200
"""So many are taken in at once; the rest has its turn at the next look."""
_told: WeakKeyDictionary[Database, set[tuple[str, str]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Found:
    """A file of the folder: its text, or why it stays there. Neither: it may not be whole yet."""

    name: str
    text: str | None = None
    why: str | None = None
    stamp: tuple[int, int, int] | None = None


async def take_in_folder(
    platform: Ground, tenant: str, project: ProjectSettings, settings: OrchestratorSettings
) -> int:
    """Store what lies in the intake folder and put the files away; how many requests are new."""
    folder = folder_of(project, settings)
    if folder is None:
        return 0
    database, new = platform.database, 0
    for found in await asyncio.to_thread(look_into, folder):
        if found.why is not None:
            _tell(database, folder, found.name, found.why)
        elif found.text is not None:
            new += await _take_in(database, tenant, project.project_id, folder, found, found.text)
    return new


def folder_of(project: ProjectSettings, settings: OrchestratorSettings) -> str | None:
    """The intake folder: as it is set, in the project's folder unless it is absolute. None: there is none."""
    wanted = settings.intake_folder.strip()
    if not wanted or not (os.path.isabs(wanted) or project.path):
        return None
    return os.path.join(project.path or "", wanted)


def look_into(folder: str) -> list[Found]:
    """The files that are requests, by name, at most so many as are taken in at once; the folder itself if it cannot
    be used."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if _is_request(entry.name))
    except OSError as error:
        return [Found(folder, why=f"the folder cannot be read: {error.strerror}")]
    if not names:
        return []
    try:
        put_away = os.lstat(os.path.join(folder, DONE))
        if not stat.S_ISDIR(put_away.st_mode):
            return [Found(DONE, why="it is no folder, so nothing can be put away there")]
    except FileNotFoundError:
        pass
    except OSError as error:
        return [Found(DONE, why=f"it cannot be used: {error.strerror}")]
    return list(_readable(folder, names))


def _is_request(name: str) -> bool:
    return name.lower().endswith(ENDINGS) and not name.startswith((".", "~", "#"))


def _readable(folder: str, names: list[str]) -> Iterator[Found]:
    taken = 0
    for name in names:
        found = _read(folder, name)
        yield found
        taken += found.text is not None
        if taken == MAX_FILES:
            return


def _read(folder: str, name: str) -> Found:
    path = os.path.join(os.path.realpath(folder), name)
    try:
        about = os.lstat(path)
        if not stat.S_ISREG(about.st_mode):
            return Found(name, why="it is no regular file; links are not followed")
        if _is_fresh(about):
            return Found(name)
        content = read_inside(folder, path, 4 * MAX_TEXT, name)
        if content is None or _stamp(os.lstat(path)) != _stamp(about):
            return Found(name)
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return Found(name, why="it is not UTF-8")
    except FileNotFoundError:
        return Found(name)
    except OSError as error:
        return Found(name, why=f"it cannot be read: {error.strerror}")
    except ValidationFailed as error:
        return Found(name, why=error.message)
    if not text or "\0" in text or len(text) > MAX_TEXT:
        return Found(name, why=f"a request has 1 to {MAX_TEXT:,} characters of text; this has {len(text):,}")
    return Found(name, text=text, stamp=_stamp(about))


def _is_fresh(about: os.stat_result) -> bool:
    # A time far ahead is another machine's clock, and no sign of somebody writing.
    return -60.0 < time.time() - about.st_mtime < SETTLED_S


def _stamp(about: os.stat_result) -> tuple[int, int, int]:
    return about.st_mtime_ns, about.st_ino, about.st_size


async def _take_in(database: Database, tenant: str, project_id: str, folder: str, found: Found, text: str) -> int:
    try:
        stored = await database.change(
            lambda tx: Requests(tx, tenant).submit(project_id, [text], source=f"folder: {found.name}", by="folder")
        )
        # Another may have been faster: then it is away.
        with contextlib.suppress(FileNotFoundError):
            await asyncio.to_thread(_put_away, folder, found)
    except (RookeryError, OSError) as error:
        _tell(database, folder, found.name, error.message if isinstance(error, RookeryError) else str(error))
        return 0
    return sum(not each.known for each in stored)


def _put_away(folder: str, found: Found) -> None:
    """Move the file that was read, and no other that has its name by now, to where nothing is overwritten."""
    source, place = Path(folder, found.name), Path(folder, DONE)
    place.mkdir(exist_ok=True)
    if _stamp(os.lstat(source)) != found.stamp:
        return
    for number in range(1, 10_000):
        target = place / (found.name if number == 1 else f"{source.stem}-{number}{source.suffix}")
        if not os.path.lexists(target):
            source.rename(target)
            return
    raise FileExistsError(f"too many files in {place} have the name {found.name}")


def _tell(database: Database, folder: str, name: str, why: str) -> None:
    """Say once what stays in the folder, however often it is looked at."""
    told = _told.setdefault(database, set())
    if (found := (os.path.join(folder, name), why)) not in told:
        told.add(found)
        log.warning("%s is not taken in: %s", *found)
