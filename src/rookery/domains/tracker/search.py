"""How learnings are looked for, and in which order they are shown. No database here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rookery.domains.tracker.learning_tables import SCOPE_MARK
from rookery.fulltext.query import Term, Wanted, fts5_expression, tsvector
from rookery.fulltext.words import raw_words

FIELDS = {"A": 1.0, "B": 0.6, "C": 0.4}
"""What a match in the pattern, in the context and in applies_to is worth, by the weight of its words."""
NO_DIFFERENCE = 1e-12


def fts5_query(looked_for: Sequence[Term], wanted: Wanted, tenant: str, projects: Sequence[str]) -> str:
    """For SQLite: rows of these projects of a tenant that have every term, or any."""
    # To ask for a column would cost more than a word that is in no other.
    of = " OR ".join(f'"{chr(SCOPE_MARK)}{f"{tenant} {project}".encode().hex()}"' for project in projects)
    return f"({of}) AND ({fts5_expression(looked_for, wanted)})"


def lexemes(pattern: str, context: str | None, applies_to: Sequence[str]) -> str:
    """What PostgreSQL looks through of a learning."""
    return tsvector(dict(zip(FIELDS, (pattern, context or "", " ".join(applies_to)), strict=True)))


def length(pattern: str, context: str | None, applies_to: Sequence[str]) -> int:
    """How many words a learning has. SQLite's index counts its project as one more, so it is counted here too."""
    return 1 + sum(1 for text in (pattern, context or "", *applies_to) for _ in raw_words(text))


@dataclass(frozen=True, slots=True)
class Match:
    """A learning that was found. `relevance` is its BM25: the higher the better."""

    seq: int
    relevance: float
    field: float
    quality: int


def ranked(found: Iterable[Match], limit: int) -> list[tuple[Match, float]]:
    """The best with their scores: half relevance within what was found, then the field, then quality; newest first."""
    matches = list(found)
    least = min((match.relevance for match in matches), default=0.0)
    span = max((match.relevance for match in matches), default=0.0) - least
    scored = [(match, round(_score(match, least, span), 6)) for match in matches]
    return sorted(scored, key=lambda pair: (-pair[1], -pair[0].seq))[:limit]


def _score(match: Match, least: float, span: float) -> float:
    relevance = (match.relevance - least) / span if span > NO_DIFFERENCE else 1.0
    return 0.5 * relevance + 0.3 * match.field + 0.2 * match.quality / 100
