"""The tables of the ledger, and the steps that build them."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import append_only, metadata, text, whole

_NOT_NEGATIVE = "available >= 0 AND reserved >= 0 AND total_purchased >= 0 AND total_consumed >= 0"

credit_accounts = sa.Table(
    "credit_accounts",
    metadata,
    text("tenant", primary_key=True),
    text("wallet_address", primary_key=True),
    whole("available"),
    whole("reserved"),
    whole("total_purchased"),
    whole("total_consumed"),
    whole("transactions"),
    whole("created_ms"),
    whole("updated_ms"),
    sa.CheckConstraint(_NOT_NEGATIVE),
)
"""What the legs of an account add up to, kept with every transaction; `transactions` counts them."""

credit_transactions = sa.Table(
    "credit_transactions",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("wallet_address"),
    whole("number"),
    text("type"),
    whole("amount"),
    whole("balance_after"),
    text("reference"),
    text("key", null=True),
    text("subject", null=True),
    whole("created_ms"),
    sa.UniqueConstraint("tenant", "wallet_address", "number"),
    sa.UniqueConstraint("tenant", "wallet_address", "key"),
)
"""`number` counts the transactions of an account from 1, without gaps. `balance_after` is what was then available and
reserved. `key` is the idempotency key of whoever asked, `subject` who that was."""

credit_legs = sa.Table(
    "credit_legs",
    metadata,
    text("transaction_id", primary_key=True),
    text("bucket", primary_key=True),
    text("tenant"),
    text("wallet_address"),
    whole("amount"),
)
"""Those of one transaction add up to zero. `bucket` is available, reserved, issued (where credits come from, so its sum
is negative) or consumed (where they go)."""
sa.Index("credit_legs_wallet", credit_legs.c.tenant, credit_legs.c.wallet_address)

credit_config = sa.Table(
    "credit_config",
    metadata,
    text("tenant", primary_key=True),
    text("key", primary_key=True),
    whole("value"),
    text("subject", null=True),
    whole("updated_ms"),
)
"""Rates other than the defaults: those of the settings under no tenant, those that somebody set under their own."""

MIGRATIONS = (
    Migration(
        1,
        "ledger",
        [
            "CREATE TABLE credit_accounts (tenant TEXT NOT NULL, wallet_address TEXT NOT NULL, "
            "available BIGINT NOT NULL, reserved BIGINT NOT NULL, total_purchased BIGINT NOT NULL, "
            "total_consumed BIGINT NOT NULL, transactions BIGINT NOT NULL, created_ms BIGINT NOT NULL, "
            f"updated_ms BIGINT NOT NULL, PRIMARY KEY (tenant, wallet_address), CHECK ({_NOT_NEGATIVE}))",
            "CREATE TABLE credit_transactions (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "wallet_address TEXT NOT NULL, number BIGINT NOT NULL, type TEXT NOT NULL, amount BIGINT NOT NULL, "
            "balance_after BIGINT NOT NULL, reference TEXT NOT NULL, key TEXT, subject TEXT, "
            "created_ms BIGINT NOT NULL, UNIQUE (tenant, wallet_address, number), "
            "UNIQUE (tenant, wallet_address, key))",
            "CREATE TABLE credit_legs (transaction_id TEXT NOT NULL, bucket TEXT NOT NULL, tenant TEXT NOT NULL, "
            "wallet_address TEXT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (transaction_id, bucket))",
            "CREATE INDEX credit_legs_wallet ON credit_legs (tenant, wallet_address)",
            "CREATE TABLE credit_config (tenant TEXT NOT NULL, key TEXT NOT NULL, value BIGINT NOT NULL, "
            "subject TEXT, updated_ms BIGINT NOT NULL, PRIMARY KEY (tenant, key))",
            append_only("credit_transactions"),
            append_only("credit_legs"),
        ],
    ),
)
