"""Finding an issue by what people and agents call it."""

import re
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.lifecycle.issue_tables import issue_aliases, issues

_IDENTIFIER = re.compile(r"([A-Za-z][A-Za-z0-9]{1,9})-([0-9]{1,12})")


def identifier(prefix: str, number: int) -> str:
    """How an issue is called: `SYM-001`."""
    return f"{prefix}-{number:03d}"


def find_issue(tx: Tx, tenant: str, text: str) -> sa.Row[Any] | None:
    """The issue with this id or identifier, in any case, with or without leading zeros; also by one it had before."""
    mine = issues.c.tenant == tenant
    if text.startswith("iss-"):
        return tx.one(sa.select(issues).where(mine, issues.c.id == text))
    parts = _IDENTIFIER.fullmatch(text)
    if parts is None:
        return None
    name = identifier(parts[1].upper(), int(parts[2]))
    found = tx.one(sa.select(issues).where(mine, issues.c.identifier == name))
    if found is not None:
        return found
    moved = (issue_aliases.c.tenant == tenant, issue_aliases.c.identifier == name)
    return tx.one(sa.select(issues).join(issue_aliases, issue_aliases.c.issue_id == issues.c.id).where(mine, *moved))
