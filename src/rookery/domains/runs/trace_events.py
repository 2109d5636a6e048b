"""Reads the events of a run for its trace: many at once, and of a long one only what a trace shows."""

import json
from collections.abc import Sequence
from typing import Any, cast

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.runs.trace import TITLE, Happening
from rookery.lifecycle.run_tables import run_events

WHOLE = 2048
"""A payload of so many characters is read as it is."""
_FIELDS = (
    "event", "call_id", "parent_call_id", "tool", "name", "id", "tool_use_id", "ask_id", "how", "reason", "title",
)  # fmt: skip
_TEXTS = ("text", "message", "output", "error", "cut")
_e = run_events.c
_TEXT = sa.cast(_e.payload, sa.Text)
_OF = (
    _e.tenant == sa.bindparam("of_tenant"),
    _e.run_id == sa.bindparam("of_run"),
    _e.number > sa.bindparam("after", type_=sa.BigInteger),
)
_SHORT = (
    sa.select(
        _e.number,
        _e.type,
        _e.subtype,
        _e.at_ms,
        sa.case((sa.func.length(_TEXT) <= WHOLE, _TEXT), else_=None).label("whole"),
    )
    .where(*_OF)
    .order_by(_e.number)
)
_LONG = sa.select(
    _e.number,
    *(_e.payload[name].as_string().label(f"of_{name}") for name in _FIELDS),
    *(sa.func.substr(_e.payload[name].as_string(), 1, 2 * TITLE).label(f"of_{name}") for name in _TEXTS),
    _e.payload["is_error"].as_string().label("of_is_error"),
).where(*_OF, sa.func.length(_TEXT) > WHOLE)
_TRUE = ("1", "true", "True")


def trace_events(tx: Tx, tenant: str, run_id: str, after: int) -> list[Happening]:
    """The events of a run after that number. What is long is there with its names and the beginning of its texts."""
    of = {"of_tenant": tenant, "of_run": run_id, "after": after}
    rows = tx.all(_SHORT, of)
    long = _long(tx.all(_LONG, of)) if any(row.whole is None for row in rows) else {}
    # One text of all of them is read many times as fast as thousands of short ones.
    payloads: list[Any] = json.loads(f"[{','.join(row.whole or 'null' for row in rows)}]")
    return [
        Happening(row.number, row.type, row.subtype, _known(payload, long.get(row.number)), row.at_ms)
        for row, payload in zip(rows, payloads, strict=True)
    ]


def _known(payload: Any, long: dict[str, Any] | None) -> dict[str, Any]:
    if long is not None:
        return long
    return cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}


def _long(rows: Sequence[sa.Row[Any]]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        known: dict[str, Any] = {name: getattr(row, f"of_{name}") for name in (*_FIELDS, *_TEXTS, "is_error")}
        known["is_error"] = str(known["is_error"]) in _TRUE
        found[row.number] = {name: value for name, value in known.items() if value is not None}
    return found
