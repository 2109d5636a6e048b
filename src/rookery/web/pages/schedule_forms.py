"""Making and changing a schedule by a form that says in words what it means, before anything is saved."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import RookeryError
from rookery.domains.schedules.action import MAX_ACTIONS
from rookery.domains.schedules.overview import preview_schedule, show_schedule
from rookery.web import schedule_form as forms
from rookery.web.editing import editable
from rookery.web.routing import action, page
from rookery.web.visit import Visit

TOOL = "manage_schedule"
HOME = "/automation"
Json = dict[str, Any]


@page(HOME + "/schedules/new")
async def new_schedule(visit: Visit) -> Response:
    """An empty form."""
    return await _shown(visit, "", forms.empty_form())


@page(HOME + "/schedules/{id}/edit")
async def edit_schedule(visit: Visit) -> Response:
    """A schedule as it is, to be changed."""
    found = (await visit.call(show_schedule, {"schedule_id": visit.path["id"]}))["schedule"]
    return await _shown(visit, found["id"], forms.form_of(found))


@action(HOME + "/schedules/form")
async def change_form(visit: Visit) -> Response:
    """Another action, other fields, another preview; or the end of it, when it is saved."""
    await visit.require(TOOL)
    form, known, problem = forms.sent_form(visit), visit.word("id"), ""
    verb, _, about = visit.word("do").partition(":")
    if verb == "add_action" and len(form["actions"]) < MAX_ACTIONS:
        form["actions"].append({"type": "custom"})
    elif verb == "remove_action" and len(form["actions"]) > 1 and about.isdecimal():
        form["actions"] = [each for place, each in enumerate(form["actions"]) if place != int(about)]
    elif verb == "save":
        try:
            return await _saved(visit, known, form)
        except RookeryError as error:
            problem = ". ".join(part for part in (error.message, error.hint) if part)
    return await _shown(visit, known, form, problem)


async def _saved(visit: Visit, known: str, form: Json) -> Response:
    given = forms.arguments_of(form)
    if known:
        done = await visit.call(TOOL, {"action": "update", "schedule_id": known, **given})
    else:
        whose = {"agent_id": form["agent"]} if form["agent"] else {}
        done = await visit.call(TOOL, {"action": "create", **given, **whose})
    return await visit.done("Saved.", to=visit.url(f"{HOME}/schedules/{done['schedules'][0]['id']}"))


async def _shown(visit: Visit, known: str, form: Json, problem: str = "") -> Response:
    preview: Json = {"words": "", "fires": [], "timezone": ""}
    wrong = ""
    try:
        preview = await visit.call(preview_schedule, forms.timing_of(form))
    except RookeryError as error:
        wrong = ". ".join(part for part in (error.message, error.hint) if part)
    projects = await _projects(visit)
    return await visit.render(
        "schedule_form.html",
        known=known,
        form=form | {"description": editable(form["description"])},
        preview=preview,
        wrong=wrong,
        problem=problem,
        actions=[(each["type"], forms.fields_of(each, projects)) for each in form["actions"]],
        types=forms.TYPES,
        policies=forms.POLICIES,
        missed=forms.MISSED,
        zones=forms.zones(),
        agents=(await visit.call("list_agents"))["agents"],
        most_actions=MAX_ACTIONS,
    )


async def _projects(visit: Visit) -> list[Json]:
    """Those that the person may see."""
    closed = (await visit.actor()).closed
    return [each for each in (await visit.call("list_projects"))["projects"] if each["id"] not in closed]
