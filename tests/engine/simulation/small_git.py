"""As much of git as Rookery asks of it, in this process: a call takes microseconds instead of milliseconds.

What git keeps in files that Rookery reads itself is in those files; objects and branches are in memory. A question that
it does not know is a failure of the test. The same histories run with git itself as well, only fewer of them.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from tests.engine.simulation.git_objects import Objects

ZERO = "0" * 40
_ALL_OF = {"--branches": "refs/heads/", "--tags": "refs/tags/", "--remotes": "refs/remotes/"}
Words = Sequence[str]


class Refused(Exception):
    """What git ends with: its exit code, and its complaint."""

    def __init__(self, code: int, complaint: str = "", answer: bytes = b"") -> None:
        super().__init__(complaint)
        self.code, self.complaint, self.answer = code, complaint, answer


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command runs: the objects that it sees, the git folder that is meant, and the working tree if any."""

    objects: Objects
    common: str
    git_dir: str
    folder: str | None


class SmallGit:
    """All simulated repositories of a history."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self._repositories: dict[str, Objects] = {}
        # No folder of a history is ever a link, so a path always leads to the same place.
        self._real = cache(_real_path)
        self._commands: dict[str, Callable[[Place, list[str]], bytes]] = {
            "rev-parse": self._rev_parse,
            "symbolic-ref": self._symbolic_ref,
            "for-each-ref": self._for_each_ref,
            "rev-list": self._rev_list,
            "ls-files": self._ls_files,
            "merge-base": self._merge_base,
            "diff-tree": self._diff_tree,
            "ls-tree": self._ls_tree,
            "cat-file": lambda place, words: place.objects.blobs[words[-1]],
            "status": self._status,
            "add": self._add,
            "commit": self._commit,
            "update-ref": self._update_ref,
            "merge-tree": self._merge_tree,
            "commit-tree": self._commit_tree,
            "merge": self._merge,
            "worktree": self._worktree,
            "config": self._config,
            "reset": self._reset,
        }

    def make(self, folder: str) -> None:
        """A repository with one commit on main."""
        common = os.path.realpath(os.path.join(folder, ".git"))
        os.makedirs(os.path.join(common, "objects"))
        os.makedirs(os.path.join(common, "info"))
        _write(os.path.join(common, "HEAD"), "ref: refs/heads/main\n")
        _write(os.path.join(folder, "README.md"), "# A project\n")
        self._repositories[common] = Objects()
        self.run(("add", "--all", "--", "."), {}, folder)
        self.run(("commit", "--message=first"), {}, folder)

    def reachable(self) -> set[str]:
        """The commits that a branch has, or that a working tree stands on."""
        found: set[str] = set()
        for common, objects in self._repositories.items():
            heads = [_head(objects, each) for _, each in _trees(common)]
            found |= set(objects.ancestors(*objects.refs.values(), *(tip for tip in heads if tip is not None)))
        return found

    def run(self, words: Words, environment: dict[str, str], folder: str) -> bytes:
        """What git prints; Refused if it does not end well."""
        rest = _without_options(words)
        if rest[0] == "version":
            return b"git version 2.43.0\n"
        command = self._commands.get(rest[0])
        if command is None:
            raise self._unknown(rest)
        if rest[0] == "config" and "--file" in rest:
            raise Refused(1)
        return command(self._place(environment, folder), rest[1:])

    def _unknown(self, words: Words) -> Refused:
        self.unknown.append(f"the simulated git does not know git {' '.join(words)}")
        return Refused(129, self.unknown[-1])

    def _place(self, environment: dict[str, str], folder: str) -> Place:
        objects = environment.get("GIT_OBJECT_DIRECTORY")
        git_dir = environment.get("GIT_DIR")
        work_tree = environment.get("GIT_WORK_TREE")
        if objects is not None:
            common = self._real(os.path.dirname(objects))
            index = environment.get("GIT_INDEX_FILE")
            own = os.path.dirname(index) if index is not None else git_dir or common
            return Place(self._repositories[common], common, own, work_tree)
        if git_dir is None:
            work_tree, git_dir = _found(folder)
        common = _common(self._real(git_dir))
        if common not in self._repositories:
            raise Refused(128, f"fatal: not a git repository: {git_dir}")
        return Place(self._repositories[common], common, self._real(git_dir), work_tree)

    def _rev_parse(self, place: Place, words: list[str]) -> bytes:
        name = words[-1].removesuffix("^{commit}")
        found = _head(place.objects, place.git_dir) if name == "HEAD" else place.objects.refs.get(name, name)
        if found not in place.objects.commits:
            raise Refused(1)
        return f"{found}\n".encode()

    def _symbolic_ref(self, place: Place, words: list[str]) -> bytes:
        branch = _branch(place.git_dir)
        if branch is None:
            raise Refused(1)
        return f"{branch}\n".encode()

    def _for_each_ref(self, place: Place, words: list[str]) -> bytes:
        shape = next(word.removeprefix("--format=") for word in words if word.startswith("--format="))
        patterns = [word for word in words if not word.startswith("-")]
        into = next((word.removeprefix("--merged=") for word in words if word.startswith("--merged=")), None)
        merged = None if into is None else set(place.objects.ancestors(into))
        found = sorted(
            (name, commit)
            for name, commit in place.objects.refs.items()
            if any(name == pattern or name.startswith(f"{pattern.rstrip('/')}/") for pattern in patterns)
            and (merged is None or commit in merged)
        )
        lines = (shape.replace("%(refname)", name).replace("%(objectname)", commit) for name, commit in found)
        return "".join(f"{line}\n" for line in lines).replace("%00", "\0").encode()

    def _rev_list(self, place: Place, words: list[str]) -> bytes:
        asked = [word for word in words if word == "--not" or word in _ALL_OF or not word.startswith("--")]
        if "--not" in asked:
            at = asked.index("--not")
            wanted, without = _tips(place, asked[:at]), _tips(place, asked[at + 1 :])
        else:
            base, _, tip = asked[0].partition("..")
            wanted, without = _tips(place, [tip]), _tips(place, [base])
        known = set(place.objects.ancestors(*without))
        found = [commit for commit in place.objects.ancestors(*wanted) if commit not in known]
        found = found[:1] if "--max-count=1" in words else found
        return (f"{len(found)}\n" if "--count" in words else "".join(f"{commit}\n" for commit in found)).encode()

    def _ls_files(self, place: Place, words: list[str]) -> bytes:
        assert words == ["-v", "--stage", "-z"]
        index = self._index(place)
        return "".join(f"H 100644 {index[path]} 0\t{path}\0" for path in sorted(index)).encode()

    def _merge_base(self, place: Place, words: list[str]) -> bytes:
        found = place.objects.merge_base(*(_named(place, word) for word in words))
        if found is None:
            raise Refused(1)
        return f"{found}\n".encode()

    def _diff_tree(self, place: Place, words: list[str]) -> bytes:
        old, new = (place.objects.files(word) for word in words if word in place.objects.commits)
        if "--patch" in words:
            return place.objects.patch(old, new).encode()
        if "--numstat" in words:
            counted = place.objects.counted(old, new)
            return "".join(f"{added}\t{deleted}\t{path}\0" for path, added, deleted in counted).encode()
        return "".join(f"{path}\0" for path in place.objects.changed(old, new)).encode()

    def _ls_tree(self, place: Place, words: list[str]) -> bytes:
        at = words.index("--") if "--" in words else len(words)
        commit, paths = next(word for word in words if word in place.objects.commits), words[at + 1 :]
        files = place.objects.files(commit)
        chosen = [path for path in sorted(files) if not paths or path in paths]
        sizes = {path: len(place.objects.blobs[files[path]]) for path in chosen}
        return "".join(f"100644 blob {files[path]} {sizes[path]:>7}\t{path}\0" for path in chosen).encode()

    def _status(self, place: Place, words: list[str]) -> bytes:
        assert place.folder is not None
        there, staged = self._worked(place), self._index(place)
        head = _head(place.objects, place.git_dir)
        base = place.objects.files(head) if head is not None else {}
        lines = [f"?? {path}" for path in sorted(there) if path not in staged]
        lines += [
            f" {'M' if path in there else 'D'} {path}" for path in sorted(staged) if there.get(path) != staged[path]
        ]
        lines += [f"M  {path}" for path in place.objects.changed(base, staged)]
        return "".join(f"{line}{chr(0) if '-z' in words else chr(10)}" for line in lines).encode()

    def _add(self, place: Place, words: list[str]) -> bytes:
        place.objects.indexes[place.git_dir] = self._worked(place)
        return b""

    def _commit(self, place: Place, words: list[str]) -> bytes:
        message = next((word.removeprefix("--message=") for word in words if word.startswith("--message=")), "")
        head, branch = _head(place.objects, place.git_dir), _branch(place.git_dir)
        tree = place.objects.tree(self._index(place))
        made = place.objects.commit(tree, [head] if head else [], message)
        if branch is None:
            _write(os.path.join(place.git_dir, "HEAD"), f"{made}\n")
        else:
            place.objects.refs[f"refs/heads/{branch}"] = made
        return b""

    def _update_ref(self, place: Place, words: list[str]) -> bytes:
        if words[0] == "-m":
            words = words[2:]
        delete = words[0] == "-d"
        ref, new, old = (words[1], None, words[2]) if delete else (words[0], words[1], words[2])
        now = place.objects.refs.get(ref, ZERO)
        if now != old:
            complaint = "reference already exists" if old == ZERO else f"is at {now} but expected {old}"
            raise Refused(128, f"fatal: update_ref failed for ref '{ref}': cannot lock ref '{ref}': {complaint}")
        if new is None:
            del place.objects.refs[ref]
        else:
            place.objects.refs[ref] = new
        return b""

    def _merge_tree(self, place: Place, words: list[str]) -> bytes:
        ours, theirs = words[-2:]
        base = place.objects.merge_base(ours, theirs)
        tree, conflicts = place.objects.merged(base, ours, theirs)
        answer = f"{tree}\0".encode()
        if conflicts:
            raise Refused(1, "", answer + "".join(f"{path}\0" for path in conflicts).encode())
        return answer

    def _commit_tree(self, place: Place, words: list[str]) -> bytes:
        parents = [words[at + 1] for at, word in enumerate(words) if word == "-p"]
        return f"{place.objects.commit(words[0], parents, words[words.index('-m') + 1])}\n".encode()

    def _merge(self, place: Place, words: list[str]) -> bytes:
        assert "--ff-only" in words
        assert place.folder is not None
        head, to, branch = _head(place.objects, place.git_dir), words[-1], _branch(place.git_dir)
        assert head is not None
        if head not in place.objects.ancestors(to):
            raise Refused(128, "fatal: Not possible to fast-forward, aborting.")
        old, new, there = place.objects.files(head), place.objects.files(to), self._worked(place)
        moved = place.objects.changed(old, new)
        if any(there.get(path) not in (old.get(path), new.get(path)) for path in moved):
            raise Refused(1, "error: Your local changes to the following files would be overwritten by merge:")
        self._check_out(place.objects, place.folder, {path: new.get(path) for path in moved})
        place.objects.indexes[place.git_dir] = dict(new)
        if branch is None:
            _write(os.path.join(place.git_dir, "HEAD"), f"{to}\n")
        else:
            place.objects.refs[f"refs/heads/{branch}"] = to
        return b""

    def _config(self, place: Place, words: list[str]) -> bytes:
        raise Refused(1)

    def _worktree(self, place: Place, words: list[str]) -> bytes:
        verb, rest = words[0], [word for word in words[1:] if not word.startswith("--")]
        if verb == "list":
            return self._listed(place, "\0" if "-z" in words else "\n")
        if verb == "add":
            self._add_tree(place, rest[0], rest[1], detach="--detach" in words, force="--force" in words)
            return b"" if "--no-checkout" in words else self._reset(self._place({}, rest[0]), ["--hard"])
        if verb == "remove":
            return self._remove_tree(place, rest[0])
        if verb not in ("repair", "prune"):
            raise self._unknown(["worktree", *words])
        for folder, git_dir in _trees(place.common):
            if verb == "repair" and folder in rest:
                _write(os.path.join(folder, ".git"), f"gitdir: {git_dir}\n")
            elif verb == "prune" and not os.path.isdir(folder):
                shutil.rmtree(git_dir)
        return b""

    def _listed(self, place: Place, end: str) -> bytes:
        blocks: list[str] = []
        for folder, git_dir in _trees(place.common):
            branch = _branch(git_dir)
            where = f"branch refs/heads/{branch}" if branch is not None else "detached"
            blocks.append(
                end.join((f"worktree {folder}", f"HEAD {_head(place.objects, git_dir) or ZERO}", where, "", ""))
            )
        return "".join(blocks).encode()

    def _add_tree(self, place: Place, folder: str, name: str, *, detach: bool, force: bool) -> None:
        commit = _named(place, name if detach else f"refs/heads/{name}")
        if os.path.isdir(folder) and os.listdir(folder):
            raise Refused(128, f"fatal: '{folder}' already exists")
        taken = [each for each, git_dir in _trees(place.common) if not detach and _branch(git_dir) == name]
        if taken and not force:
            raise Refused(128, f"fatal: '{name}' is already checked out at '{taken[0]}'")
        git_dir = _free(os.path.join(place.common, "worktrees", os.path.basename(folder)))
        os.makedirs(git_dir)
        os.makedirs(folder, exist_ok=True)
        folder = os.path.realpath(folder)
        _write(os.path.join(git_dir, "HEAD"), f"{commit}\n" if detach else f"ref: refs/heads/{name}\n")
        _write(os.path.join(git_dir, "commondir"), "../..\n")
        _write(os.path.join(git_dir, "gitdir"), f"{folder}/.git\n")
        _write(os.path.join(folder, ".git"), f"gitdir: {git_dir}\n")

    def _reset(self, place: Place, words: list[str]) -> bytes:
        """Have the working tree as its commit says. Files that are not known stay."""
        assert "--hard" in words
        assert place.folder is not None
        head = _head(place.objects, place.git_dir)
        files = place.objects.files(head) if head is not None else {}
        gone = {path: None for path in self._index(place) if path not in files}
        self._check_out(place.objects, place.folder, {**files, **gone})
        place.objects.indexes[place.git_dir] = dict(files)
        return b""

    def _remove_tree(self, place: Place, folder: str) -> bytes:
        for there, git_dir in _trees(place.common):
            if there == os.path.realpath(folder) and git_dir != place.common:
                shutil.rmtree(there, ignore_errors=True)
                shutil.rmtree(git_dir)
                return b""
        raise Refused(128, f"fatal: '{folder}' is not a working tree")

    def _index(self, place: Place) -> dict[str, str]:
        return place.objects.indexes.get(place.git_dir, {})

    def _worked(self, place: Place) -> dict[str, str]:
        """The files of the working tree that are not ignored."""
        assert place.folder is not None
        exclude = os.path.join(place.common, "info", "exclude")
        ignored = {line.strip().lstrip("/") for line in _read(exclude).splitlines()}
        found: dict[str, str] = {}
        for root, folders, names in os.walk(place.folder):
            folders[:] = sorted(name for name in folders if name != ".git")
            for name in sorted(names):
                path = os.path.relpath(os.path.join(root, name), place.folder)
                if path != ".git" and path not in ignored:
                    with open(os.path.join(root, name), "rb") as file:
                        found[path] = place.objects.blob(file.read())
        return found

    def _check_out(self, objects: Objects, folder: str, files: dict[str, str | None]) -> None:
        for path, blob in files.items():
            target = os.path.join(folder, path)
            if blob is None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(target)
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(objects.blobs[blob])


def _without_options(words: Words) -> list[str]:
    rest = list(words)
    while rest[0].startswith("-"):
        del rest[: 2 if rest[0] == "-c" else 1]
    return rest


def _real_path(path: str) -> str:
    return os.path.realpath(path)


def _found(folder: str) -> tuple[str, str]:
    """The working tree around a folder, and its git folder."""
    at = os.path.realpath(folder)
    while at != "/":
        dot = os.path.join(at, ".git")
        if os.path.isdir(dot):
            return at, dot
        if os.path.isfile(dot):
            return at, _read(dot).removeprefix("gitdir: ").strip()
        at = os.path.dirname(at)
    raise Refused(128, "fatal: not a git repository")


def _common(git_dir: str) -> str:
    told = _read(os.path.join(git_dir, "commondir")).strip()
    return os.path.realpath(os.path.join(git_dir, told)) if told else git_dir


def _trees(common: str) -> list[tuple[str, str]]:
    """Every working tree and its git folder, that of the repository first. Some may be gone."""
    inside = os.path.join(common, "worktrees")
    names = sorted(os.listdir(inside)) if os.path.isdir(inside) else []
    folders = [os.path.join(inside, name) for name in names]
    others = [(os.path.dirname(_read(os.path.join(each, "gitdir")).strip()), each) for each in folders]
    return [(os.path.dirname(common), common), *others]


def _branch(git_dir: str) -> str | None:
    line = _read(os.path.join(git_dir, "HEAD")).strip()
    return line.removeprefix("ref: refs/heads/") if line.startswith("ref: ") else None


def _head(objects: Objects, git_dir: str) -> str | None:
    branch = _branch(git_dir)
    if branch is not None:
        return objects.refs.get(f"refs/heads/{branch}")
    return _read(os.path.join(git_dir, "HEAD")).strip() or None


def _named(place: Place, name: str) -> str:
    found = _head(place.objects, place.git_dir) if name == "HEAD" else place.objects.refs.get(name, name)
    if found not in place.objects.commits:
        raise Refused(128, f"fatal: bad revision '{name}'")
    return found


def _tips(place: Place, names: Words) -> list[str]:
    kinds = [_ALL_OF[name] for name in names if name in _ALL_OF]
    named = [_named(place, name) for name in names if name not in _ALL_OF]
    return [*named, *(tip for name, tip in place.objects.refs.items() if name.startswith(tuple(kinds)) and kinds)]


def _free(folder: str) -> str:
    number = 0
    while os.path.lexists(f"{folder}{number or ''}"):
        number += 1
    return f"{folder}{number or ''}"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
