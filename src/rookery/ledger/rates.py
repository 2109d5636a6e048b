"""What things cost in credits. A rate that somebody has set wins over the settings, and those over the defaults."""

from collections.abc import Mapping
from dataclasses import fields
from typing import cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import ValidationFailed
from rookery.db.clock import now_ms
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.ledger.tables import credit_config
from rookery.settings import Settings

KEYS = (
    "credits_per_algo",
    "low_credit_threshold",
    "reserve_per_group_message",
    "credits_per_turn",
    "credits_per_agent_message",
    "free_credits_on_first_message",
)
DEFAULTS: dict[str, int] = {field.name: cast(int, field.default) for field in fields(Settings) if field.name in KEYS}
MAX_RATE = 1_000_000
EVERYBODY = ""
"""Instead of a tenant: what the settings say."""
HARD_STOP = "hard_stop"

_SET_FOR = sa.select(credit_config.c.key, credit_config.c.value).where(
    sa.or_(credit_config.c.tenant == EVERYBODY, credit_config.c.tenant == sa.bindparam("of_tenant"))
)
_ENFORCED = sa.select(credit_config.c.value).where(
    credit_config.c.tenant == EVERYBODY, credit_config.c.key == HARD_STOP, credit_config.c.value == 1
)
_IN_FORCE = _SET_FOR.order_by(credit_config.c.tenant)


def rates_of(tx: Tx, tenant: str) -> dict[str, int]:
    """All rates, as they are in force for the tenant."""
    # The empty tenant sorts first, so what was set for this one comes last and stays.
    found = {row.key: row.value for row in tx.all(_IN_FORCE, {"of_tenant": tenant})}
    return {key: found.get(key, DEFAULTS[key]) for key in KEYS}


def set_rate(tx: Tx, tenant: str, key: str, value: int, subject: str) -> None:
    """Change one rate of the tenant. An unknown key, or a value that is no whole number from 0, is refused."""
    if key not in KEYS:
        raise ValidationFailed(f"there is no rate {key}", hint=f"known: {', '.join(KEYS)}")
    if type(value) is not int or not 0 <= value <= MAX_RATE:
        raise ValidationFailed(f"{key} must be a whole number from 0 to {MAX_RATE}", hint="nothing was changed")
    _store(tx, tenant, key, value, subject)


def take_rates(database: Database, settings: Settings) -> None:
    """Keep the rates of the settings for all tenants. They count until somebody sets another."""
    wanted = {key: getattr(settings, key) for key in KEYS if getattr(settings, key) != DEFAULTS[key]}
    if settings.credits_hard_stop:
        wanted[HARD_STOP] = 1
    if database.direct(_taken) != wanted:
        database.direct(lambda tx: _take(tx, wanted), write=True)


def enforce(database: Database) -> None:
    """Note that whoever has no credits is stopped, for all processes: from here on the ledger tells open sessions."""
    if not database.direct(is_enforced):
        database.direct(lambda tx: _store(tx, EVERYBODY, HARD_STOP, 1, None), write=True)


def is_enforced(tx: Tx) -> bool:
    """Whether some process stops agents without credits."""
    return tx.one(_ENFORCED) is not None


def _taken(tx: Tx) -> dict[str, int]:
    return {row.key: row.value for row in tx.all(_SET_FOR, {"of_tenant": EVERYBODY})}


def _take(tx: Tx, wanted: Mapping[str, int]) -> None:
    tx.run(
        sa.delete(credit_config).where(credit_config.c.tenant == EVERYBODY, credit_config.c.key.not_in(list(wanted)))
    )
    for key, value in wanted.items():
        _store(tx, EVERYBODY, key, value, None)


def _store(tx: Tx, tenant: str, key: str, value: int, subject: str | None) -> None:
    insert = (sqlite if tx.dialect == "sqlite" else postgresql).insert(credit_config)
    row = {"value": value, "subject": subject, "updated_ms": now_ms(tx)}
    tx.run(
        insert.values(tenant=tenant, key=key, **row).on_conflict_do_update(
            index_elements=[credit_config.c.tenant, credit_config.c.key], set_=row
        )
    )
