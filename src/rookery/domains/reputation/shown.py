"""Scores, events and attestations as their readers see them."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from rookery.core.moments import with_moments
from rookery.domains.reputation.score import Score

Row = sa.Row[Any]


def shown_score(name: str, score: Score, kept: Row, events: Iterable[Row]) -> dict[str, Any]:
    """A score with what it is made of and what was noted last."""
    told = {
        "agent_id": kept.agent_id,
        "agent": name,
        "overall_score": score.overall,
        "trust_level": score.trust,
        "components": asdict(score.components),
        "attestation_hash": kept.attestation_hash,
        "computed_ms": kept.computed_ms,
        "events": [shown_event(row) for row in events],
    }
    return with_moments(told)


def shown_event(row: Row) -> dict[str, Any]:
    """One thing that was noted of an agent."""
    return with_moments({"type": row.type, "impact": row.impact, "about": row.about, "created_ms": row.created_ms})


def statement_of(score: Score) -> dict[str, Any]:
    """What an attestation says, in the spelling that other platforms read; the log adds whose it is and when."""
    parts = score.components
    return {
        "overallScore": score.overall,
        "trustLevel": score.trust,
        "components": {
            "taskCompletion": parts.task_completion,
            "peerRating": parts.peer_rating,
            "creditPattern": parts.credit_pattern,
            "securityCompliance": parts.security_compliance,
            "activityLevel": parts.activity_level,
        },
    }
