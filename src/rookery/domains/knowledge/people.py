"""What people do with documents besides reading them: see how they are searched here, and bring some along.

Not in a module where tools are looked for: no agent has them, and no session pays for their listing. They are called,
decided and recorded like any other.
"""

import asyncio
import base64
import binascii
import os
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import InvalidParams
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.knowledge.addresses import address
from rookery.domains.knowledge.extract import KINDS, extract, limit_of
from rookery.domains.knowledge.indexing import embedder_of, index_file
from rookery.domains.knowledge.tables import documents
from rookery.domains.knowledge.tools import INDEX_LIMIT_S
from rookery.domains.knowledge.uploads import checked_name, place_of, put_file
from rookery.domains.knowledge.vault_store import Vault, Vaults

MAX_UPLOAD = 25 * 1024**2
MAX_ENCODED = MAX_UPLOAD * 4 // 3 + 4
_COUNTED = sa.select(
    sa.func.count().label("documents"),
    sa.func.sum(documents.c.chunks).label("chunks"),
    sa.func.sum(sa.case((documents.c.embedder == sa.bindparam("made_by"), 1), else_=0)).label("embedded"),
)


class VaultStatus(ToolOutput):
    """`method` is how documents are looked for: `hybrid` by meaning and words, `keyword` by words alone."""

    on: bool
    configured: bool
    folder: str | None
    folders: list[str]
    globs: list[str]
    method: str
    embedder: str | None
    documents: int
    chunks: int
    embedded: int
    endings: list[str]


class UploadDocument(ToolInput):
    name: str = Field(min_length=1, max_length=400, description="The file's name.")
    content: str = Field(max_length=MAX_ENCODED, description="Its bytes in base64.")
    replace: bool = Field(False, description="Take the place of a file of that name.")


class Uploaded(ToolOutput):
    path: str
    status: str
    chunks: int
    embedder: str | None


@tool(
    title="Vault status", effect="read", action="knowledge:read", tier="observe", group="System", profiles="",
    default=False, principals="people", binds="project",
)  # fmt: skip
def vault_status(ctx: Context, args: NoInput) -> VaultStatus:
    """Show how the bound project's documents are searched here, and how many are ready for it."""
    vault = Vaults(ctx.tx, ctx.actor).bound()
    embedder = embedder_of(ctx)
    made_by = "" if embedder is None else embedder.name
    mine = (documents.c.tenant == ctx.actor.tenant, documents.c.project_id == vault.project_id)
    counted = ctx.tx.one(_COUNTED.where(*mine), {"made_by": made_by})
    assert counted is not None
    return VaultStatus(
        on=vault.on,
        configured=vault.configured,
        folder=vault.folder,
        folders=list(vault.folders),
        globs=list(vault.globs),
        method="keyword" if embedder is None else "hybrid",
        embedder=made_by or None,
        documents=counted.documents,
        chunks=int(counted.chunks or 0),
        embedded=int(counted.embedded or 0),
        endings=sorted(KINDS),
    )


@tool(
    title="Upload document", effect="external", action="knowledge:write", tier="act", group="System", profiles="",
    default=False, principals="operators", binds="project", open_world=False, timeout_s=INDEX_LIMIT_S,
)  # fmt: skip
async def upload_document(ctx: Context, args: UploadDocument) -> Uploaded:
    """Put a file into the bound project's vault, below its folder `uploads`, and make it searchable.

    A vault that was never set is turned on; one that somebody turned off stays off. A project without a folder gets one
    of its own on the server.
    """
    name = checked_name(args.name)
    content = await asyncio.to_thread(_decoded, args.content, limit_of(name))
    vault = await ctx.write(lambda tx: _ready(tx, ctx))
    parts = place_of(vault, name)
    # What cannot be read is refused before anything is written.
    await asyncio.to_thread(extract, "/".join(parts), content, ctx.check)
    await asyncio.to_thread(put_file, vault.existing_folder(), parts, content, replace=args.replace)
    done = await index_file(ctx, "/".join(parts))
    ctx.publish("ResourceUpdated", subject=address(done.path))
    return Uploaded(path=done.path, status=done.status, chunks=done.chunks, embedder=done.embedder)


def _decoded(text: str, limit: int) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParams("content: is not base64", hint="send the file's bytes in base64") from None
    most = min(limit, MAX_UPLOAD)
    if len(content) > most:
        raise InvalidParams(f"content: has {len(content):,} bytes, at most {most:,} are taken", hint="split the file")
    return content


def _ready(tx: Tx, ctx: Context) -> Vault:
    """The vault, on and with a folder."""
    vaults = Vaults(tx, ctx.actor)
    found = vaults.bound()
    values: dict[str, Any] = {} if found.configured else {"on": True}
    if found.folder is None:
        # Of the server's home, nothing but what was uploaded is in this folder.
        own = os.path.join(ctx.platform.facts["home"], "uploads", found.project_id)
        os.makedirs(own, mode=0o700, exist_ok=True)
        values["root"] = own
    if values:
        vaults.configure(**values)
    return vaults.open()
