"""Makes the worktree of an issue, or finds it as it was left. Blocks; for a thread.

Each step is remembered before it is done, so that whoever comes after a crash goes on: a worktree that no agent has
seen is made anew, one that an agent may have worked in is never touched.
"""

import contextlib
import os
import secrets
from collections.abc import Generator
from dataclasses import replace

from rookery.core.errors import Conflict, ServiceUnavailable, ValidationFailed
from rookery.domains.tracker.worktree import Marker, verify_worktree, write_marker
from rookery.engine.workspace_names import REMOVED, Site, branch_names, free, inside, is_ours
from rookery.engine.workspace_records import Record, read_record, write_record
from rookery.engine.worktrees import Worktrees, wait_for_locks
from rookery.files.folders import remove_folder
from rookery.files.git import open_repository


class Making:
    """One attempt to have the worktree of an issue."""

    def __init__(self, trees: Worktrees, site: Site, issue_id: str, identifier: str) -> None:
        self.trees = trees
        self.site = site
        self.issue_id = issue_id
        self.identifier = identifier
        self.folder = site.workspace(issue_id, identifier)

    def run(self) -> Record:
        """The worktree with its branch and its marker. It is `used` if it was handed out before."""
        with clear_errors(self.site):
            record = self._with_branch(self._known() or self._adopted() or self._chosen())
            record = self._with_worktree(record)
            git_dir = open_repository(record.path).git_dir
            refs = os.path.join(self.trees.repository.common_dir, "refs", "heads", f"{record.branch}.lock")
            wait_for_locks([os.path.join(git_dir, "index.lock"), os.path.join(git_dir, "HEAD.lock"), refs])
            write_marker(record.path, Marker(self.identifier, self.issue_id, record.branch))
        return record

    def hand_out(self, record: Record) -> None:
        """From now on the worktree is an agent's."""
        with clear_errors(self.site):
            write_record(self.trees.repository, replace(record, used=True))

    def _known(self) -> Record | None:
        return read_record(self.trees.repository, self.issue_id)

    def _adopted(self) -> Record | None:
        """The worktree that is there with the issue's marker, though nothing is remembered of it."""
        if not self.trees.healthy(self.folder):
            return None
        try:
            branch = verify_worktree(self.folder, None, self.identifier, self.issue_id).branch
        except Conflict:
            return None
        tip = self.trees.tip(branch) if is_ours(branch) else None
        base = None if tip is None else self.trees.common_start(self.trees.base(self.site.base_branch), tip)
        return None if base is None else Record(self.issue_id, branch, base, self.folder, used=True)

    def _chosen(self) -> Record:
        """A branch of our own. A name that somebody else has is left alone."""
        base = self.trees.base(self.site.base_branch)
        here, there = self.trees.branches()
        names = branch_names(self.identifier, self.issue_id)
        own = [name for name in names[1:] if name in here] or [name for name in names if free(name, here | there)]
        if not own:
            raise Conflict(f"no branch for {self.identifier} can be made", hint="rename the branch rookery")
        begun = self.trees.common_start(base, f"refs/heads/{own[0]}") if own[0] in here else None
        return Record(self.issue_id, own[0], begun or base)

    def _with_branch(self, record: Record) -> Record:
        if self.trees.tip(record.branch) is not None:
            return record
        record = replace(record, base=self.trees.base(self.site.base_branch))
        write_record(self.trees.repository, record)
        self.trees.make_branch(record.branch, record.base)
        return record

    def _with_worktree(self, record: Record) -> Record:
        if record.used and (self.trees.healthy(record.path) or self._mended(record.path)):
            return record
        own_folder(self.site, self.site.folder)
        if os.path.lexists(self.folder):
            self._put_aside(record)
        return self._check_out(record)

    def _check_out(self, record: Record) -> Record:
        listed = self.trees.listed()
        if any(each.path == self.folder for each in listed):
            self.trees.drop(self.folder)
        elsewhere = [each for each in listed if each.branch == record.branch and each.path != self.folder]
        for each in elsewhere:
            if os.path.lexists(each.path):
                raise Conflict(
                    f"the branch {record.branch} of {self.identifier} is checked out in {each.path}",
                    hint="switch to another branch there",
                )
        record = replace(record, path=self.folder, used=False)
        write_record(self.trees.repository, record)
        # What is listed there is gone.
        self.trees.add(self.folder, *(("--force",) if elsewhere else ()), record.branch)
        return record

    def _mended(self, path: str) -> bool:
        listed = os.path.isdir(path) and not os.path.islink(path) and self.trees.at(path) is not None
        return listed and self.trees.repair(path)

    def _put_aside(self, record: Record) -> None:
        """Remove what an interrupted attempt has left. Anything else that is in the way stays, and is told."""
        if record.used and record.path == self.folder:
            raise Conflict(
                f"the workspace {self.folder} is no working tree of {self.site.repository} any more",
                hint="save from it what is needed, and move it away",
            )
        begun = record.path == self.folder and os.path.isdir(self.folder) and not os.path.islink(self.folder)
        if not (begun and (not os.listdir(self.folder) or self.trees.points_here(self.folder))):
            raise Conflict(
                f"the workspace of {self.identifier} would be {self.folder}, where something else is",
                hint="look at it and move it away",
            )
        put_away(self.folder)


def put_away(folder: str) -> None:
    """Remove a folder: at once out of the way, so that nobody finds half of it."""
    removed = os.path.join(os.path.dirname(folder), REMOVED)
    if os.path.islink(removed):
        os.unlink(removed)
    os.makedirs(removed, mode=0o700, exist_ok=True)
    os.rename(folder, os.path.join(removed, f"{os.path.basename(folder)}-{secrets.token_hex(4)}"))
    # Also what somebody left who died here. What cannot be deleted now is left for next time.
    for name in os.listdir(removed):
        with contextlib.suppress(OSError):
            remove_folder(os.path.join(removed, name))


def own_folder(site: Site, folder: str) -> None:
    """Have a folder for workspaces. One that leads elsewhere is refused."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not inside(os.path.realpath(folder), os.path.realpath(site.root)):
        raise ValidationFailed(f"{folder} leads out of {site.root}", hint="remove the link there")


@contextlib.contextmanager
def clear_errors(site: Site) -> Generator[None]:
    """What the file system refuses is told as what it is."""
    try:
        yield
    except OSError as error:
        raise ServiceUnavailable(
            f"a workspace of {site.slug} could not be made or removed: {error.strerror}: {error.filename}",
            hint="look at the room and the rights there, or set worktree_base_dir",
        ) from None
