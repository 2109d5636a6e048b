"""What a session is shown: tools, resources, templates and prompts, page by page."""

import logging
from typing import Any

import mcp_types as types

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.core.pages import page
from rookery.core.prompt import Prompt
from rookery.core.resource import Entry, Resource
from rookery.core.tool import Tool
from rookery.core.wire import wire_form
from rookery.server.answers import Ctx, sealed
from rookery.server.session import Session

PAGE = 250
log = logging.getLogger("rookery.mcp")
Paginated = types.PaginatedRequestParams | None

_wire_tools: dict[int, tuple[Tool, types.Tool]] = {}


def wire_tool(tool: Tool) -> types.Tool:
    """The tool as the SDK sends it, made once."""
    known = _wire_tools.get(id(tool))
    if known is None or known[0] is not tool:
        known = _wire_tools[id(tool)] = (tool, types.Tool.model_validate(wire_form(tool)))
    return known[1]


def _cursor(params: Paginated) -> str | None:
    return params.cursor if params is not None else None


@sealed
async def list_tools(ctx: Ctx, params: Paginated) -> types.ListToolsResult:
    session: Session = ctx.lifespan_context
    tools = await session.tools()
    session.told["tools"] = [tool.name for tool in tools]
    shown, following = page("tools", tools, lambda tool: tool.name, _cursor(params), PAGE)
    return types.ListToolsResult(tools=[wire_tool(tool) for tool in shown], next_cursor=following)


@sealed
async def list_prompts(ctx: Ctx, params: Paginated) -> types.ListPromptsResult:
    session: Session = ctx.lifespan_context
    prompts = await session.prompts()
    session.told["prompts"] = [prompt.name for prompt in prompts]
    shown, following = page("prompts", prompts, lambda prompt: prompt.name, _cursor(params), PAGE)
    return types.ListPromptsResult(prompts=[_wire_prompt(prompt) for prompt in shown], next_cursor=following)


def _wire_prompt(prompt: Prompt) -> types.Prompt:
    schema: dict[str, Any] = prompt.input_schema
    arguments = [
        types.PromptArgument(
            name=name, description=node.get("description"), required=name in schema.get("required", ())
        )
        for name, node in schema.get("properties", {}).items()
    ]
    return types.Prompt(name=prompt.name, title=prompt.title, description=prompt.description, arguments=arguments)


@sealed
async def list_templates(ctx: Ctx, params: Paginated) -> types.ListResourceTemplatesResult:
    session: Session = ctx.lifespan_context
    templates = [each for each in await _told_resources(session) if each.template.variables]
    shown, following = page("templates", templates, lambda each: each.name, _cursor(params), PAGE)
    wire = [
        types.ResourceTemplate(
            name=each.name,
            title=each.title,
            uri_template=each.template.text,
            description=each.description,
            mime_type=each.mime_type,
        )
        for each in shown
    ]
    return types.ListResourceTemplatesResult(resource_templates=wire, next_cursor=following)


@sealed
async def list_resources(ctx: Ctx, params: Paginated) -> types.ListResourcesResult:
    session: Session = ctx.lifespan_context
    resources = await _told_resources(session)
    found = {each.template.text: _wire_resource(each) for each in resources if not each.template.variables}
    actor = await session.actor()
    for template in resources:
        if template.entries is not None:
            for entry in await _entries(session, actor, template):
                found.setdefault(entry.uri, _wire_entry(entry, template))
    ordered = [found[uri] for uri in sorted(found)]
    shown, following = page("resources", ordered, lambda each: each.uri, _cursor(params), PAGE)
    return types.ListResourcesResult(resources=list(shown), next_cursor=following)


async def _told_resources(session: Session) -> list[Resource]:
    resources = await session.resources()
    session.told["resources"] = [each.name for each in resources]
    return resources


async def _entries(session: Session, actor: Actor, template: Resource) -> list[Entry]:
    """What a template lists of itself. One that fails is not listed; the rest of the list must not suffer."""
    assert template.entries is not None
    try:
        found = await session.platform.calls.look_up(actor, template, "entries", template.entries, {})
    except RookeryError as error:
        log.warning("the entries of %s are not listed: %s", template.tool.name, error.code)
        return []
    # An entry that its own template does not match could be listed and never be read.
    return [each for each in found if isinstance(each, Entry) and template.template.match(each.uri) is not None]


def _wire_resource(resource: Resource) -> types.Resource:
    return types.Resource(
        uri=resource.template.text,
        name=resource.name,
        title=resource.title,
        description=resource.description,
        mime_type=resource.mime_type,
    )


def _wire_entry(entry: Entry, template: Resource) -> types.Resource:
    return types.Resource(
        uri=entry.uri,
        name=entry.name,
        title=entry.title,
        description=entry.description or template.description,
        mime_type=entry.mime_type or template.mime_type,
    )
