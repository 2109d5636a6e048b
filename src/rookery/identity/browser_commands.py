"""With what people sign in to the console and out of it, and see where they are signed in.

Not in a module where tools are looked for: no agent ever has them, and no session pays for their listing. They are
called, decided and recorded like any other.
"""

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from rookery.core.context import Context
from rookery.core.errors import NotFound, PermissionDenied, Unauthorized
from rookery.core.moments import iso
from rookery.core.tool import NoInput, Tool, ToolInput, ToolOutput, tool
from rookery.identity.owner_tool import owner_tool
from rookery.identity.people import People, Row
from rookery.identity.signing_in import end_sessions, live_sessions, make_link, open_session, use_link

Reference = Annotated[str, Field(min_length=1, max_length=100)]


class MakeSignInLink(ToolInput):
    person: Reference | None = Field(None, description="Whom it signs in; absent: you.")


class OpenBrowser(ToolInput):
    secrets = frozenset({"link"})

    link: str = Field(min_length=1, max_length=200, description="The link's token.")
    device: str = Field("", max_length=2000, description="What the browser calls itself.")
    instead_of: str | None = Field(None, max_length=100, description="The session that the browser had before.")


class EndBrowser(ToolInput):
    id: Reference | None = Field(None, description="This one.")
    person: Reference | None = Field(None, description="All of this person; absent: yours.")
    others: bool = Field(False, description="All but the one that asks.")

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.id is not None and (self.person is not None or self.others):
            raise ValueError("give the id of one browser, or whose browsers are meant")
        return self


class Browser(ToolOutput):
    id: str
    person: str
    device: str
    created_at: str | None
    seen_at: str | None
    expires_at: str | None
    this: bool


class Browsers(ToolOutput):
    browsers: list[Browser]


class SignInLink(ToolOutput):
    person: str
    path: str
    expires_at: str | None


class OpenedBrowser(ToolOutput):
    person: str
    secret: str


class Ended(ToolOutput):
    ended: int


def _own_tool(title: str) -> Callable[[Callable[..., Any]], Tool]:
    """Declare a tool with which everybody sees to their own signing in."""
    return tool(
        title=title, effect="write", action="identity:sign_in", tier="act", group="System", profiles="", default=False,
        principals="everyone", interactive=True,
    )  # fmt: skip


@owner_tool(title="List browsers", effect="read")
def list_browsers(ctx: Context, args: NoInput) -> Browsers:
    """List the browsers that are signed in to the console: for an owner everybody's, for others their own."""
    actor = ctx.actor
    rows = live_sessions(ctx.tx, actor.tenant, None if actor.role == "owner" else actor.subject)
    names = {row.id: row.name for row in People(ctx.tx, actor.tenant).all()}
    return Browsers(browsers=[_browser(row, names[row.person], actor.session) for row in rows])


@_own_tool("Make sign-in link")
def make_sign_in_link(ctx: Context, args: MakeSignInLink) -> SignInLink:
    """Make a link that signs a browser in, once, within a quarter of an hour: an owner for anybody, others for
    themselves."""
    actor = ctx.actor
    if actor.scopes is not None:
        # Whoever is signed in has every right of their role; a token may carry fewer.
        raise PermissionDenied("a token signs nobody in", hint="use rookery login, or the console", layer="scopes")
    person = _whom(ctx, args.person)
    token, until = make_link(ctx.tx, actor.tenant, person.id)
    return SignInLink(person=person.name, path=f"/sign-in/{token}", expires_at=iso(until))


@_own_tool("Open browser")
def open_browser(ctx: Context, args: OpenBrowser) -> OpenedBrowser:
    """Sign a browser in with a link of the person who acts, and sign out whoever was signed in there."""
    actor = ctx.actor
    if use_link(ctx.tx, args.link) != (actor.tenant, actor.subject):
        raise Unauthorized("this link was used already, or is too old", hint="rookery login prints another")
    if args.instead_of is not None:
        end_sessions(ctx.tx, actor.tenant, session=args.instead_of)
    ctx.publish("PeopleChanged", subject=actor.subject)
    secret = open_session(ctx.tx, actor.tenant, actor.subject, args.device)
    return OpenedBrowser(person=People(ctx.tx, actor.tenant).find(actor.subject).name, secret=secret)


@_own_tool("End browser")
def end_browser(ctx: Context, args: EndBrowser) -> Ended:
    """Sign browsers out: one, or all of a person. An owner anybody's, others their own."""
    actor = ctx.actor
    if args.id is not None:
        mine = live_sessions(ctx.tx, actor.tenant, None if actor.role == "owner" else actor.subject)
        if args.id not in {row.id for row in mine}:
            raise NotFound(f"there is no browser {args.id} signed in", hint="list_browsers shows them")
        ended = end_sessions(ctx.tx, actor.tenant, session=args.id)
    else:
        but = (actor.session or "") if args.others else ""
        ended = end_sessions(ctx.tx, actor.tenant, person=_whom(ctx, args.person).id, but=but)
    ctx.publish("PeopleChanged", subject=actor.subject)
    return Ended(ended=ended)


def _whom(ctx: Context, wanted: str | None) -> Row:
    """The person who is meant. Others than an owner can mean nobody but themselves."""
    people, actor = People(ctx.tx, ctx.actor.tenant), ctx.actor
    person = people.find(actor.subject if wanted is None else wanted)
    if person.id != actor.subject and actor.role != "owner":
        raise PermissionDenied("only an owner does that for others", hint="ask an owner", layer="principal")
    return person


def _browser(row: Row, person: str, this: str | None) -> Browser:
    return Browser(
        id=row.id,
        person=person,
        device=row.device,
        created_at=iso(row.created_ms),
        seen_at=iso(row.seen_ms),
        expires_at=iso(row.expires_ms),
        this=row.id == this,
    )
