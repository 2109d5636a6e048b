"""The tables of scores and of what is remembered of others, and the steps that build them."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import metadata, text, whole
from rookery.domains.reputation.score import WEIGHTS

agent_reputation = sa.Table(
    "agent_reputation",
    metadata,
    text("tenant", primary_key=True),
    text("agent_id", primary_key=True),
    whole("overall_score"),
    text("trust_level"),
    *(whole(name) for name in WEIGHTS),
    text("attestation_hash", null=True),
    whole("computed_ms"),
)

known_attesters = sa.Table(
    "known_attesters",
    metadata,
    text("tenant", primary_key=True),
    text("log", primary_key=True),
    text("agent_id"),
    text("keyid"),
    whole("entries"),
    text("hash"),
    whole("seen_ms"),
)
"""What a log of others said when it was last found in order: whose it is, its key, and its newest entry."""

MIGRATIONS = (
    Migration(
        1,
        "reputation",
        [
            "CREATE TABLE agent_reputation (tenant TEXT NOT NULL, agent_id TEXT NOT NULL, "
            "overall_score BIGINT NOT NULL, trust_level TEXT NOT NULL, "
            + "".join(f"{name} BIGINT NOT NULL, " for name in WEIGHTS)
            + "attestation_hash TEXT, computed_ms BIGINT NOT NULL, PRIMARY KEY (tenant, agent_id))",
            "CREATE TABLE known_attesters (tenant TEXT NOT NULL, log TEXT NOT NULL, agent_id TEXT NOT NULL, "
            "keyid TEXT NOT NULL, entries BIGINT NOT NULL, hash TEXT NOT NULL, seen_ms BIGINT NOT NULL, "
            "PRIMARY KEY (tenant, log))",
        ],
    ),
)
