"""Fills a fresh database with the work of a busy fleet: the same for the same number of closed issues.

Homes that differ in their closed issues have the same open issues, the same texts and as many findings and learnings.
"""

import hashlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.learning_tables import learnings
from rookery.domains.tracker.search import lexemes
from rookery.domains.tracker.tables import (
    comments,
    finding_processing,
    findings,
    issue_changes,
    issue_deps,
    issue_labels,
    tracker_projects,
)
from rookery.fulltext.words import STOP_WORDS, normalized
from rookery.identity.store import DEFAULT_PROJECT, DEFAULT_TENANT, IdentityStore
from rookery.lifecycle.issue_ref import identifier
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs, run_events

Record = dict[str, Any]

OPEN = 1_000
FINDINGS, LEARNINGS, RUNS, EVENTS_A_RUN = 50_000, 20_000, 1_000, 10
OPEN_DEPENDENCIES = 1_000
CLOSED_WITH_DEPENDENCY = 2 / 9
HEAVY, HEAVY_FINDINGS, HEAVY_COMMENTS, HEAVY_RUNS = 20, 200, 60, 10
LABELS = ("backend", "frontend", "database", "docs", "flaky", "security", "needs-planning", "good-first-issue")
CATEGORIES = ("test_result", "code_pattern", "architecture", "bug", "gap")
SUFFIXES = ("", "", "", "s", "ing", "ed", "er", "ation")
# Half of everything is in the project that is looked at, the rest in four others.
PREFIXES = {DEFAULT_PROJECT: "DEF", "api": "API", "web": "WEB", "ops": "OPS", "lab": "LAB"}
SHARES = (4, 1, 1, 1, 1)
STATUSES = ("todo",) * 6 + ("backlog", "in_progress", "review", "blocked")
PHASES = ("research", "architecture", "grooming", "ready", "ready", "ready")
NOW_MS = 1_750_000_000_000
YEAR_MS = 365 * 24 * 3_600_000
AUTHOR = {"tenant": DEFAULT_TENANT, "author": "worker", "subject": "agt-bench"}


