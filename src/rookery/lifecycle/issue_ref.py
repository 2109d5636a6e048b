"""Finding an issue by what people and agents call it."""

import re
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.lifecycle.issue_tables import issue_aliases, issues

# Built once: to build them costs more than to run them.
_MINE = issues.c.tenant == sa.bindparam("tenant")
_BY_ID = sa.select(issues).where(_MINE, issues.c.id == sa.bindparam("text"))
_BY_NAME = sa.select(issues).where(_MINE, issues.c.identifier == sa.bindparam("text"))
_BY_ALIAS = (
    sa.select(issues)
    .join(issue_aliases, issue_aliases.c.issue_id == issues.c.id)
    .where(_MINE, issue_aliases.c.tenant == sa.bindparam("tenant"), issue_aliases.c.identifier == sa.bindparam("text"))
)
_IDENTIFIER = re.compile(r"([A-Za-z][A-Za-z0-9]{1,9})-([0-9]{1,12})")


def identifier(prefix: str, number: int) -> str:
    """How an issue is called: `SYM-001`."""
    return f"{prefix}-{number:03d}"


def find_issue(tx: Tx, tenant: str, text: str) -> sa.Row[Any] | None:
    """The issue with this id or identifier, in any case, with or without leading zeros; also by one it had before."""
    # A project may have the prefix ISS, so what looks like an id may be an identifier in lower case.
    if text.startswith("iss-") and (found := tx.one(_BY_ID, {"tenant": tenant, "text": text})) is not None:
        return found
    parts = _IDENTIFIER.fullmatch(text)
    if parts is None:
        return None
    named = {"tenant": tenant, "text": identifier(parts[1].upper(), int(parts[2]))}
    return tx.one(_BY_NAME, named) or tx.one(_BY_ALIAS, named)
