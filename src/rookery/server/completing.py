"""completion/complete: what an argument of a prompt or of a resource's address could be."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError

from rookery.around.logs import bind_ids
from rookery.core.declared import Declared
from rookery.core.errors import InvalidParams
from rookery.core.ids import new_id
from rookery.server.answers import Ctx, sealed
from rookery.server.calling import MAX_NAME, not_found, shown_to, trace_of
from rookery.server.session import Session

MOST = 100


@sealed
async def complete(ctx: Ctx, params: types.CompleteRequestParams) -> types.CompleteResult:
    session: Session = ctx.lifespan_context
    registry, calls = session.platform.registry, session.platform.calls
    actor, ref, argument = await session.actor(), params.ref, params.argument
    declared: Declared | None
    if isinstance(ref, types.PromptReference):
        declared = registry.prompt(ref.name)
        unknown = MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {ref.name[:MAX_NAME]}")
    else:
        declared = registry.template(ref.uri)
        unknown = not_found(ctx, ref.uri)
    if declared is None or not shown_to(actor, declared):
        raise unknown
    fields = cast("dict[str, Any]", declared.input_schema.get("properties", {}))
    if argument.name not in fields:
        raise InvalidParams(
            f"{declared.name} has no argument {argument.name[:MAX_NAME]}", hint=f"arguments: {', '.join(fields)}"
        )
    completer = declared.complete.get(argument.name)
    if completer is None:
        values = suggestions(fields[argument.name], argument.value)
    else:
        bind_ids(actor, new_id("req"), trace_of(ctx), f"completion/complete {declared.tool.name}")
        others = dict(params.context.arguments or {}) if params.context is not None else {}
        look = _look(completer, argument.value, others)
        about = {**others, argument.name: argument.value}
        values = [str(value) for value in await calls.look_up(actor, declared, "complete", look, about)]
    return types.CompleteResult(
        completion=types.Completion(values=values[:MOST], total=len(values), has_more=len(values) > MOST)
    )


def _look(completer: Callable[..., Any], typed: str, others: Mapping[str, str]) -> Callable[..., Any]:

    def inside(ctx: Any) -> Any:
        return completer(ctx, typed, others)

    async def outside(ctx: Any) -> Any:
        return await completer(ctx, typed, others)

    return outside if inspect.iscoroutinefunction(completer) else inside


def suggestions(node: Mapping[str, Any], typed: str) -> list[str]:
    """The values that a field's own schema names and that begin as typed."""
    branches = cast("list[Mapping[str, Any]]", node.get("anyOf", [node]))
    values: list[str] = []
    for branch in branches:
        if branch.get("type") == "boolean":
            values += ("true", "false")
        elif "const" in branch:
            values.append(str(branch["const"]))
        else:
            values += (str(value) for value in branch.get("enum", ()))
    return [value for value in values if value.casefold().startswith(typed.casefold())]
