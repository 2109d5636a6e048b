"""One question asked of all that is known: what agents learnt, the project's documents, and one's own memories."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from rookery.core.errors import RookeryError
from rookery.web.highlighting import marked, passage
from rookery.web.visit import Visit

KINDS = {"documents": "Documents", "learnings": "Learnings", "memories": "Your memories"}
LISTED = 20
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """One thing that was found: where it is, what it says, and how well it fits, from 0 to 1."""

    kind: str
    title: Markup
    passage: Markup
    href: str
    score: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The best first; `method` is how documents were looked for, `missing` why some kinds were not."""

    results: list[Result]
    counts: dict[str, int]
    method: str
    missing: dict[str, str]


async def search(visit: Visit, query: str, kinds: list[str]) -> Found:
    """What is found of these kinds. A kind that cannot be searched here is named, and keeps nothing else back."""
    asked = {"documents": _documents, "learnings": _learnings, "memories": _memories}
    results: list[Result] = []
    counts: dict[str, int] = {}
    missing: dict[str, str] = {}
    method = ""
    for kind in kinds:
        try:
            found, how = await asked[kind](visit, query)
        except RookeryError as error:
            missing[kind] = ". ".join(part for part in (error.message, error.hint) if part)
            continue
        method = how or method
        counts[kind] = len(found)
        results += found
    results.sort(key=lambda result: -result.score)
    return Found(results, counts, method, missing)


async def _documents(visit: Visit, query: str) -> tuple[list[Result], str]:
    found = await visit.call("search_knowledge", {"query": query, "top_k": LISTED, "min_score": 0.0})
    return [_document(visit, query, hit) for hit in found["results"]], found["method"]


def _document(visit: Visit, query: str, hit: Json) -> Result:
    title = f"{hit['path']}: {hit['heading']}" if hit["heading"] else hit["path"]
    href = f"{visit.url(document_path(hit['path']), q=query)}#found"
    return Result("documents", marked(title, query, 200), passage(hit["text"], query), href, hit["score"], ())


def document_path(path: str) -> str:
    """Where a document is read."""
    return f"/knowledge/documents/{quote(path)}"


async def _learnings(visit: Visit, query: str) -> tuple[list[Result], str]:
    found = await visit.call("search_learnings", {"query": query, "limit": LISTED})
    return [_learning(visit, query, each) for each in found["learnings"]], ""


def _learning(visit: Visit, query: str, each: Json) -> Result:
    text = each["pattern"] if each["context"] is None else f"{each['pattern']}\n{each['context']}"
    notes = [f"quality {each['quality_score']}", *(["verified"] if each["verified"] else [])]
    if each["identifier"]:
        notes.append(each["identifier"])
    href = visit.url("/knowledge", tab="learnings", learning=each["id"])
    title = marked(each["learning_type"] or "learning", "")
    return Result("learnings", title, passage(text, query), href, each["score"], tuple(notes))


async def _memories(visit: Visit, query: str) -> tuple[list[Result], str]:
    found = await visit.call("recall_memory", {"query": query, "limit": LISTED})
    return [_memory(visit, query, each) for each in found["memories"]], ""


def _memory(visit: Visit, query: str, each: Json) -> Result:
    href = visit.url("/knowledge", tab="memories", memory=each["key"])
    title = marked(each["key"], query, 200)
    return Result("memories", title, passage(each["content"], query), href, each.get("score") or 0.0, ())
