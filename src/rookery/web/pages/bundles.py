"""One bundle: the tools in it, who holds it, and the editor of those that people make."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import NotFound
from rookery.identity.bundle_holders import list_bundle_holders
from rookery.identity.scope_view import look_at_scope
from rookery.web.routing import action, page
from rookery.web.scope_editor import grouped, grouping
from rookery.web.visit import Visit

Row = dict[str, Any]
NEW = "new"
FRESH: Row = {"id": NEW, "name": "", "description": "", "preset": False, "tools": [], "prompt": ""}


@page("/bundles/{id}")
async def bundle(visit: Visit) -> Response:
    """The bundle with its tools and holders; `new` is one that is not there yet."""
    return await _editor(visit, await _found(visit))


@action("/bundles/{id}/look")
async def look(visit: Visit) -> Response:
    """What the form would come to. Saves nothing."""
    return await _editor(visit, {**await _found(visit), **_given(visit)})


@action("/bundles/{id}")
async def save(visit: Visit) -> Response:
    """Save the form: a new bundle, or what an old one holds."""
    found = await _found(visit)
    given = _given(visit)
    if found["id"] != NEW:
        given["name"] = found["name"]
    saved = await visit.call("save_bundle", given)
    return await visit.done(f"The bundle {saved['name']} is saved.", to=visit.url(f"/bundles/{saved['id']}"))


@action("/bundles/{id}/delete")
async def delete(visit: Visit) -> Response:
    """Delete a bundle and take it from everybody."""
    await visit.call("delete_bundle", {"bundle": visit.path["id"]})
    return await visit.done("The bundle is deleted.", to=visit.url("/agents", tab="bundles"))


@action("/bundles/{id}/assign")
async def assign(visit: Visit) -> Response:
    """Give the bundle to an agent or a project, or take it away."""
    kind, _, holder = visit.word("holder").partition(":")
    holders = {"agent": holder} if kind == "agent" else {"project": holder}
    remove = visit.word("remove") == "1"
    await visit.call("assign_bundle", {"bundle": visit.path["id"], **holders, "remove": remove})
    return await visit.done("Taken away." if remove else "Given.", to=visit.url(f"/bundles/{visit.path['id']}"))


async def _found(visit: Visit) -> Row:
    if visit.path["id"] == NEW:
        return FRESH
    every = (await visit.call("list_bundles"))["bundles"]
    found = next((each for each in every if each["id"] == visit.path["id"]), None)
    if found is None:
        raise NotFound(f"there is no bundle {visit.path['id'][:100]}", hint="the page Agents lists them")
    return found


def _given(visit: Visit) -> Row:
    return {
        "name": visit.word("name"),
        "description": visit.word("description"),
        "prompt": visit.word("prompt"),
        "tools": sorted(set(visit.words("tool"))),
    }


async def _editor(visit: Visit, shown: Row) -> Response:
    by = grouping(visit)
    tools = (await visit.call(look_at_scope))["tools"]
    # A bundle carries no privileged tools, and nothing that agents cannot have.
    offered = [each for each in tools if not each["for_people"] and each["tier"] != "privileged"]
    rows = [{**each, "ticked": each["name"] in shown["tools"]} for each in offered]
    if shown["preset"]:
        rows = [each for each in rows if each["ticked"]]
    holders = (await visit.call(list_bundle_holders))["holders"]
    agents = (await visit.call("list_agent_settings"))["agents"]
    projects = (await visit.call("list_projects"))["projects"]
    may = await visit.may("save_bundle")
    return await visit.render(
        "bundle.html",
        bundle=shown,
        is_new=shown["id"] == NEW,
        groups=grouped(rows, by),
        by=by,
        tokens=sum(each["tokens"] for each in rows if each["ticked"]),
        count=sum(1 for each in rows if each["ticked"]),
        holders=[each for each in holders if each["bundle"] == shown["id"]],
        agent_names=[each["name"] for each in agents],
        project_slugs=[each["slug"] for each in projects],
        may=may,
        may_edit=may and not shown["preset"],
    )
