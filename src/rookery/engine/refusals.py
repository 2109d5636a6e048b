"""What was refused to an agent in its run that people have to know of: claims and verdicts, and edits out of bounds."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.markdown_text import code, labelled, line
from rookery.lifecycle.run_tables import run_events
from rookery.sessions.foreign_tools import EDITING, OUTSIDE, our_tool

Row = sa.Row[Any]
CLAIMING = frozenset({"complete_phase", "claim_issue", "approve_phase", "reject_phase", "approve_pr", "reject_pr"})
LOOKED_AT = 500
"""Of the results of a run so many are looked at, the last ones."""
SHOWN = 1_000
MOST_EDITS = 20
_e = run_events.c
_RESULTS = (
    sa.select(_e.payload)
    .where(_e.tenant == sa.bindparam("of_tenant"), _e.run_id == sa.bindparam("of_run"), _e.subtype == "tool_result")
    .order_by(_e.number.desc())
    .limit(LOOKED_AT)
)


class Refusals:
    """What was refused in the run of a dispatch."""

    def __init__(self, tx: Tx, dispatch: Row) -> None:
        found = tx.all(_RESULTS, {"of_tenant": dispatch.tenant, "of_run": dispatch.run_id or ""})
        self._role: str = dispatch.role
        self._refused: Sequence[dict[str, Any]] = [row.payload for row in found if row.payload.get("is_error")]

    @property
    def claim(self) -> str | None:
        """For people, about the last claim or verdict among them; None if there is none."""
        for each in self._refused:
            tool = our_tool(str(each.get("tool") or ""))
            if tool in CLAIMING:
                why = line(each.get("text") or "", SHOWN)
                return f"The {self._role} ended with nothing done. It was refused {code(tool)}: {why}"
        return None

    @property
    def edits(self) -> str | None:
        """For people, about edits of files that are not the agent's; None if there are none."""
        texts = [str(each.get("text") or "") for each in self._refused if each.get("tool") in EDITING]
        outside = list(dict.fromkeys(line(text, SHOWN) for text in texts if OUTSIDE in text))[:MOST_EDITS]
        return labelled(f"The {self._role} tried to write outside of its worktree, and was refused:", outside) or None
