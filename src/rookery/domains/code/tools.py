"""Tools with which agents find their way through the code of a project."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from rookery.core.context import Context
from rookery.core.errors import NotFound, ServiceUnavailable
from rookery.core.pages import decode_number, encode_cursor
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.code.extract import IMPORT
from rookery.domains.code.indexing import Project, refresh
from rookery.domains.code.places import Asked, place_of
from rookery.domains.code.search import EXPORT, Match, Page, Search
from rookery.domains.code.shown import mentioned, placed
from rookery.domains.code.store import Indexes
from rookery.domains.code.trees import trees_of

INDEX_LIMIT_S = 900.0
MAX_TEXT = 1_000
DEFAULT_SHOWN, MAX_SHOWN = 50, 200
DEFINITIONS = 20
KINDS = (
    "function", "method", "class", "interface", "type_alias", "enum", "variable", "namespace", "macro",
    "implementation", IMPORT, EXPORT,
)  # fmt: skip


def _short(text: str) -> str:
    if not text.strip() or len(text) > MAX_TEXT:
        raise ValueError(f"must have 1 to {MAX_TEXT} characters")
    return text.strip()


def _kinds(kinds: list[str]) -> list[str]:
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"must be some of {', '.join(KINDS)}")
    return kinds


def _shown(number: int) -> int:
    if not 1 <= number <= MAX_SHOWN:
        raise ValueError(f"must be from 1 to {MAX_SHOWN}")
    return number


# Validators rather than limits that every agent would read in the schema.
Text = Annotated[str, AfterValidator(_short)]
Cursor = Annotated[str, AfterValidator(_short)]
Limit = Annotated[int, AfterValidator(_shown)]


class Where(ToolInput):
    """What both tools take. Those that are not listed are spellings of other platforms, and refinements."""

    path: Text | None = Field(None, description="File or folder")
    project_id: Text | None = Field(None, description="Another project")
    cursor: SkipJsonSchema[Cursor | None] = Field(None, description="The next_cursor of the page before")
    project_dir: SkipJsonSchema[Text | None] = Field(None, description="A folder of a project")
    limit: SkipJsonSchema[Limit | None] = Field(None, description="At most, up to 200")


class CodeSymbols(Where):
    query: Text | None = Field(None, description="Name, prefix* or =exact")
    match: SkipJsonSchema[Match | None] = Field(None, description="exact, prefix or fuzzy")
    kinds: SkipJsonSchema[Annotated[list[str], AfterValidator(_kinds)] | None] = Field(
        None, description="Only symbols of these kinds"
    )


class FindReferences(Where):
    symbol: Text = Field(validation_alias=AliasChoices("symbol", "symbol_name"), description="Exact name")


def _without_fields(schema: dict[str, Any]) -> None:
    schema.pop("properties", None)


class Told(ToolOutput):
    """Its fields are listed for no agent: whoever calls sees them."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_without_fields)


@tool(
    title="Code symbols", effect="external", action="fs:read", tier="observe", group="Read", profiles="",
    default=True, requires="code_index", open_world=False, timeout_s=INDEX_LIMIT_S,
)  # fmt: skip
async def code_symbols(ctx: Context, args: CodeSymbols) -> Told:
    """Use it to find definitions by name, or all in path. Returns paths and lines. Reads only."""
    query, match = _query(args)
    kinds, start, limit = frozenset(args.kinds or ()), decode_number(args.cursor) or 0, args.limit or DEFAULT_SHOWN

    def look(search: Search) -> Page:
        if query:
            return search.symbols(query, match, kinds, start, limit)
        return search.listed(kinds, start, limit)

    found, notes = await _look(ctx, args, look)
    told: dict[str, Any] = {"symbols": [placed(each) for each in found.items], "total": found.total}
    if found.cut:
        notes = [*notes, f"only the best {found.total} are counted"]
    if not found.total:
        notes = [*notes, f"no symbol matches {query}" if query else "no symbols there"]
    return Told(**told, **_rest(found, start, limit, notes))


def _query(args: CodeSymbols) -> tuple[str, Match]:
    """The name that is looked for, and how: a mark at its begin or end says so, if `match` does not."""
    query = args.query or ""
    if args.match is not None:
        return query, args.match
    if query.startswith("=") and len(query) > 1:
        return query[1:], "exact"
    if query.endswith("*") and len(query) > 1:
        return query[:-1], "prefix"
    return query, "fuzzy"


@tool(
    title="Find references", effect="external", action="fs:read", tier="observe", group="Read", profiles="",
    default=True, requires="code_index", open_world=False, timeout_s=INDEX_LIMIT_S,
)  # fmt: skip
async def find_references(ctx: Context, args: FindReferences) -> Told:
    """Use it to see where a name is used. Returns paths, lines; by name only."""
    start, limit = decode_number(args.cursor) or 0, args.limit or DEFAULT_SHOWN
    found, notes = await _look(
        ctx,
        args,
        lambda search: (search.definitions(args.symbol, DEFINITIONS), search.mentions(args.symbol, start, limit)),
    )
    defined, used = found
    ctx.emit_status(f"references found: {used.total}")
    if not defined.total:
        notes = [*notes, f"no definition of {args.symbol}"]
    if not used.total:
        notes = [*notes, f"no reference to {args.symbol}"]
    told: dict[str, Any] = {"symbol": args.symbol}
    if not start:
        told |= {"definitions": [placed(each) for each in defined.items], "definitions_total": defined.total}
    told |= {"references": [mentioned(each) for each in used.items], "total": used.total}
    return Told(**told, **_rest(used, start, limit, notes))


async def _look(ctx: Context, args: Where, look: Callable[[Search], Any]) -> tuple[Any, Sequence[str]]:
    """What `look` finds in the project's index, once that has the files as they are now."""
    asked = Asked(args.project_id, args.project_dir, args.path)
    project, path = await ctx.read(lambda tx: place_of(tx, ctx.actor, asked))
    ctx.emit_status(f"reading the code of {project.slug}")
    for _ in range(3):
        watched = await refresh(ctx, project)
        found = await ctx.read(lambda tx: _looked(tx, ctx, project, path, look))
        if found is not None:
            notes = ["the project has more files than are indexed"] if watched.more else []
            return found[0], notes
        # Another process has emptied the index, or filled it from another folder.
        trees_of(ctx.platform).of(project.id, project.root).stale = True
    raise ServiceUnavailable(f"the index of {project.slug} is being rebuilt by another server", hint="try again")


def _looked(tx: Any, ctx: Context, project: Project, path: str, look: Callable[[Search], Any]) -> tuple[Any] | None:
    index = Indexes(tx, ctx.actor.tenant).find(project.id, project.root)
    if index is None:
        return None
    search = Search(tx, trees_of(ctx.platform).texts, index.no, path)
    if path and not search.has_files():
        raise NotFound(
            f"there is no source file at {path} in project {project.slug}",
            hint="paths are relative to its folder; hidden, ignored, large and foreign files are left out",
        )
    return (look(search),)


def _rest(found: Page, start: int, limit: int, notes: Sequence[str]) -> dict[str, Any]:
    rest: dict[str, Any] = {}
    if found.more:
        rest["next_cursor"] = encode_cursor(str(start + limit))
        # No schema names the argument.
        notes = [*notes, "more: cursor=next_cursor"]
    return {**rest, "note": "; ".join(notes)} if notes else rest
