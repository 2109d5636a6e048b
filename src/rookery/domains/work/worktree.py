"""The working tree of a task: made, found again after a crash, committed and removed. Blocks; for a thread.

Hooks and filters of the repository, but for git-lfs, never run in these commands: whoever worked there may have set
them. No command of ours takes a name for an option.
"""

import os
from dataclasses import dataclass

from rookery.core.errors import ValidationFailed
from rookery.domains.work.naming import slug
from rookery.files.folders import remove_folder
from rookery.files.git import as_environment, ask, head, open_repository, run_git, without_filters


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task is done: the project's folder, the task's own, its branch and the commit that it starts from."""

    project: str
    folder: str
    branch: str
    base: str
    author: str

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"

    @property
    def only_here(self) -> dict[str, str]:
        """For git in the task's folder: if it is no working tree any more, a repository around it is none of ours."""
        return {"GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.realpath(self.folder))}

    @property
    def settings(self) -> dict[str, str]:
        """For git in the task's folder, where it looks at files or writes some."""
        return self.only_here | as_environment(without_filters(open_repository(self.folder)))


def starting_point(project: str) -> tuple[str, str | None]:
    """The commit that is checked out in the project's folder, and its branch if it is one."""
    repository = open_repository(project)
    return head(repository), ask(repository, "symbolic-ref", "--quiet", "--short", "HEAD") or None


def make_worktree(place: Place) -> None:
    """A fresh working tree on a fresh branch, whatever an interrupted attempt left there."""
    _remove(place)
    _add(place, "-B", place.branch, place.folder, place.base)


def ensure_worktree(place: Place) -> None:
    """The working tree as the work left it. If it is gone, it is made again from the branch."""
    if _healthy(place):
        if not os.path.isfile(os.path.join(open_repository(place.folder).git_dir, "index")):
            # It was being made: the index is what git writes last.
            _check_out(place)
        return
    _remove(place)
    there = ask(open_repository(place.project), "rev-parse", "--verify", "--quiet", place.ref)
    if there:
        _add(place, place.folder, place.branch)
    else:
        _add(place, "-b", place.branch, place.folder, place.base)


def branch_there(place: Place) -> str | None:
    """The branch that is checked out in the working tree; None if it is none."""
    return ask(open_repository(place.folder), "symbolic-ref", "--quiet", "--short", "HEAD") or None


def commit_leftovers(place: Place, message: str) -> bool:
    """Commit what the agent has changed and not committed; whether there was anything. Ignored files stay out.

    ValidationFailed if the repository has filters: committed without them, a file could be what nobody may see.
    """
    settings = place.settings
    if not run_git(("status", "--porcelain", "--untracked-files=normal"), settings, place.folder).strip():
        return False
    if without_filters(open_repository(place.folder)):
        raise ValidationFailed("the repository has filters of its own", hint="whoever works there has to commit all")
    name = place.author
    mail = f"{slug(name) or 'agent'}@rookery.invalid"
    who = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail, "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail}
    run_git(("add", "--all", "--", "."), settings, place.folder)
    words = ("commit", "--quiet", "--no-verify", "--no-gpg-sign", f"--message={message}")
    run_git(words, who | settings, place.folder)
    return True


def restore(place: Place) -> None:
    """Throw away what commands have left since the last commit, but for files that git ignores."""
    settings = place.settings
    run_git(("reset", "--quiet", "--hard"), settings, place.folder)
    run_git(("clean", "--quiet", "-d", "--force"), settings, place.folder)


def commits_made(place: Place) -> int:
    """How many commits the branch has that its start has not."""
    return int(run_git(("rev-list", "--count", f"{place.base}..{place.ref}", "--"), {}, place.project))


def tip(place: Place) -> str:
    """The last commit of the branch."""
    return run_git(("rev-parse", "--verify", "--end-of-options", place.ref), {}, place.project).decode().strip()


def put_away(place: Place, message: str) -> bool:
    """Remove the working tree, after committing what is left in it. The branch stays.

    False, and nothing removed, if something is left that belongs to another branch, or cannot be committed here.
    """
    if _healthy(place):
        if branch_there(place) == place.branch and not without_filters(open_repository(place.folder)):
            commit_leftovers(place, message)
        elif run_git(("status", "--porcelain"), place.settings, place.folder).strip():
            return False
    _remove(place)
    return True


def _add(place: Place, *arguments: str) -> None:
    os.makedirs(os.path.dirname(place.folder), mode=0o700, exist_ok=True)
    run_git(("worktree", "add", "--quiet", "--no-checkout", *arguments), {}, place.project)
    _check_out(place)


def _check_out(place: Place) -> None:
    run_git(("reset", "--hard", "--quiet", "--no-recurse-submodules"), place.settings, place.folder)


def _remove(place: Place) -> None:
    remove_folder(place.folder)
    if os.path.isdir(place.project):
        # Twice forced: also what an interrupted `worktree add` has locked. 128: git does not know it.
        run_git(("worktree", "remove", "--force", "--force", place.folder), {}, place.project, accept=(0, 128))


def _healthy(place: Place) -> bool:
    """Whether the folder is a working tree of the project's repository."""
    if not os.path.isdir(place.folder):
        return False
    try:
        return open_repository(place.folder).common_dir == open_repository(place.project).common_dir
    except ValidationFailed:
        return False
