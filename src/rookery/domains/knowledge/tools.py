"""Tools with which agents search documents, and keep those of their project up to date."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from rookery.core.context import Context
from rookery.core.errors import NotFound
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool
from rookery.domains.knowledge.addresses import address
from rookery.domains.knowledge.indexing import embedder_of, index_file
from rookery.domains.knowledge.search import Found, Search, meaning_in
from rookery.domains.knowledge.store import Documents
from rookery.domains.knowledge.vault_store import Vault, Vaults
from rookery.files.tree_files import MAX_PATH, path_parts

INDEX_LIMIT_S = 900.0
Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PATH)]


class SearchKnowledge(ToolInput):
    query: Query = Field(description="A question or words.")
    top_k: int = Field(5, ge=1, le=20, description="At most.")
    min_score: float = Field(0.3, ge=0, le=1, description="Least score.")


class VaultRetrieve(ToolInput):
    query: Query = Field(description="A question or words.")
    top_k: int = Field(5, ge=1, le=50, description="At most.")


class FoundKnowledge(ToolOutput):
    method: str
    results: list[dict[str, Any]]


class DocumentPath(ToolInput):
    path: Path = Field(description="Relative to the project's folder.")


class Updated(ToolOutput):
    path: str
    status: str
    chunks: int
    embedder: str | None


class Deleted(ToolOutput):
    path: str
    chunks: int


@tool(
    title="Search knowledge", effect="read", action="knowledge:read", tier="observe", group="Read",
    profiles=EVERY_PROFILE, default=False, binds="project", needs="vault",
)  # fmt: skip
def search_knowledge(ctx: Context, args: SearchKnowledge) -> FoundKnowledge:
    """Search this project's documents by words and meaning. Use it before you guess. Returns the best passages with
    path, heading and score. Needs the project setting vault."""
    vault = Vaults(ctx.tx, ctx.actor).open()
    found = _search(ctx, [vault], args.query, args.top_k, args.min_score)
    return FoundKnowledge(method=found.method, results=[_passage(hit) for hit in found.hits])


@tool(
    title="Retrieve from the vault", effect="read", action="knowledge:read", tier="observe", group="Read",
    profiles=EVERY_PROFILE, default=False,
)  # fmt: skip
def vault_retrieve(ctx: Context, args: VaultRetrieve) -> FoundKnowledge:
    """Search the documents of every project you may read. Use it for what other projects know. Returns text, path,
    score and metadata of the best passages; at most 50."""
    vaults = Vaults(ctx.tx, ctx.actor).readable()
    slugs = {vault.project_id: vault.slug for vault in vaults}
    found = _search(ctx, vaults, args.query, args.top_k, 0.0)
    results = [
        _passage(hit)
        | {
            "metadata": {
                "project": slugs[hit.row.project_id],
                "title": hit.row.title,
                "kind": hit.row.kind,
                "chunk": hit.row.position + 1,
                "chunks": hit.row.chunks,
            }
        }
        for hit in found.hits
    ]
    return FoundKnowledge(method=found.method, results=results)


def _search(ctx: Context, vaults: list[Vault], query: str, top_k: int, min_score: float) -> Found:
    meaning = meaning_in(ctx.platform.database, embedder_of(ctx))
    projects = [vault.project_id for vault in vaults]
    return Search(ctx.tx, ctx.actor.tenant, projects, meaning).find(query, top_k=top_k, min_score=min_score)


def _passage(hit: Any) -> dict[str, Any]:
    return {"path": hit.row.path, "heading": hit.row.heading, "score": hit.score, "text": hit.row.content}


@tool(
    title="Update the vault", effect="external", action="knowledge:write", tier="act", group="Write", profiles="WR",
    default=False, binds="project", idempotent=True, open_world=False, timeout_s=INDEX_LIMIT_S, needs="vault",
    outline=False,
)  # fmt: skip
async def vault_update(ctx: Context, args: DocumentPath) -> Updated:
    """Read one file of the project again and make it searchable. Use it after you changed documents. Returns its
    chunks. Only Markdown, text, HTML, PDF and source."""
    done = await index_file(ctx, args.path)
    if done.status == "indexed":
        ctx.publish("ResourceUpdated", subject=address(done.path))
    return Updated(path=done.path, status=done.status, chunks=done.chunks, embedder=done.embedder)


@tool(
    title="Delete from the vault", effect="write", action="knowledge:write", tier="destructive", group="Write",
    profiles="W", default=False, binds="project", outline=False,
)  # fmt: skip
def vault_delete(ctx: Context, args: DocumentPath) -> Deleted:
    """Remove one document of this project from the vault; the file stays. Use it when the file is gone or wrong.
    Returns how many chunks went. It cannot be undone but by vault_update."""
    path = "/".join(path_parts(args.path, "path"))
    vault = Vaults(ctx.tx, ctx.actor).bound()
    gone = Documents(ctx.tx, ctx.actor.tenant, vault.project_id).delete(path)
    if gone is None:
        raise NotFound(f"there is no document {path} in project {vault.slug}", hint="search_knowledge shows paths")
    ctx.publish("ResourceUpdated", subject=address(path))
    return Deleted(path=path, chunks=gone.chunks)
