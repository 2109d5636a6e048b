"""Where the agent of a session works: where its work is, else in a folder of its own; never where the server runs."""

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterable

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, PermissionDenied, ServiceUnavailable
from rookery.db.tx import Tx
from rookery.identity.store import IdentityStore

OUTSIDE_HINT = "work in the folder of a project, or let the owner add the folder to session_roots"
MOST_LETTERS = 100
_ODD = re.compile(r"[^A-Za-z0-9_-]")


def places_of(tx: Tx, actor: Actor) -> list[str]:
    """Where the agent's work is: its worktree, then the folder of its project, as far as it has them."""
    project = IdentityStore(tx, actor.tenant).project(actor.project).path if actor.project is not None else None
    return [place for place in (actor.worktree, project) if place is not None]


def place_here(tx: Tx, actor: Actor) -> str | None:
    """The first of them, for whoever can ask nobody to make it: None also if it is not on this machine."""
    try:
        return next((real_folder(place) for place in places_of(tx, actor)), None)
    except InvalidParams:
        return None


def inside(folder: str, roots: Iterable[str]) -> str:
    """The real path of a folder inside one of the roots, links followed; else an error that says what to do."""
    real = real_folder(folder)
    for root in roots:
        top = os.path.realpath(os.path.expanduser(root))
        if os.path.commonpath([real, top]) == top:
            return real
    raise PermissionDenied(f"{folder[:200]} is outside the folders that agents may work in", hint=OUTSIDE_HINT)


def real_folder(folder: str) -> str:
    """The real path of a folder that is there."""
    path = os.path.expanduser(folder)
    if not os.path.isabs(path) or "\0" in path:
        raise InvalidParams(f"{folder[:200]!r} is no absolute path of a folder", hint="give the whole path")
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        raise InvalidParams(f"there is no folder {folder[:200]}", hint="make it first")
    return real


class OwnFolders:
    """The folders of sessions that have no other, below the server's home. Nobody else may look into them."""

    def __init__(self, home: str) -> None:
        self._top = os.path.join(os.path.realpath(home), "sessions")

    def path(self, session_id: str) -> str:
        """Always the same for a session: some runtimes find what was said before by the folder."""
        plain = _ODD.sub("_", session_id)[:MOST_LETTERS]
        if plain == session_id and plain:
            return os.path.join(self._top, plain)
        digest = hashlib.sha256(session_id.encode(errors="surrogatepass")).hexdigest()
        return os.path.join(self._top, f"{plain}-{digest[:16]}")

    def made(self, session_id: str) -> str:
        """Its path, once it is there. ServiceUnavailable if something else stands in its place."""
        path = self.path(session_id)
        try:
            os.makedirs(self._top, 0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
            # A link would let the agent work wherever it leads.
            if stat.S_ISDIR(os.lstat(path).st_mode):
                return path
            why = "something else is there"
        except OSError as error:
            why = error.strerror or str(error)
        raise ServiceUnavailable(f"the session's folder {path} cannot be made: {why}", hint="look at the server's home")

    def remove_empty(self, session_id: str) -> None:
        """Take it away if its agent has left nothing in it."""
        with contextlib.suppress(OSError):
            os.rmdir(self.path(session_id))
