"""From a file to a document: read, extract, cut, embed and keep. Nothing is done for a file that has not changed."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import sqlalchemy as sa

from rookery.core.context import Context
from rookery.core.errors import Conflict, NotFound, ValidationFailed
from rookery.db.tx import Tx
from rookery.domains.knowledge.chunks import Chunk, cut
from rookery.domains.knowledge.extract import extract, limit_of
from rookery.domains.knowledge.store import Documents, Draft, DraftChunk
from rookery.domains.knowledge.vault_store import Vault, Vaults
from rookery.domains.knowledge.walk import covered, is_hidden
from rookery.embedding.embedder import Embedder
from rookery.files.tree_files import inside, path_parts, read_inside
from rookery.fulltext.query import tsvector
from rookery.fulltext.words import raw_words

FORMAT = b"1\0"
"""Part of every hash. Another number makes every file a changed one, for when texts are cut in another way."""
BATCH = 32
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Indexed:
    """What became of a file."""

    path: str
    status: Literal["indexed", "unchanged"]
    chunks: int
    embedder: str | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a document belongs, and what is there now."""

    vault: Vault
    path: str
    seen: sa.Row[Any] | None
    dialect: str


def embedder_of(ctx: Context) -> Embedder | None:
    """What makes vectors in this installation, if anything does. Loads it, which takes a moment, the first time."""
    load = cast("Callable[[], Embedder | None] | None", ctx.platform.facts.get("embedder"))
    return load() if load is not None else None


async def index_file(ctx: Context, text: str) -> Indexed:
    """Read the file at a path inside the bound project's folder and keep it as a document, unless it is unchanged.

    A document is replaced in one transaction: until then it is found as it was.
    """
    parts = path_parts(text, "path")
    if not parts:
        raise ValidationFailed(f"path {text} is the folder itself", hint="name a file in it")
    embedder = await asyncio.to_thread(embedder_of, ctx)
    for _ in range(ATTEMPTS):
        place = await ctx.read(lambda tx: _look(tx, ctx, parts))
        content = await asyncio.to_thread(_content, place, parts)
        digest = hashlib.sha256(FORMAT + content).hexdigest()
        if place.seen is not None and place.seen.hash == digest and _embedded(place.seen, embedder):
            return Indexed(place.path, "unchanged", place.seen.chunks, place.seen.embedder)
        draft = await asyncio.to_thread(_draft, ctx, place, content, digest)
        if embedder is not None:
            draft = await _with_vectors(ctx, draft, embedder)
        if await ctx.write(lambda tx, place=place, draft=draft: _save(tx, ctx, place, draft)):
            return Indexed(place.path, "indexed", len(draft.chunks), draft.embedder)
    raise Conflict(f"{'/'.join(parts)} is being indexed by others again and again", hint="try again later")


def _look(tx: Tx, ctx: Context, parts: Sequence[str]) -> _Place:
    vault = Vaults(tx, ctx.actor).open()
    path = "/".join(parts)
    if not covered(parts, vault.folders, vault.globs):
        what = "; ".join(
            f"{name} {', '.join(given)}"
            for name, given in (("folders", vault.folders), ("globs", vault.globs))
            if given
        )
        raise ValidationFailed(
            f"{path} is not in the vault of project {vault.slug}",
            hint=f"the vault has {what or 'every file'}, nothing hidden or installed; configure_vault changes that",
        )
    return _Place(vault, path, Documents(tx, ctx.actor.tenant, vault.project_id).find(path), tx.dialect)


def _content(place: _Place, parts: Sequence[str]) -> bytes:
    root = place.vault.existing_folder()
    real = inside(root, parts, (), "path")
    if is_hidden(os.path.relpath(real, os.path.realpath(root)).split(os.sep)):
        raise ValidationFailed(f"{place.path} is a link to something hidden", hint="put the file itself there")
    content = read_inside(root, real, limit_of(place.path), place.path)
    if content is None:
        hint = "vault_delete removes its document" if place.seen is not None else "paths are relative to the folder"
        raise NotFound(f"there is no file {place.path} in project {place.vault.slug}", hint=hint)
    return content


def _embedded(seen: sa.Row[Any], embedder: Embedder | None) -> bool:
    """Whether its vectors are as good as they can be now. Old ones are kept while there is no embedder."""
    return embedder is None or seen.embedder == embedder.name


def _draft(ctx: Context, place: _Place, content: bytes, digest: str) -> Draft:
    found = extract(place.path, content, ctx.check)
    chunks: list[DraftChunk] = []
    for chunk in cut(found.text, found.kind):
        ctx.check()
        lexemes = _lexemes(chunk) if place.dialect == "postgresql" else None
        chunks.append(DraftChunk(chunk=chunk, words=_length(chunk), lexemes=lexemes))
    return Draft(
        path=place.path, title=found.title, kind=found.kind, hash=digest, bytes=len(content), chunks=chunks
    )  # fmt: skip


def _lexemes(chunk: Chunk) -> str:
    """What PostgreSQL looks through."""
    return tsvector({"A": chunk.heading, "B": chunk.content})


def _length(chunk: Chunk) -> int:
    """How many words there are. SQLite's index counts the project as one more, so it is counted here too."""
    return 1 + sum(1 for text in (chunk.heading, chunk.content) for _ in raw_words(text))


async def _with_vectors(ctx: Context, draft: Draft, embedder: Embedder) -> Draft:
    """A few chunks at a time, so that the caller sees progress and can stop it."""
    texts = [f"{each.chunk.heading}\n{each.chunk.content}".strip() for each in draft.chunks]
    vectors: list[bytes] = []
    for start in range(0, len(texts), BATCH):
        ctx.check()
        vectors += await asyncio.to_thread(embedder.embed, texts[start : start + BATCH])
        ctx.progress(len(vectors), len(texts), f"{draft.path}: chunks embedded")
    chunks = [replace(each, vector=vector) for each, vector in zip(draft.chunks, vectors, strict=True)]
    return replace(draft, chunks=chunks, embedder=embedder.name)


def _save(tx: Tx, ctx: Context, place: _Place, draft: Draft) -> bool:
    # What the actor may do is looked at again: the embedding may have taken minutes.
    vault = Vaults(tx, ctx.actor).open()
    documents = Documents(tx, ctx.actor.tenant, vault.project_id)
    return documents.save(draft, place.seen, ctx.actor.subject) is not None
