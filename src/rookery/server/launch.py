"""From launch flags to a binding. The flags are the seed's and ours; what is wrong with them is said before serving."""

import logging
import os
import stat
from typing import cast, get_args

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from rookery.core.actor import Actor, Source
from rookery.core.errors import ConfigurationError, InvalidParams, PermissionDenied
from rookery.core.registry import Registry
from rookery.identity.critical import lost_tools
from rookery.identity.resolve import Binding, read_scope_file
from rookery.lifecycle.session_mark import in_session

Flags = dict[str, str | bool]
SCOPE_BYTES = 1 << 20
NO_PERSON = "this runs in an agent's session, so it cannot act as the owner"
log = logging.getLogger("rookery.launch")


def working_folder() -> str | None:
    """Where this process was started, or None if that is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def absolute(path: str, cwd: str | None) -> str:
    """The path as the client means it, who was started in `cwd`."""
    path = os.path.expanduser(path)
    if cwd is None and not os.path.isabs(path):
        raise ConfigurationError(
            f"{path} cannot be found: the folder that the client was started in is gone", hint="give an absolute path"
        )
    return os.path.abspath(os.path.join(cwd or "/", path))


def database_url(db: str, cwd: str | None) -> str:
    """The address that `--db` means: an address as it is, a path as a SQLite file."""
    if "://" not in db:
        return f"sqlite:///{absolute(db, cwd)}"
    try:
        sa.make_url(db)
    except (ArgumentError, ValueError):
        raise ConfigurationError(
            "--db is no address of a database", hint="a path, sqlite:///path or postgresql://user@host/name"
        ) from None
    return db


def only_owner(home: str) -> None:
    """Refuse to act as the owner for an agent's session, and of a home that belongs to another user.

    Root's right to enter it changes nothing about that.
    """
    if in_session():
        raise PermissionDenied(NO_PERSON, hint="use a terminal of your own", layer="principal")
    if os.path.exists(home) and os.stat(home).st_uid != os.geteuid():
        raise PermissionDenied(f"{home} belongs to another user", hint="run this as its owner", layer="principal")


def same_database(one: str, other: str) -> bool:
    """Whether two addresses lead to the same database."""
    left, right = sa.make_url(one), sa.make_url(other)
    if left.get_backend_name() != right.get_backend_name():
        return False
    if left.get_backend_name() == "sqlite":
        return os.path.realpath(left.database or "") == os.path.realpath(right.database or "")
    return (left.host, left.port or 5432, left.database) == (right.host, right.port or 5432, right.database)


def warn_of_lost_tools(actor: Actor, registry: Registry) -> None:
    """Say in the log what the session's profile lacks to do its work. The session starts all the same."""
    for warning in lost_tools(actor, registry):
        log.warning("%s", warning, extra={"session": actor.session, "tenant": actor.tenant, "agent": actor.agent})


def binding_from(flags: Flags, registry: Registry, cwd: str | None) -> Binding:
    """The binding that the flags describe, of a client that was started in `cwd`."""
    scope = _path(flags, "tool_scope_file", cwd)
    return Binding(
        agent=_text(flags, "agent"),
        profile=_text(flags, "agent_type"),
        project=_text(flags, "project_id"),
        project_slug=_text(flags, "project_slug"),
        issue=_text(flags, "issue_id"),
        session=_session(flags),
        source=_source(flags),
        depth=_depth(flags),
        scheduler=bool(flags.get("scheduler")),
        as_owner=bool(flags.get("as_owner")),
        scope_file=_scope(scope, registry) if scope else None,
        worktree=_path(flags, "worktree_path", cwd),
        cwd=cwd,
        symphony_dir=_path(flags, "symphony_dir", cwd),
    )


def _scope(path: str, registry: Registry) -> frozenset[str]:
    # A pipe or a device would hold up every session of the server that reads it.
    try:
        about = os.stat(path)
    except OSError as error:
        raise ConfigurationError(
            f"the scope file {path} cannot be read: {error.strerror}", hint="it must be a JSON list"
        ) from None
    if not stat.S_ISREG(about.st_mode) or about.st_size > SCOPE_BYTES:
        raise ConfigurationError(
            f"the scope file {path} is not a file of at most {SCOPE_BYTES} bytes", hint="it must be a JSON list"
        )
    return read_scope_file(path, registry)


def _text(flags: Flags, name: str) -> str | None:
    value = flags.get(name)
    return value if isinstance(value, str) else None


def _path(flags: Flags, name: str, cwd: str | None) -> str | None:
    value = _text(flags, name)
    return None if value is None else absolute(value, cwd)


def _session(flags: Flags) -> str | None:
    value = _text(flags, "session_id")
    if value is not None and (len(value) > 200 or not value.isprintable()):
        raise InvalidParams(
            "--session-id must be printable and at most 200 characters", hint="leave it out for a new one"
        )
    return value


def _depth(flags: Flags) -> int:
    value = _text(flags, "depth")
    if value is None:
        return 1
    if not (value.isascii() and value.isdigit() and len(value) < 5 and 1 <= int(value) <= 1000):
        raise ConfigurationError(f"--depth cannot be {value[:40]}", hint="a whole number from 1 to 1000")
    return int(value)


def _source(flags: Flags) -> Source:
    value = _text(flags, "source") or "stdio"
    if value not in get_args(Source):
        raise ConfigurationError(f"--source cannot be {value}", hint=f"one of {', '.join(get_args(Source))}")
    return cast(Source, value)
