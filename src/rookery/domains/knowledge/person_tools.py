"""Tools with which people set up a project's vault and see what is in it."""

import os
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from rookery.core.context import Context
from rookery.core.errors import InvalidParams, ValidationFailed
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.knowledge.store import Documents
from rookery.domains.knowledge.vault_store import Vault, Vaults
from rookery.domains.knowledge.walk import patterns
from rookery.files.tree_files import MAX_PATH, path_parts

MAX_FOLDERS = 100


def _folder(text: str) -> str:
    try:
        return "/".join(path_parts(text, "folder")) if text not in (".", "./") else "."
    except ValidationFailed as error:
        raise ValueError(error.message) from None


Folder = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PATH), AfterValidator(_folder)]
Glob = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class ConfigureVault(ToolInput):
    on: bool | None = Field(None, description="Whether it can be searched.")
    folders: list[Folder] | None = Field(None, max_length=MAX_FOLDERS, description="All folders; none: every one.")
    globs: list[Glob] | None = Field(None, max_length=MAX_FOLDERS, description="All patterns, as in .gitignore.")
    root: str | None = Field(
        None, max_length=MAX_PATH, description="Folder on the server instead of the project's; '' for that one."
    )


class ConfiguredVault(ToolOutput):
    project: str
    on: bool
    folders: list[str]
    globs: list[str]
    root: str | None
    configured: bool


class ListDocuments(ToolInput):
    below: str = Field("", max_length=MAX_PATH, description="Only of this folder.")
    limit: int = Field(200, ge=1, le=1000, description="At most.")
    after: str = Field("", max_length=MAX_PATH, description="Next page, as returned.")


class ListedDocuments(ToolOutput):
    documents: list[dict[str, Any]]
    after: str | None


@tool(
    title="Configure vault", effect="write", action="knowledge:configure", tier="act", group="System", profiles="",
    default=False, principals="people", binds="project", idempotent=True,
)  # fmt: skip
def configure_vault(ctx: Context, args: ConfigureVault) -> ConfiguredVault:
    """Set the bound project's setting vault, so that agents can search its documents; without arguments look.
    Absent values stay; lists are replaced."""
    given = args.model_dump(exclude_none=True)
    patterns(args.globs or ())
    if args.root is not None:
        given["root"] = _root(args.root, ctx.platform.facts["home"])
    if args.folders is not None:
        given["folders"] = [] if "." in args.folders else args.folders
    vaults = Vaults(ctx.tx, ctx.actor)
    return _shown(vaults.configure(**given) if given else vaults.bound())


def _root(text: str, home: str) -> str | None:
    if not text:
        return None
    if not os.path.isabs(text) or not text.isprintable():
        raise InvalidParams("root: must be an absolute path", hint="such as /srv/docs")
    root = os.path.normpath(text)
    # Whose folder the server keeps its own files in, whoever asks.
    one, other = os.path.realpath(root), os.path.realpath(home)
    if os.path.commonpath([one, other]) in (one, other):
        raise InvalidParams("root: must not contain the server's home, nor be in it", hint="choose another folder")
    return root


def _shown(vault: Vault) -> ConfiguredVault:
    return ConfiguredVault(
        project=vault.slug,
        on=vault.on,
        folders=list(vault.folders),
        globs=list(vault.globs),
        root=vault.folder,
        configured=vault.configured,
    )


@tool(
    title="List documents", effect="read", action="knowledge:read", tier="observe", group="Read", profiles="",
    default=False, principals="people", binds="project",
)  # fmt: skip
def list_documents(ctx: Context, args: ListDocuments) -> ListedDocuments:
    """List the bound project's documents by path."""
    vault = Vaults(ctx.tx, ctx.actor).bound()
    store = Documents(ctx.tx, ctx.actor.tenant, vault.project_id)
    rows = store.page(below=args.below, after=args.after, limit=args.limit + 1)
    shown = [
        {
            "path": row.path,
            "title": row.title,
            "kind": row.kind,
            "bytes": row.bytes,
            "chunks": row.chunks,
            "embedder": row.embedder,
            "indexed_ms": row.indexed_ms,
        }
        for row in rows[: args.limit]
    ]
    return ListedDocuments(documents=shown, after=rows[args.limit - 1].path if len(rows) > args.limit else None)
