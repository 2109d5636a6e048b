"""Settings: how a project is worked on, and the server itself."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import NotFound, RookeryError
from rookery.domains.knowledge.people import vault_status
from rookery.domains.system.server_reading import show_server
from rookery.domains.tracker.project_reading import show_project_settings
from rookery.lifecycle.states import PHASES
from rookery.web.refused_form import RefusedForm, refused_form
from rookery.web.routing import Nav, action, page
from rookery.web.settings_view import gate_rows, project_arguments, vault_arguments
from rookery.web.visit import Visit

SECTIONS = {
    "work": "The pipeline",
    "gates": "The quality gates",
    "risk": "What is risky",
    "instructions": "What agents are told",
}


@page("/settings", nav=Nav("Settings", "Platform", 120, "settings"))
async def settings(visit: Visit) -> Response:
    """How the project is worked on."""
    return await _project(visit)


@page("/settings/server")
async def server(visit: Visit) -> Response:
    """Which server this is, and how it is set up."""
    return await visit.render("settings_server.html", tab="server", server=await visit.call(show_server))


@action("/settings/project/{section}")
async def configure(visit: Visit) -> Response:
    """Set one part of how the project is worked on."""
    section = visit.path["section"]
    if section not in SECTIONS:
        raise NotFound(f"there is no part {section} of a project's settings", hint="the page Settings has them all")
    current = (await visit.call(show_project_settings))["settings"]
    try:
        await visit.call("configure_project", project_arguments(section, visit, current))
    except RookeryError as error:
        return await _project(visit, refused_form(visit, section, error))
    return await visit.done(f"{SECTIONS[section]}: saved.", to=visit.url("/settings"))


@action("/settings/vault")
async def configure_vault(visit: Visit) -> Response:
    """Set which documents of the project agents can search."""
    current = await visit.call(vault_status)
    try:
        await visit.call("configure_vault", vault_arguments(visit, current))
    except RookeryError as error:
        return await _project(visit, refused_form(visit, "vault", error))
    return await visit.done("The vault: saved.", to=visit.url("/settings"))


async def _project(visit: Visit, refused: RefusedForm | None = None) -> Response:
    refused = refused or RefusedForm()
    found = await visit.call(show_project_settings)
    values: dict[str, Any] = {
        "tab": "project",
        "settings": found["settings"],
        "slug": found["project"],
        "vault": await visit.call(vault_status),
        "phases": PHASES,
        "gates": gate_rows(found["settings"]["gates"], refused),
        "may": await visit.may("configure_project"),
        "may_vault": await visit.may("configure_vault"),
        "refused": refused,
    }
    return await visit.render("settings_project.html", status=refused.status, **values)
