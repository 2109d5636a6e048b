"""A visit: one request of a person who is signed in. Every answer comes from tools that are called as that person."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.errors import PermissionDenied
from rookery.core.tool import Tool
from rookery.identity.binding import Binding
from rookery.identity.signing_in import SignedIn
from rookery.identity.store import IdentityStore
from rookery.web.readings import Readings
from rookery.web.rendering import rendered
from rookery.web.routing import menu
from rookery.web.signed_in import Cookies, form_token
from rookery.web.waiting import waiting_for

if TYPE_CHECKING:
    from rookery.app import Platform

Values = dict[str, Any]


class Visit:
    """What a handler is given: who is there, which project they look at, and the way to every tool."""

    def __init__(
        self,
        platform: "Platform",
        cookies: Cookies,
        readings: Readings,
        request: Request,
        signed_in: SignedIn,
        token: str,
    ) -> None:
        self.platform = platform
        self._readings = readings
        self.request = request
        self.signed_in = signed_in
        self.csrf = form_token(token)
        self.form: FormData = FormData()
        """What a form has sent; empty for a page."""
        self._cookies = cookies
        self._token = token
        self._actors: dict[tuple[str | None, str | None], Actor] = {}

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    @property
    def path(self) -> Mapping[str, str]:
        return {name: str(value) for name, value in self.request.path_params.items()}

    @property
    def wants_part(self) -> str:
        """The block that htmx asks for; empty for a whole page."""
        return self.query.get("part", "") if self.is_htmx else ""

    @property
    def is_htmx(self) -> bool:
        return self.request.headers.get("hx-request") == "true"

    @property
    def project(self) -> str | None:
        """The slug of the project that the page is about; None for the default one."""
        return self.query.get("project") or None

    def word(self, name: str, default: str = "") -> str:
        """A text of the form, without spaces around it."""
        value = self.form.get(name)
        return value.strip() if isinstance(value, str) else default

    def words(self, name: str) -> list[str]:
        """All texts of the form under this name."""
        return [value for value in self.form.getlist(name) if isinstance(value, str)]

    async def actor(self, *, issue: str | None = None, project: str | None = None) -> Actor:
        """The person, bound to the project of the page or another one, or to an issue and its project."""
        wanted = None if issue is not None and project is None else project or self.project
        if (issue, wanted) not in self._actors:
            binding = Binding(
                tenant=self.signed_in.tenant,
                person=self.signed_in.person,
                project=wanted,
                issue=issue,
                session=self.signed_in.id,
                source="web",
            )
            resolver = self.platform.resolver
            found = await self.platform.database.read(lambda tx: resolver.resolve(tx, binding))
            self._actors[issue, wanted] = found.actor
        return self._actors[issue, wanted]

    async def call(
        self, tool: str | Tool, arguments: Values | None = None, *, issue: str | None = None, project: str | None = None
    ) -> Values:
        """The structured answer of a tool, by its name or, if it is in no list, itself. Raises what it refuses."""
        actor = await self.actor(issue=issue, project=project)
        found, given = tool if isinstance(tool, Tool) else self.platform.registry.require(tool), arguments or {}
        seen = found.effect == "read" and self._readings.seen(self.signed_in.id, actor, found, given)
        return (await self.platform.calls.run(actor, found, given, seen=seen)).structured

    async def read(self, uri: str) -> str:
        """The text of a resource."""
        parts = await self.platform.calls.read(await self.actor(), uri)
        text = parts[0].text
        return text if isinstance(text, str) else text.decode(errors="replace")

    async def may(self, tool: str | Tool, *, issue: str | None = None) -> bool:
        """Whether the person could call a tool now: what they may not do is not offered."""
        found = tool if isinstance(tool, Tool) else self.platform.registry.require(tool)
        return decide(await self.actor(issue=issue), found).listed

    async def require(self, tool: str | Tool, *, issue: str | None = None) -> None:
        """Refused unless the person could call this tool now: for forms that call it only at their end."""
        if not await self.may(tool, issue=issue):
            raise PermissionDenied("this is not yours to change", hint="an owner can give you another role")

    def url(self, path: str, **query: str | int | None) -> str:
        """An address of the console in the same project. What is None or empty is left out."""
        named = {name: value for name, value in {"project": self.project, **query}.items() if value not in (None, "")}
        return f"{path}?{urlencode(named)}" if named else path

    async def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page, or the block of it that htmx asks for with `?part=`."""
        if self.wants_part:
            return HTMLResponse(
                rendered(template, {**self._usual(await self.actor()), **values}, self.wants_part), status
            )
        page = {**self._usual(await self.actor()), **await self._around(), **values}
        response = HTMLResponse(rendered(template, page), status)
        if self._cookies.notice in self.request.cookies:
            self._cookies.drop(response, self._cookies.notice)
        return response

    async def done(self, notice: str, to: str, *, refresh: str = "") -> Response:
        """After a change: back to a page that says so. For htmx: only the words, and the live parts in `refresh`
        (topics, with spaces between) are fetched again."""
        if self.is_htmx and refresh:
            heard: Values = {"notice": notice, **dict.fromkeys(refresh.split(), True)}
            return Response(status_code=204, headers={"HX-Trigger": json.dumps(heard)})
        response = Response(status_code=204, headers={"HX-Redirect": to}) if self.is_htmx else RedirectResponse(to, 303)
        self._cookies.set(response, self._cookies.notice, quote(notice[:500]), lasts_s=60)
        return response

    def sign_out(self, response: Response) -> Response:
        """Let the browser forget its session."""
        self._cookies.drop(response, self._cookies.session)
        return response

    def _usual(self, actor: Actor) -> Values:
        """What every template may use."""
        return {
            "visit": self,
            "csrf": self.csrf,
            "url": self.url,
            "project": actor.project_slug,
            "role": actor.role,
        }

    async def _around(self) -> Values:
        """What stands around every whole page: menu, projects, what waits, and the last notice."""
        tenant = self.signed_in.tenant
        around = await self.platform.database.read(lambda tx: _surroundings(IdentityStore(tx, tenant), self.signed_in))
        return {
            **around,
            "menu": menu(),
            "here": self.request.url.path,
            "waiting": await waiting_for(self),
            "notice": self.request.cookies.get(self._cookies.notice, ""),
        }


def _surroundings(store: IdentityStore, signed_in: SignedIn) -> Values:
    projects = [(row.slug, row.name) for row in store.projects()]
    return {"projects": projects, "person": store.person(signed_in.person).name}
