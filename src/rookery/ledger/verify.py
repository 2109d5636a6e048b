"""Checks the books: whether what accounts have is exactly what their history says."""

from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.ledger.tables import credit_accounts, credit_legs, credit_transactions

_a, _t, _l = credit_accounts.c, credit_transactions.c, credit_legs.c
LISTED = 20
_WALLET = (_t.tenant == sa.bindparam("of_tenant"),)
# By the id alone: with the tenant SQLite would look through an index in which all rows of a tenant are alike.
_OWN = _l.transaction_id == _t.id
_STRANGE = sa.or_(_l.wallet_address != _t.wallet_address, _l.tenant != _t.tenant)


def _sum(*buckets: str) -> sa.ColumnElement[int]:
    """What the legs in these buckets add up to, of whatever the statement groups by."""
    amount = sa.case((_l.bucket.in_(buckets), _l.amount), else_=0) if buckets else _l.amount
    return sa.cast(sa.func.coalesce(sa.func.sum(amount), 0), sa.BigInteger)


# Legs that do not add up, are missing, or belong to another wallet than their transaction.
_UNBALANCED = (
    sa.select(_t.id)
    .outerjoin(credit_legs, _OWN)
    .where(*_WALLET)
    .group_by(_t.id)
    .having(
        sa.or_(
            _sum() != 0,
            sa.func.count(_l.bucket) < 2,
            sa.func.sum(sa.case((_STRANGE, 1), else_=0)) > 0,
        )
    )
    .limit(LISTED)
)
_ORPHANED = (
    sa.select(_l.transaction_id)
    .outerjoin(credit_transactions, _OWN)
    .where(_l.tenant == sa.bindparam("of_tenant"), _t.id.is_(None))
    .limit(LISTED)
)

_steps = (
    sa.select(
        _t.wallet_address,
        _t.number,
        _t.balance_after,
        _sum("available").label("available"),
        _sum("reserved").label("reserved"),
    )
    .join(credit_legs, _OWN)
    .where(*_WALLET)
    .group_by(_t.wallet_address, _t.number, _t.balance_after)
    .subquery("steps")
)


def _so_far(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.func.sum(column).over(partition_by=_steps.c.wallet_address, order_by=_steps.c.number)


_walked = sa.select(
    _steps.c.wallet_address,
    _steps.c.number,
    _steps.c.balance_after,
    _so_far(_steps.c.available).label("available"),
    _so_far(_steps.c.reserved).label("reserved"),
    sa.func.row_number().over(partition_by=_steps.c.wallet_address, order_by=_steps.c.number).label("place"),
).subquery("walked")
_MISSTEPS = (
    sa.select(_walked.c.wallet_address, _walked.c.number)
    .where(
        sa.or_(
            _walked.c.available < 0,
            _walked.c.reserved < 0,
            _walked.c.available + _walked.c.reserved != _walked.c.balance_after,
            _walked.c.place != _walked.c.number,
        )
    )
    .limit(LISTED)
)

_sums = (
    sa.select(
        _l.wallet_address,
        _sum("available").label("available"),
        _sum("reserved").label("reserved"),
        _sum("issued").label("issued"),
        _sum("consumed").label("consumed"),
        sa.func.count(_l.transaction_id.distinct()).label("transactions"),
    )
    .where(_l.tenant == sa.bindparam("of_tenant"))
    .group_by(_l.wallet_address)
    .subquery("sums")
)


def _none(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(column, 0)


_DIFFERENT = (
    sa.select(_a.wallet_address)
    .outerjoin(_sums, _sums.c.wallet_address == _a.wallet_address)
    .where(
        _a.tenant == sa.bindparam("of_tenant"),
        sa.or_(
            _a.available != _none(_sums.c.available),
            _a.reserved != _none(_sums.c.reserved),
            _a.total_purchased != -_none(_sums.c.issued),
            _a.total_consumed != _none(_sums.c.consumed),
            _a.transactions != _none(_sums.c.transactions),
        ),
    )
    .limit(LISTED)
)
_UNKNOWN = (
    sa.select(_sums.c.wallet_address)
    .outerjoin(
        credit_accounts,
        sa.and_(_a.wallet_address == _sums.c.wallet_address, _a.tenant == sa.bindparam("of_tenant")),
    )
    .where(_a.wallet_address.is_(None))
    .limit(LISTED)
)


def faults(tx: Tx, tenant: str) -> list[str]:
    """What is wrong, a sentence each, up to 20 of a kind; empty if nothing is. Reads the whole history."""
    of: dict[str, Any] = {"of_tenant": tenant}
    return [
        *(f"the legs of transaction {row.id} do not add up" for row in tx.all(_UNBALANCED, of)),
        *(f"a leg names transaction {row.transaction_id}, which is not there" for row in tx.all(_ORPHANED, of)),
        *(f"transaction {row.number} of {row.wallet_address} does not follow" for row in tx.all(_MISSTEPS, of)),
        *(f"{row.wallet_address} has another balance than its history" for row in tx.all(_DIFFERENT, of)),
        *(f"{row.wallet_address} has a history and no account" for row in tx.all(_UNKNOWN, of)),
    ]
