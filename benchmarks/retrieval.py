"""How well knowledge is found by keyword, by vectors and by both, and what the vectors cost.

`retrieval_pairs.py` says what is looked for. MRR@10 is the mean of 1 / rank of the right answer, 0 below the tenth;
hit@5 the share of answers among the first five; both with their standard errors. Held to a target is the hybrid: on
no set may it be worse than the better of the two by more than the standard error, and where the query and its answer
have few words in common it has to beat the keywords.
"""

import json
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.launch import ROOT, Rookery, clean_env, temporary_home
from benchmarks.raw_client import MeasureError, last_words
from benchmarks.report import Group, Row

PROBE_LIMIT_S = 1800
SIZES, QUICK_SIZES = (700, 300), (120, 60)
FEWEST_PAIRS = 200
APART = "few words in common"
MATRIX_MS = 15.0


@dataclass(frozen=True)
class Quality:
    """How one way of searching did on one set, with the standard errors."""

    mrr: float
    mrr_error: float
    hit: float
    hit_error: float

    @classmethod
    def of(cls, ranks: Sequence[int | None]) -> "Quality":
        return cls(
            *mean([1 / rank if rank and rank <= 10 else 0.0 for rank in ranks]),
            *mean([float(rank is not None and rank <= 5) for rank in ranks]),
        )

    def text(self) -> str:
        return f"MRR@10 {self.mrr:.3f} ± {self.mrr_error:.3f}  hit@5 {self.hit:.3f} ± {self.hit_error:.3f}"


def mean(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    return statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5


def run(rookery: Rookery, quick: bool) -> Group:
    """Quality for each set and way, then speed."""
    group = Group("retrieval")
    with temporary_home() as home:
        found = probe(rookery, home, [str(size) for size in (QUICK_SIZES if quick else SIZES)])
    group.samples = found
    for name, ways in found["sets"].items():
        pairs = len(ways["hybrid"]["ranks"])
        if pairs < 2 or (pairs < FEWEST_PAIRS and not quick):
            group.problems.append(f"{name}: only {pairs} pairs, where at least {FEWEST_PAIRS} say something")
            continue
        judge(group, f"{name} ({pairs})", ways, beats_keyword=name == APART)
    speed(group, found)
    return group


def probe(rookery: Rookery, home: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """What the probe found, in a process of our own virtual environment."""
    command = [rookery.python, "-m", "benchmarks.retrieval_probe", str(home), *arguments]
    env = clean_env(rookery.env(home, {}))
    try:
        done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=PROBE_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise MeasureError(str(error)) from error
    if done.returncode:
        raise MeasureError(f"the probe failed: {last_words(done.stderr)}")
    return json.loads(done.stdout)


def judge(group: Group, name: str, ways: Mapping[str, Any], *, beats_keyword: bool) -> None:
    """A row for each way; the hybrid's has the target."""
    quality = {way: Quality.of(found["ranks"]) for way, found in ways.items()}
    keyword, vectors, hybrid = (quality[way] for way in ("keyword", "vectors", "hybrid"))
    better = max(keyword, vectors, key=lambda each: each.mrr)
    least_mrr = better.mrr - better.mrr_error
    least_hit = max(keyword.hit - keyword.hit_error, vectors.hit - vectors.hit_error)
    ok = hybrid.mrr >= least_mrr and hybrid.hit >= least_hit
    target = f"MRR >= {least_mrr:.3f}, hit >= {least_hit:.3f}"
    if beats_keyword:
        ok = ok and hybrid.mrr > keyword.mrr and hybrid.hit > keyword.hit
        target += ", above keyword"
    group.rows.append(Row(f"{name}, keyword", keyword.text()))
    group.rows.append(Row(f"{name}, vectors", vectors.text()))
    group.rows.append(Row(f"{name}, hybrid", hybrid.text(), target=target, ok=ok))


def speed(group: Group, found: Mapping[str, Any]) -> None:
    """What it costs to make vectors, and to search among them."""
    texts, spent = found["texts"], found["embedding_s"]
    value = f"{texts / spent:.1f} texts/s of {found['letters']:.0f} letters on average"
    group.rows.append(Row("making vectors", value))
    for way in ("keyword", "vectors", "hybrid"):
        took = [each for ways in found["sets"].values() for each in ways[way]["ms"]]
        group.rows.append(Row(f"a search among these {texts} texts, {way}", f"p50 {statistics.median(took):.1f} ms"))
    group.rows.append(Row("memory with model and vectors", f"{found['rss_mb']:.0f} MB"))
    matrix = found["matrix"]
    group.limit("100,000 vectors: nearest 50, p50", statistics.median(matrix["later"]), "ms", MATRIX_MS)
    for name in ("first", "added", "removed"):
        when = "the first search" if name == "first" else f"the search after ten were {name}"
        group.rows.append(Row(f"100,000 vectors: {when}", f"{matrix[name]:.0f} ms"))
    group.rows.append(Row("100,000 vectors: memory", f"{matrix['bytes'] / 1e6:.0f} MB"))
