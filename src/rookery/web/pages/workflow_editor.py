"""Drawing a workflow: nodes and edges are added by forms, and the picture changes with them until it is saved."""

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from rookery.core.errors import InvalidParams, RookeryError
from rookery.domains.workflows.overview import show_workflow
from rookery.web import workflow_draft as drafts
from rookery.web.editing import editable
from rookery.web.routing import action, page
from rookery.web.visit import Visit
from rookery.web.workflow_picture import draw, read_graph

TOOL = "manage_workflow"
HOME = "/automation/workflows"
BODY = 4 << 20
Json = dict[str, Any]


@page(HOME + "/new")
async def new_workflow(visit: Visit) -> Response:
    """A beginning: a start and an end."""
    about = {"id": "", "name": "", "description": "", "agent": "", "max_concurrency": 2, "status": "draft"}
    return await _shown(visit, about, drafts.as_text(drafts.NEW))


@page(HOME + "/{id}/edit")
async def edit_workflow(visit: Visit) -> Response:
    """A workflow as it is, to be changed."""
    found = (await visit.call(show_workflow, {"workflow_id": visit.path["id"]}))["workflow"]
    graph = drafts.as_text({"nodes": found["nodes"], "edges": found["edges"]})
    return await _shown(visit, found, graph)


@action(HOME + "/draft", max_body=BODY)
async def change_draft(visit: Visit) -> Response:
    """One step of drawing, or the end of it. What is not saved is nowhere but in the form."""
    await visit.require(TOOL)
    text = visit.word("graph")
    selected, problem = visit.word("selected"), ""
    try:
        draft = drafts.read_draft(text)
        verb, _, about = visit.word("do").partition(":")
        if verb in ("save", "save_active"):
            return await _saved(visit, draft, activate=verb == "save_active")
        selected = _steps()[verb](visit, draft, about) if verb in _steps() else selected
        text = drafts.as_text(draft)
    except RookeryError as error:
        problem = ". ".join(part for part in (error.message, error.hint) if part)
    about_it = {name: visit.word(name) for name in ("id", "name", "description", "agent", "max_concurrency", "status")}
    return await _shown(visit, about_it, text, selected, problem)


def _steps() -> dict[str, Callable[[Visit, Json, str], str]]:
    """What a button does to the draft; each says which node is looked at afterwards."""
    return {
        "add": _add,
        "connect": _connect,
        "select": lambda visit, draft, about: about,
        "apply": _apply,
        "remove_node": _remove_node,
        "remove_edge": _remove_edge,
        "json": lambda visit, draft, about: visit.word("selected"),
    }


def _add(visit: Visit, draft: Json, about: str) -> str:
    return drafts.add_node(draft, visit.word("kind"), visit.word("label")[:200], visit.word("after"))


def _connect(visit: Visit, draft: Json, about: str) -> str:
    drafts.connect(draft, visit.word("source"), visit.word("target"), visit.word("condition"))
    return visit.word("selected")


def _apply(visit: Visit, draft: Json, about: str) -> str:
    given = {name.removeprefix("config:"): visit.word(name) for name in visit.form if name.startswith("config:")}
    drafts.change_node(draft, about, visit.word("node_label")[:200], given)
    return about


def _remove_node(visit: Visit, draft: Json, about: str) -> str:
    drafts.remove_node(draft, about)
    return ""


def _remove_edge(visit: Visit, draft: Json, about: str) -> str:
    drafts.remove_edge(draft, about)
    return visit.word("selected")


async def _saved(visit: Visit, draft: Json, *, activate: bool) -> Response:
    known = visit.word("id")
    given: Json = {"name": visit.word("name"), "nodes": draft["nodes"], "edges": draft["edges"]}
    if not given["name"]:
        raise InvalidParams("name: is empty", hint="give the workflow a name")
    if visit.word("description"):
        given["description"] = visit.word("description")
    if visit.word("max_concurrency").isdecimal():
        given["max_concurrency"] = int(visit.word("max_concurrency"))
    if visit.word("agent"):
        given["agent_id"] = visit.word("agent")
    verb = {"action": "update", "workflow_id": known} if known else {"action": "create"}
    saved = (await visit.call(TOOL, {**verb, **given}))["workflows"][0]
    if activate:
        await visit.call(TOOL, {"action": "activate", "workflow_id": saved["id"]})
    return await visit.done("Saved.", to=visit.url(f"{HOME}/{saved['id']}"))


async def _shown(visit: Visit, about: Json, text: str, selected: str = "", problem: str = "") -> Response:
    """The form with the picture of what it carries, and what keeps that from running."""
    draft: Json = {"nodes": [], "edges": []}
    fault = ""
    try:
        draft = drafts.read_draft(text)
    except RookeryError as error:
        problem = problem or error.message
    graph, fault = read_graph(draft["nodes"], draft["edges"])
    node = drafts.find_node(draft, selected)
    nodes, edges = drafts.listed(draft)
    return await visit.render(
        "workflow_editor.html",
        about=about | {"description": editable(about["description"])},
        text=editable(text, BODY),
        nodes=nodes,
        edges=edges,
        graph=draw(graph) if graph is not None else None,
        fault=fault if draft["nodes"] else "",
        problem=problem,
        node=next((each for each in nodes if each["id"] == selected), None),
        fields=drafts.config_fields(node) if node is not None else [],
        kinds=drafts.KINDS,
        agents=(await visit.call("list_agents"))["agents"],
    )
