"""People: who may do what, how somebody is let in, and which browsers are signed in."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import RookeryError
from rookery.identity.browser_commands import list_browsers, make_sign_in_link
from rookery.identity.people_commands import add_person, change_person, list_people, remove_person
from rookery.web.refused_form import RefusedForm, refused_form
from rookery.web.routing import action, page
from rookery.web.visit import Visit

ROLES = {
    "owner": "Does everything: answers what agents ask, approves, sets up projects and agents, and gives rights.",
    "operator": "Steers the work: sessions, pauses, issues and merges. Gives no approvals, and changes no rights.",
    "viewer": "Sees everything and changes nothing.",
}


@page("/people")
async def people(visit: Visit) -> Response:
    """Everybody with their roles, and the browsers that are signed in."""
    return await _shown(visit)


@action("/people/add")
async def add(visit: Visit) -> Response:
    """Add a person."""
    given = {name: visit.word(name) for name in ("name", "role")}
    if visit.word("email"):
        given["email"] = visit.word("email")
    try:
        added = await visit.call(add_person, given)
    except RookeryError as error:
        return await _shown(visit, refused_form(visit, "add", error))
    words = f"{added['name']} is added. Make a sign-in link for them, to be handed over."
    return await visit.done(words, to=visit.url("/people"))


@action("/people/change")
async def change(visit: Visit) -> Response:
    """Change a person's name, role or email."""
    person = visit.word("person")
    given = {name: visit.word(name) for name in ("name", "role", "email") if name in visit.form}
    try:
        changed = await visit.call(change_person, {"person": person, **given})
    except RookeryError as error:
        return await _shown(visit, refused_form(visit, f"change-{person}", error))
    return await visit.done(f"{changed['name']} is changed.", to=visit.url("/people"))


@action("/people/remove")
async def remove(visit: Visit) -> Response:
    """Remove a person."""
    gone = await visit.call(remove_person, {"person": visit.word("person")})
    return await visit.done(f"{gone['name']} is removed and signed out everywhere.", to=visit.url("/people"))


@action("/people/link")
async def link(visit: Visit) -> Response:
    """Make a sign-in link, and show it this once."""
    person = visit.word("person")
    made = await visit.call(make_sign_in_link, {"person": person} if person else {})
    base = visit.platform.settings.public_url or str(visit.request.base_url)
    return await _shown(visit, link={**made, "address": base.rstrip("/") + made["path"]})


async def _shown(visit: Visit, refused: RefusedForm | None = None, **values: Any) -> Response:
    refused = refused or RefusedForm()
    shown: dict[str, Any] = {
        "people": (await visit.call(list_people))["people"],
        "browsers": (await visit.call(list_browsers))["browsers"],
        "roles": ROLES,
        "me": visit.signed_in.person,
        "owner": await visit.may(add_person),
        "refused": refused,
        "link": None,
        "sso": bool(visit.platform.settings.oidc_issuer),
    }
    return await visit.render("people.html", status=refused.status, **(shown | values))
