"""One leader among any number of servers: a row in the database that its holder keeps by its clock.

Whoever leads has a term. Every write of a leader looks at the row first, so one that was asleep while another took over
writes nothing.
"""

import contextlib
import hashlib
import os
import secrets
import socket
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.engine.tables import orchestrator_leaders

NAME = "orchestrator"
LEASE_MS = 10_000
"""So long a leader is believed to be there without a sign of life. With a look every `LOOK_S` another takes over within
15 seconds."""
LOOK_S = 3.0
RESIGNED = "orchestrator:resigned"
"""Whoever waits for this name can lead."""
Row = sa.Row[Any]
_l = orchestrator_leaders.c
_ONE = sa.select(orchestrator_leaders, (_l.until_ms - DbNow()).label("left_ms")).where(_l.name == NAME)
_MINE = sa.select(_l.term).where(
    _l.name == NAME,
    _l.holder == sa.bindparam("me"),
    _l.term == sa.bindparam("my_term"),
    _l.until_ms >= DbNow(),
)
_NEW: dict[str, Any] = {
    "holder": sa.bindparam("me"),
    "host": sa.bindparam("on"),
    "until_ms": DbNow() + LEASE_MS,
}
_TOLD: dict[str, Any] = {
    "ticked_ms": sa.bindparam("ticked", type_=sa.BigInteger),
    "report": sa.bindparam("tell", type_=sa.JSON(none_as_null=True)),
}
# Built once: to build it costs more than to run it.
_CLAIM = {
    name: dialect.insert(orchestrator_leaders)
    .values(name=NAME, term=1, **_NEW, **_TOLD)
    .on_conflict_do_update(
        index_elements=["name"],
        set_={
            **_NEW,
            **{column: sa.func.coalesce(value, _l[column]) for column, value in _TOLD.items()},
            "term": sa.case((_l.holder == sa.bindparam("me"), _l.term), else_=_l.term + 1),
        },
        where=sa.or_(_l.holder == sa.bindparam("me"), _l.holder == sa.bindparam("gone"), _l.until_ms < DbNow()),
    )
    .returning(_l.term)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}


class Deposed(Exception):
    """Another leads by now, or nobody. Nothing was written."""


def leader(tx: Tx) -> Row | None:
    """Who led last, with `left_ms`, how long it still does; None if nobody ever has."""
    return tx.one(_ONE)


class Leadership:
    """One candidate. Its `term` is None while it does not lead."""

    def __init__(self) -> None:
        self.me = f"{_processes()}:{os.getpid()}:{_began(os.getpid())}:{secrets.token_hex(6)}"
        self.term: int | None = None

    def claim(self, tx: Tx, told: dict[str, Any] | None = None) -> int | None:
        """Lead, or go on leading; None if another does. What is `told` of the last tick, its `ticked_ms` and `report`,
        is kept with it.

        A leader whose process was one of this machine and has ended is followed at once.
        """
        # Whoever leads only says so again; whoever does not looks first, and writes nothing while another leads.
        term = None if self.term is None else self._written(tx, self.me, told)
        if term is not None:
            return term
        before = leader(tx)
        gone = before.holder if before is not None and _has_ended(before.holder) else self.me
        if before is not None and before.holder not in (self.me, gone) and before.left_ms >= 0:
            return None
        return self._written(tx, gone, told)

    def _written(self, tx: Tx, gone: str, told: dict[str, Any] | None) -> int | None:
        tick = told or {}
        values = {"me": self.me, "gone": gone, "on": socket.gethostname()}
        row = tx.one(_CLAIM[tx.dialect], {**values, "ticked": tick.get("ticked_ms"), "tell": tick.get("report")})
        return None if row is None else row.term

    def fence(self, tx: Tx) -> None:
        """Refuse to go on unless this candidate still leads; until the transaction ends nobody else can."""
        mine = {"me": self.me, "my_term": -1 if self.term is None else self.term}
        if tx.one(_MINE if tx.dialect == "sqlite" else _MINE.with_for_update(), mine) is None:
            raise Deposed

    def resign(self, tx: Tx) -> None:
        """Let another lead at once."""
        tx.run(sa.update(orchestrator_leaders).where(_l.name == NAME, _l.holder == self.me).values(until_ms=0))
        tx.wake(RESIGNED)


def _has_ended(holder: str) -> bool:
    """Whether the holder was a process that we would see, and is no more."""
    processes, _, rest = holder.partition(":")
    pid, _, began = rest.rpartition(":")[0].partition(":")
    if not processes or processes != _processes() or not pid.isdecimal():
        return False
    now = _began(int(pid))
    return now != began if now else not _is_there(int(pid))


def _is_there(pid: int) -> bool:
    """Whether there is such a process; of those of other users a machine may hide everything else."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@cache
def _processes() -> str:
    """What tells the processes that we see from those of other machines and containers; empty if nothing does."""
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read()
        return hashlib.sha256(f"{boot}{os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:16]
    return ""


def _began(pid: int) -> str:
    """When a process began, by which it is told from a later one of the same number; empty if there is none."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        # The name, which may contain anything, stands in brackets.
        return file.read().rpartition(b")")[2].split()[19].decode()
    return ""
