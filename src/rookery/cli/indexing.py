"""Reads a project's files in, one after the other, for `rookery knowledge`. Each is a call of its own, like any."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

from rookery.cli.session import actor_of, opened, owner_flags
from rookery.cli.show import cell
from rookery.core.errors import ConfigurationError, Conflict, InvalidParams, NotFound, TimedOut, ValidationFailed

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.core.actor import Actor

PAGE = 1000
NOT_FATAL = (Conflict, InvalidParams, NotFound, TimedOut, ValidationFailed)
"""What is wrong with one file. Anything else, such as a database that is gone, ends the command."""


class Report(Protocol):
    """Tells the person at the terminal how far the work is."""

    def expect(self, files: int) -> None: ...
    def tell(self, status: str, path: str, detail: str) -> None: ...


class Lines:
    """One line a file, at once, for whoever reads along."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def expect(self, files: int) -> None:
        return None

    def tell(self, status: str, path: str, detail: str) -> None:
        if not self.quiet:
            click.echo(f"{status}  {cell(path)}  {cell(detail)}")
            sys.stdout.flush()


class Bar:
    """A progress bar; only what was skipped or removed gets a line."""

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.task = progress.add_task("reading", total=None)

    def expect(self, files: int) -> None:
        self.progress.update(self.task, total=files)

    def tell(self, status: str, path: str, detail: str) -> None:
        from rich.text import Text

        if status in ("skipped", "removed"):
            self.progress.console.print(Text(f"{status}  {cell(path)}  {cell(detail)}"))
        if status != "removed":
            self.progress.update(self.task, advance=1, description=Text(cell(path)[-60:]))


@contextlib.contextmanager
def bar_or_lines(*, quiet: bool) -> Generator[Report]:
    """A bar on a terminal, lines elsewhere, nothing if it is to be quiet."""
    if quiet or not sys.stdout.isatty():
        yield Lines(quiet=quiet)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        yield Bar(progress)


class Library:
    """An opened platform, and its owner bound to a project."""

    def __init__(self, platform: "Platform", actor: "Actor", runner: asyncio.Runner) -> None:
        self._platform = platform
        self._actor = actor
        self._runner = runner

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a tool. Raises what the caller would be told."""
        return self._runner.run(self._platform.calls.call(self._actor, tool, arguments)).structured


@contextlib.contextmanager
def open_library(home: str | None, project: str | None) -> Generator[Library]:
    flags = owner_flags(home, project)
    with opened(flags) as platform, asyncio.Runner() as runner:
        yield Library(platform, actor_of(platform, {"source": "cli", **flags}), runner)


class Librarian:
    """Looks after the documents of one project."""

    def __init__(self, library: Library) -> None:
        self._call = library.call

    def documents(self, below: str) -> list[dict[str, Any]]:
        """Every document of a folder, or every one."""
        found: list[dict[str, Any]] = []
        after: str | None = ""
        while after is not None:
            page = self._call("list_documents", below=below, after=after, limit=PAGE)
            found += page["documents"]
            after = page["after"]
        return found

    def remove(self, paths: Sequence[str]) -> list[dict[str, Any]]:
        """Remove the documents at or below these listed paths; one that has none is refused before any goes."""
        wanted: dict[str, None] = {}
        for path in paths:
            below = path.strip("/") if path not in (".", "./") else ""
            found = [each["path"] for each in self.documents(below)]
            if not found:
                raise NotFound(f"there is no document at or below {path}", hint="rookery knowledge list shows them")
            wanted |= dict.fromkeys(found)
        return [self._call("vault_delete", path=path) for path in wanted]

    def add(self, paths: Sequence[str], report: Report, *, prune: bool) -> dict[str, list[Any]]:
        """Read in what is at or below the paths. What cannot be read is among the skipped, with the reason."""
        from rookery.domains.knowledge.walk import MAX_FILES

        vault = self._vault()
        root: str = vault["root"]
        if not os.path.isdir(root):
            # A disk that is not mounted must not look like a folder whose files were all removed.
            raise ConfigurationError(f"the project's folder {root} is not there", hint="mount it, or set another root")
        places = [_place(root, path) for path in paths] or [tuple(f.split("/")) for f in vault["folders"]] or [()]
        files = list(dict.fromkeys(_files(root, places, vault)))
        if len(files) > MAX_FILES:
            raise ValidationFailed(f"there are more than {MAX_FILES} files", hint="add the folders one by one")
        report.expect(len(files))
        done: dict[str, list[Any]] = {"indexed": [], "unchanged": [], "skipped": [], "removed": []}
        for file in files:
            self._add_one("/".join(file), report, done)
        if prune:
            self._prune(root, places, report, done)
        return done

    def _add_one(self, path: str, report: Report, done: dict[str, list[Any]]) -> None:
        try:
            answer = self._call("vault_update", path=path)
        except NOT_FATAL as error:
            done["skipped"].append({"path": path, "reason": error.message})
            report.tell("skipped", path, error.message)
            return
        done[answer["status"]].append(answer["path"])
        report.tell(answer["status"], answer["path"], f"{answer['chunks']} chunks")

    def _prune(self, root: str, places: Sequence[tuple[str, ...]], report: Report, done: dict[str, list[Any]]) -> None:
        known = {each["path"]: None for place in places for each in self.documents("/".join(place))}
        for path in known:
            if _is_gone(os.path.join(root, path)):
                self._call("vault_delete", path=path)
                done["removed"].append(path)
                report.tell("removed", path, "its file is gone")

    def _vault(self) -> dict[str, Any]:
        """The project's vault, on and with a folder. What was never set is set to what the command can mean."""
        vault = self._call("configure_vault")
        if vault["configured"] and not vault["on"]:
            raise Conflict(
                f"the vault of project {vault['project']} is off",
                hint=f"rookery knowledge vault --project {vault['project']} --on",
            )
        if vault["root"] is None:
            # Documents are files of some folder: without any other, of the one where the person stands.
            vault = self._call("configure_vault", root=os.getcwd())
            click.echo(f"the vault of project {vault['project']} has the folder {vault['root']} now", err=True)
        return vault if vault["on"] else self._call("configure_vault", on=True)


def _is_gone(path: str) -> bool:
    """Whether there is no such file. One in a folder that cannot be entered may well be there."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _place(root: str, path: str) -> tuple[str, ...]:
    """The parts of a path that a person typed, as seen from the root. One outside of it is refused."""
    typed = os.path.abspath(os.path.expanduser(path))
    if not os.path.lexists(typed):
        raise NotFound(f"there is no file or folder {path}", hint="paths are relative to the current folder")
    for place, above in ((typed, os.path.abspath(root)), (os.path.realpath(typed), os.path.realpath(root))):
        inside = os.path.relpath(place, above)
        if inside != ".." and not inside.startswith(f"..{os.sep}"):
            return tuple(part for part in inside.split(os.sep) if part != ".")
    raise ValidationFailed(
        f"{path} is not in the project's folder {root}",
        hint="rookery knowledge vault --root FOLDER sets another, or use a project of its own",
    )


def _files(root: str, places: Sequence[tuple[str, ...]], vault: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    from rookery.domains.knowledge.walk import MAX_FILES, covered, files_below

    count = 0
    for place in places:
        for file in files_below(root, place):
            # What was named gets its answer, and so does a folder that cannot be entered; otherwise only what belongs
            # to the vault is meant.
            is_folder = os.path.isdir(os.path.join(root, *file))
            if file == place or is_folder or covered(file, vault["folders"], vault["globs"]):
                count += 1
                yield file
            if count > MAX_FILES:
                return
