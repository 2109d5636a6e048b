"""Tools that look things up on the web by a search engine."""

import math
from typing import Any

from rookery.core.context import Context
from rookery.core.questions import InputRequired
from rookery.core.tool import ToolOutput, tool
from rookery.domains.research import shown
from rookery.domains.research.gathering import Gathered, Kept, gather, queries_about
from rookery.domains.research.inputs import DeepResearch, WebSearch
from rookery.domains.research.port import Search
from rookery.domains.research.searching import Searching
from rookery.domains.research.summary import Summary, summarize

DEFAULT_COUNT = 5
DEEP_S = 120.0
_LOOKS: dict[str, Any] = {
    "effect": "external", "action": "research:search", "tier": "act", "group": "Read", "profiles": "", "default": True,
    "needs": "search", "outline": False,
}  # fmt: skip


class WebResults(ToolOutput):
    """Up to `count` results. `note` says why there are none."""

    query: str
    results: list[dict[str, Any]]
    note: str | None

    def as_text(self) -> str:
        if not self.results:
            return self.note or ""
        return f"{shown.result_lines(self.results)}\n\n{shown.ORIGIN}"


class Research(ToolOutput):
    """What each query found that none before it had. `summary` is by the client's model, `summarized_by`."""

    query: str
    total: int
    groups: list[dict[str, Any]]
    failed: list[dict[str, str]]
    left_out: list[str]
    summary: str | None
    summarized_by: str | None
    note: str | None

    def as_text(self) -> str:
        head = [f"# Research: {shown.markdown(self.query)}"]
        if self.groups:
            head.append(f"{shown.plural(self.total, 'result')} of {shown.plural(len(self.groups), 'query')}.")
        head += [f"Skipped: {shown.markdown(each['query'])} ({shown.markdown(each['reason'])})" for each in self.failed]
        head += [f"Left out, since there were too many: {shown.markdown(query)}" for query in self.left_out]
        head += [self.note] if self.note else []
        parts = ["\n\n".join(head)]
        if self.summary:
            model = shown.markdown(self.summarized_by or "")
            parts.append(f"## Summary, by the client's model ({model})\n\n{self.summary}")
        parts += [shown.section(group) for group in self.groups if self.total]
        return shown.RULE.join([*parts, *([shown.ORIGIN] if self.total else [])])


@tool(
    title="Web search", **_LOOKS, rate_per_minute=60,
    bundles=("preset-researcher", "preset-full-stack", "preset-memory-manager"),
)  # fmt: skip
async def web_search(ctx: Context, args: WebSearch) -> WebResults:
    """Use it to search the web. Returns links with snippets only."""
    searching = Searching(ctx)
    ctx.emit_status(f'searching the web for "{args.query}"')
    note = searching.missing()
    count = DEFAULT_COUNT if args.count is None else math.floor(args.count)
    found = [] if note else await searching.find(Search(args.query, count, args.freshness))
    ctx.emit_status(f"{shown.plural(len(found), 'result')} found")
    said = "No results." if note is None else f"No results. {note}"
    return WebResults(query=args.query, results=[each.as_dict() for each in found], note=None if found else said)


@tool(
    title="Deep research", **_LOOKS, rate_per_minute=12, timeout_s=DEEP_S,
    bundles=("preset-researcher", "preset-memory-manager"),
)  # fmt: skip
async def deep_research(ctx: Context, args: DeepResearch) -> Research:
    """Use it to search a topic from several sides. Returns up to 25 links."""
    searching = Searching(ctx)
    queries, left_out = queries_about(args.query, args.queries)
    ctx.emit_status(f'researching "{args.query}" by {shown.plural(len(queries), "query")}')
    missing = searching.missing()
    kept = Kept(ctx, queries)
    gathered = Gathered() if missing else await kept.get() or await gather(searching, queries)
    summary = await _summary(ctx, args.query, gathered, kept)
    ctx.emit_status(f"{shown.plural(gathered.total, 'result')} found")
    return _research(args.query, gathered, left_out, summary, missing)


async def _summary(ctx: Context, topic: str, gathered: Gathered, kept: Kept) -> Summary | None:
    wanted = ctx.platform.facts["settings"].search_summary and ctx.client.sampling
    if not (wanted and gathered.total):
        return None
    await kept.keep(gathered)
    try:
        summary = await summarize(ctx, topic, gathered)
    except InputRequired:
        if not kept.found:
            raise
        # It comes again without an answer: its model will not give one, and the results must not be lost for that.
        summary = None
    await kept.forget()
    return summary


def _research(
    topic: str, gathered: Gathered, left_out: list[str], summary: Summary | None, missing: str | None
) -> Research:
    note = None if gathered.total else f"No results.{f' {missing}' if missing else ''}"
    return Research(
        query=topic,
        total=gathered.total,
        groups=[{"query": query, "results": [each.as_dict() for each in found]} for query, found in gathered.groups],
        failed=[{"query": query, "reason": reason} for query, reason in gathered.failed],
        left_out=left_out,
        summary=summary.text if summary else None,
        summarized_by=summary.model if summary else None,
        note=note,
    )
