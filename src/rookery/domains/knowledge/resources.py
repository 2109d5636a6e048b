"""Documents, to be read by address."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import NotFound
from rookery.core.resource import Contents, Entry, resource
from rookery.core.tool import ToolInput
from rookery.domains.knowledge.addresses import TEMPLATE, address
from rookery.domains.knowledge.store import Documents
from rookery.domains.knowledge.tables import documents
from rookery.domains.knowledge.tools import Path
from rookery.domains.knowledge.vault_store import Vaults

LISTED = 100
MAX_CHARACTERS = 1_000_000
_TYPES = {"markdown": "text/markdown", "html": "text/markdown"}


class DocumentAddress(ToolInput):
    path: Path = Field(description="Path of the document in the bound project.")


def _store(ctx: Context) -> Documents:
    return Documents(ctx.tx, ctx.actor.tenant, Vaults(ctx.tx, ctx.actor).open().project_id)


def _mime_type(kind: str) -> str:
    return _TYPES.get(kind, "text/plain")


def _entries(ctx: Context) -> list[Entry]:
    vaults = Vaults(ctx.tx, ctx.actor)
    if ctx.actor.project is None or not vaults.bound().on:
        return []
    return [
        Entry(address(row.path), name=row.path, title=row.title, mime_type=_mime_type(row.kind))
        for row in _store(ctx).page(limit=LISTED)
    ]


def _paths(ctx: Context, typed: str, others: Mapping[str, str]) -> list[str]:
    if ctx.actor.project is None or not Vaults(ctx.tx, ctx.actor).bound().on:
        return []
    begins = sa.func.substr(documents.c.path, 1, len(typed)) == typed
    mine = (documents.c.tenant == ctx.actor.tenant, documents.c.project_id == ctx.actor.project)
    wanted = sa.select(documents.c.path).where(*mine, begins).order_by(documents.c.path).limit(LISTED)
    found: Sequence[sa.Row[Any]] = ctx.tx.all(wanted)
    return [row.path for row in found]


@resource(
    TEMPLATE.text, title="Document", right="search_knowledge", entries=_entries, complete={"path": _paths},
)  # fmt: skip
def knowledge_document(ctx: Context, args: DocumentAddress) -> list[Contents]:
    """The text of a document of the bound project, as it was when it was last read; HTML as Markdown."""
    store = _store(ctx)
    found = store.find("/".join(part for part in args.path.split("/") if part not in ("", ".")))
    if found is None:
        raise NotFound(f"there is no document {args.path}", hint="search_knowledge shows paths")
    text = store.text(found)
    if len(text) > MAX_CHARACTERS:
        rest = len(text) - MAX_CHARACTERS
        text = f"{text[:MAX_CHARACTERS]}\n\n[cut: {rest} more characters; search_knowledge finds them]"
    return [Contents(text, mime_type=_mime_type(found.kind))]