class Words:
    """A vocabulary in which the most common words with a meaning are in a third of all learnings, and most are rare.

    Two of five words mean nothing, as in English.
    """

    def __init__(self, chance: random.Random, size: int = 4_000) -> None:
        syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "or")]
        found: dict[str, None] = {}
        while len(found) < size:
            root = "".join(chance.choices(syllables, k=chance.choice((2, 2, 3))))
            found[root + chance.choice(SUFFIXES)] = None
        self.content = [word for word in found if word not in STOP_WORDS]
        idle = sorted(STOP_WORDS)
        chance.shuffle(idle)
        shares = [*_zipf(len(idle), 0.4), *_zipf(len(self.content), 0.6)]
        self._all = [*idle, *self.content]
        self._cumulative = list(itertools.accumulate(shares))

    def sentence(self, chance: random.Random, least: int, most: int) -> str:
        """So many characters, cut at a word."""
        length = chance.randint(least, most)
        text = " ".join(self.some(chance, length // 3))
        return text[: length + 1].rpartition(" ")[0].ljust(least, "x")

    def some(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self._all, cum_weights=self._cumulative, k=count)


def _zipf(size: int, share: float) -> list[float]:
    weights = [1 / (rank + 10) for rank in range(size)]
    return [share * weight / sum(weights) for weight in weights]


@dataclass(frozen=True)
class Texts:
    """What is written in every home, and what can be looked for in it."""

    words: Words
    learnings: Sequence[Record]
    sentences: Sequence[str]
    queries: dict[str, list[str]]


def make_texts() -> Texts:
    """The columns of the learnings that do not depend on their issues, and queries of several kinds."""
    chance = random.Random(4)
    words = Words(chance)
    sentences = [words.sentence(chance, 40, 200) for _ in range(2_000)]
    made = [_learning(chance, words) for _ in range(LEARNINGS)]
    return Texts(words, made, sentences, _queries(chance, words, made))


def _learning(chance: random.Random, words: Words) -> Record:
    pattern = words.sentence(chance, 60, 300)
    context = words.sentence(chance, 100, 300) if chance.random() < 0.5 else None
    folders = [f"src/{'/'.join(chance.choices(words.content[:200], k=2))}/" for _ in range(chance.choice((0, 1, 1, 2)))]
    text = normalized(pattern)
    return {
        "pattern": pattern,
        "context": context,
        "applies_to": folders,
        "learning_type": chance.choice(("convention", "gotcha", "pattern", None)),
        "quality_score": chance.randint(20, 95),
        "verified": chance.random() < 0.1,
        "normalized": text,
        "digest": hashlib.sha256(text.encode()).hexdigest(),
        "words": lexemes(pattern, context, folders)[1],
        "lexemes": None,
    }


def _queries(chance: random.Random, words: Words, made: Sequence[Record]) -> dict[str, list[str]]:
    often = Counter(word for row in made for word in set(row["pattern"].split()))
    rare = [word for word in words.content if 1 <= often[word] <= 20]
    return {
        "a rare word": rare[:8],
        "a common word": words.content[:8],
        "three words": [" ".join(chance.sample(words.content[:400], 3)) for _ in range(8)],
        "a prefix": [word[:3] for word in words.content[8:16]],
        "ten words": [" ".join(words.some(chance, 10)) for _ in range(8)],
    }


@dataclass(frozen=True)
class Filled:
    """What the calls need to know of a home: identifiers of issues of the default project."""

    heavy: Sequence[str]
    todo: Sequence[str]
    done: Sequence[str]


def fill(tx: Tx, closed: int, texts: Texts) -> Filled:
    """Put 1,000 open issues and so many closed ones into the database, with everything about them."""
    maker = _Maker(tx, texts)
    heavy, opened = maker.issues(OPEN, is_open=True)[:HEAVY], maker.made
    finished = maker.issues(closed, is_open=False)
    everyone = [*opened, *finished]
    maker.dependencies(opened, finished)
    maker.findings(heavy, everyone)
    maker.learnings(everyone)
    maker.talk(heavy, finished)
    maker.runs(heavy, everyone)
    maker.count_numbers()
    mine = maker.projects[DEFAULT_PROJECT]
    todo = [row["identifier"] for row in opened if row["project_id"] == mine and row["status"] == "todo"]
    done = [row["identifier"] for row in finished if row["project_id"] == mine]
    return Filled([row["identifier"] for row in heavy], todo, done)


class _Maker:
    """Makes rows in bulk. What is random of the open issues does not depend on how many closed ones follow."""

    def __init__(self, tx: Tx, texts: Texts) -> None:
        self.tx = tx
        self.texts = texts
        self.chance = random.Random(9)
        self.made: list[Record] = []
        store = IdentityStore(tx, DEFAULT_TENANT)
        for slug in PREFIXES:
            if slug != DEFAULT_PROJECT:
                store.create_project(slug, slug, None)
        self.projects = {row.slug: row.id for row in store.projects()}
        self._numbers: Counter[str] = Counter()

    def issues(self, count: int, *, is_open: bool) -> list[Record]:
        """Issues with their labels; the first of the open ones are in the default project and ready for work."""
        rows = [self._issue(number, is_open=is_open) for number in range(count)]
        self._add(issues, rows)
        self._add(
            issue_labels,
            [
                {"issue_id": row["id"], "label": label, "project_id": row["project_id"]}
                for row in rows
                for label in self.chance.sample(LABELS, self.chance.randint(1, 3))
            ],
        )
        self.made = rows
        return rows

    def _issue(self, number: int, *, is_open: bool) -> Record:
        chance = self.chance
        heavy = is_open and number < HEAVY
        slug = DEFAULT_PROJECT if heavy else chance.choices(list(PREFIXES), SHARES)[0]
        self._numbers[slug] += 1
        status = "done" if chance.random() < 0.95 else "cancelled"
        status = ("todo" if heavy else chance.choice(STATUSES)) if is_open else status
        held = status == "in_progress"
        created = NOW_MS - chance.randrange(YEAR_MS)
        return {
            "id": self._id("iss", created),
            "tenant": DEFAULT_TENANT,
            "project_id": self.projects[slug],
            "identifier": identifier(PREFIXES[slug], self._numbers[slug]),
            "number": self._numbers[slug],
            "parent_id": None,
            "title": chance.choice(self.texts.sentences)[:80],
            "description": " ".join(chance.sample(self.texts.sentences, 5)),
            "status": status,
            "blocked_on": "person" if status == "blocked" else None,
            "phase": chance.choice(PHASES) if is_open else "ready",
            "priority": chance.choice((1, 2, 2, 3, 3, 3)),
            "size": chance.choice(("S", "M", "L", None)),
            "rejections": 0,
            "created_by": AUTHOR["subject"],
            "author": AUTHOR["author"],
            "created_ms": created,
            "updated_ms": created + 1,
            "fence": 1 if held else 0,
            "lease_subject": AUTHOR["subject"] if held else None,
            "lease_session": f"session {number}" if held else None,
            "lease_name": "worker" if held else None,
            # A third of the leases has run out, and these issues can be claimed again.
            "lease_until_ms": (created if number % 3 == 0 else NOW_MS + 10 * YEAR_MS) if held else None,
        }

    def dependencies(self, opened: Sequence[Record], finished: Sequence[Record]) -> None:
        """Half of what open issues wait for is open as well, so that many of the first cannot be had."""
        pairs: set[tuple[str, str]] = set()
        while len(pairs) < OPEN_DEPENDENCIES:
            at = self.chance.randrange(HEAVY, len(opened))
            needed = opened[self.chance.randrange(at)] if self.chance.random() < 0.5 else self.chance.choice(finished)
            pairs.add((opened[at]["id"], needed["id"]))
        done = [row for row in finished if row["status"] == "done"]
        for issue in opened[:HEAVY]:
            pairs |= {(issue["id"], needed["id"]) for needed in self.chance.sample(done, 3)}
        for at in range(1, len(finished)):
            if self.chance.random() < CLOSED_WITH_DEPENDENCY:
                pairs.add((finished[at]["id"], finished[self.chance.randrange(at)]["id"]))
        self._add(issue_deps, [{"issue_id": one, "depends_on": other} for one, other in sorted(pairs)])

    def findings(self, heavy: Sequence[Record], everyone: Sequence[Record]) -> None:
        """Many on some issues, the others spread over all; one of twenty is a claim that was processed."""
        chance, at_ms = self.chance, NOW_MS - YEAR_MS
        rows: list[Record] = []
        for number, issue in enumerate(self._spread(heavy, HEAVY_FINDINGS, everyone, FINDINGS)):
            claim = number % 20 == 0
            payload = {"summary": chance.choice(self.texts.sentences), "details": chance.choice(self.texts.sentences)}
            about = {"category": "phase_completion" if claim else chance.choice(CATEGORIES), "payload": payload}
            made = {"id": self._id("pc" if claim else "fnd", at_ms + number), "created_ms": at_ms + number}
            rows.append({**AUTHOR, **made, **about, "issue_id": issue["id"], "run_id": None})
        self._add(findings, rows)
        stored = sa.select(findings.c.id, findings.c.issue_id, findings.c.seq).where(findings.c.id.startswith("pc-"))
        projects = {row["id"]: row["project_id"] for row in everyone}
        done = {"outcome": "advanced", "processed_ms": NOW_MS}
        claims = [
            {"finding_id": row.id, "issue_id": row.issue_id, "seq": row.seq, "project_id": projects[row.issue_id]}
            for row in self.tx.all(stored)
        ]
        self._add(finding_processing, [{**claim, **done} for claim in claims])

    def learnings(self, everyone: Sequence[Record]) -> None:
        """Spread over the projects as the issues are, in the same order and words whatever their issues."""
        by_project: dict[str, list[Record]] = {}
        for issue in everyone:
            by_project.setdefault(issue["project_id"], []).append(issue)
        where = random.Random(11).choices([self.projects[slug] for slug in PREFIXES], SHARES, k=LEARNINGS)
        signed = {"tenant": DEFAULT_TENANT, "author": "worker"}
        rows: list[Record] = []
        for number, (project, learning) in enumerate(zip(where, self.texts.learnings, strict=True)):
            at_ms, issue = NOW_MS - YEAR_MS + number, self.chance.choice(by_project[project])
            made = {"id": self._id("lrn", at_ms), "created_ms": at_ms}
            rows.append({**signed, **made, **learning, "project_id": project, "issue_id": issue["id"]})
        self._add(learnings, rows)

    def talk(self, heavy: Sequence[Record], finished: Sequence[Record]) -> None:
        """Comments, and of each closed issue how it came to be so."""
        said = self._spread(heavy, HEAVY_COMMENTS, finished, HEAVY * HEAVY_COMMENTS + len(finished))
        rows: list[Record] = []
        for number, issue in enumerate(said):
            at_ms = NOW_MS - YEAR_MS + number
            text = self.chance.choice(self.texts.sentences)
            made = {"id": self._id("cmt", at_ms), "content": text, "created_ms": at_ms}
            rows.append({**AUTHOR, **made, "issue_id": issue["id"]})
        self._add(comments, rows)
        steps = list(itertools.pairwise(("todo", "in_progress", "review", "done")))
        told = {**AUTHOR, "field": "status", "why": None, "at_ms": NOW_MS}
        self._add(
            issue_changes,
            [{**told, "issue_id": row["id"], "old": old, "new": new} for row in finished for old, new in steps],
        )

    def runs(self, heavy: Sequence[Record], everyone: Sequence[Record]) -> None:
        """Runs that have ended, with their events."""
        spent = {"cost_micros": 12_000, "input_tokens": 9_000, "output_tokens": 700, "attempt": 1, "error": None}
        who = {"agent": AUTHOR["subject"], "profile": "worker", "phase": "ready", "session": None}
        rows: list[Record] = []
        for number, issue in enumerate(self._spread(heavy, HEAVY_RUNS, everyone, RUNS)):
            at = NOW_MS - YEAR_MS + number
            times = {"created_ms": at, "started_ms": at, "ended_ms": at + 60_000, "updated_ms": at + 60_000}
            place = {"tenant": DEFAULT_TENANT, "project_id": issue["project_id"], "issue_id": issue["id"]}
            made = {"id": self._id("run", at), "status": "succeeded", "event_count": EVENTS_A_RUN}
            rows.append({**place, **made, **times, **spent, **who})
        self._add(agent_runs, rows)
        shared = ("tenant", "project_id", "issue_id")
        said = {"type": "assistant", "subtype": "text", "payload": {"text": self.texts.sentences[0]}, "at_ms": NOW_MS}
        self._add(
            run_events,
            [
                {**said, **{name: run[name] for name in shared}, "run_id": run["id"], "number": number}
                for run in rows
                for number in range(1, EVENTS_A_RUN + 1)
            ],
        )

    def count_numbers(self) -> None:
        """What the projects' next issues will be called."""
        self._add(
            tracker_projects,
            [
                {
                    "project_id": self.projects[slug],
                    "tenant": DEFAULT_TENANT,
                    "prefix": prefix,
                    "next_number": self._numbers[slug] + 1,
                    "settings": {},
                }
                for slug, prefix in PREFIXES.items()
            ],
        )

    def _spread(self, heavy: Sequence[Record], each: int, others: Sequence[Record], total: int) -> Iterator[Record]:
        """The issue of each record: `each` for the heavy ones, mixed in among those of the others."""
        wanted = [issue for issue in heavy for _ in range(each)]
        wanted += self.chance.choices(others, k=total - len(wanted))
        self.chance.shuffle(wanted)
        return iter(wanted)

    def _id(self, prefix: str, at_ms: int) -> str:
        return f"{prefix}-{at_ms:012x}{self.chance.getrandbits(80):020x}"

    def _add(self, table: sa.Table, rows: Sequence[Record]) -> None:
        """By the driver's own call: SQLAlchemy would take twice as long."""
        encoded = {column.name for column in table.c if isinstance(column.type, sa.JSON)}
        columns = list(rows[0])
        values = [[json.dumps(row[name]) if name in encoded else row[name] for name in columns] for row in rows]
        self.tx.insert_rows(table.name, columns, values)
