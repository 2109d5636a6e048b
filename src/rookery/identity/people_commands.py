"""With what an owner adds, changes and removes people.

Not in a module where tools are looked for: no agent ever has them, and no session pays for their listing. They are
called, decided and recorded like any other.
"""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from rookery.core.actor import Role
from rookery.core.context import Context
from rookery.core.moments import iso
from rookery.core.tool import NoInput, ToolInput, ToolOutput
from rookery.identity.owner_tool import owner_tool
from rookery.identity.people import People, Row
from rookery.identity.signing_in import live_sessions

NAME = r"^[^\W_][\w .'-]{0,63}$"
EMAIL = re.compile(r"[^\s@<>,;\"]{1,120}@[^\s@<>,;\"]{1,130}")
_ID = re.compile(r"per[-_][0-9a-z]{8,}", re.IGNORECASE)


def _name(text: str) -> str:
    name = " ".join(text.split())
    if _ID.fullmatch(name):
        raise ValueError("is the id of a person, not a name")
    return name


def _email(text: str) -> str:
    if text and (not EMAIL.fullmatch(text) or not text.isprintable()):
        raise ValueError("is no email address")
    return text.lower()


Name = Annotated[str, Field(pattern=NAME), AfterValidator(_name)]
Email = Annotated[str, AfterValidator(_email)]
Reference = Annotated[str, Field(min_length=1, max_length=100)]


class AddPerson(ToolInput):
    name: Name = Field(description="Unique without regard to case.")
    role: Role = Field(description="What they may do.")
    email: Email | None = Field(None, description="By which a single sign-on knows them.")


class ChangePerson(ToolInput):
    person: Reference = Field(description="Name or id.")
    name: Name | None = Field(None, description="New.")
    role: Role | None = Field(None, description="Counts at once.")
    email: Email | None = Field(None, description="'' for none.")


class PersonReference(ToolInput):
    person: Reference = Field(description="Name or id.")


class Person(ToolOutput):
    id: str
    name: str
    role: str
    email: str | None
    created_at: str | None
    browsers: int
    seen_at: str | None


class PeopleList(ToolOutput):
    people: list[Person]


@owner_tool(title="List people", effect="read")
def list_people(ctx: Context, args: NoInput) -> PeopleList:
    """List the people with their roles, and where they are signed in."""
    return PeopleList(people=_shown(ctx, People(ctx.tx, ctx.actor.tenant).all()))


@owner_tool(title="Add person", effect="write")
def add_person(ctx: Context, args: AddPerson) -> Person:
    """Add a person with a role. They sign in with a link that is made for them, or by single sign-on."""
    row = People(ctx.tx, ctx.actor.tenant).add(args.name, args.role, args.email or None)
    ctx.publish("PeopleChanged", subject=row.id)
    return _shown(ctx, [row])[0]


@owner_tool(title="Change person", effect="write")
def change_person(ctx: Context, args: ChangePerson) -> Person:
    """Change a person's name, role or email; absent values stay. A role counts at once. The last owner stays one."""
    values = args.model_dump(exclude={"person"}, exclude_none=True)
    if "email" in values:
        values["email"] = values["email"] or None
    row = People(ctx.tx, ctx.actor.tenant).change(args.person, values)
    ctx.publish("ScopeChanged", subject=row.id)
    ctx.publish("PeopleChanged", subject=row.id)
    return _shown(ctx, [row])[0]


@owner_tool(title="Remove person", effect="write", destructive=True)
def remove_person(ctx: Context, args: PersonReference) -> Person:
    """Remove a person for good: they are signed out everywhere, and their tokens end. Never the last owner."""
    people = People(ctx.tx, ctx.actor.tenant)
    shown = _shown(ctx, [people.find(args.person)])[0]
    people.remove(shown.id)
    ctx.publish("ScopeChanged", subject=shown.id)
    ctx.publish("PeopleChanged", subject=shown.id)
    return shown


def _shown(ctx: Context, rows: Sequence[Row]) -> list[Person]:
    signed_in = live_sessions(ctx.tx, ctx.actor.tenant)
    seen = {row.id: [each.seen_ms for each in signed_in if each.person == row.id] for row in rows}
    return [
        Person(
            id=row.id,
            name=row.name,
            role=row.role,
            email=row.email,
            created_at=iso(row.created_ms),
            browsers=len(seen[row.id]),
            seen_at=iso(max(seen[row.id], default=None)),
        )
        for row in rows
    ]
