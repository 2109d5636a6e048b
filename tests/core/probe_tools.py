"""Tools that show what a handler is given, and tools that fail in every way a handler can."""

import sys
from typing import Literal

from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.identity.store import IdentityStore

How = Literal[
    "value_error", "stop_iteration", "recursion", "exit", "assertion", "memory", "wrong_type", "unserializable"
]


class Fail(ToolInput):
    how: How = Field(description="Which way to fail.")


class Nothing(ToolOutput):
    pass


class Bound(ToolOutput):
    tenant: str
    agent: str | None
    project: str | None
    issue: str | None
    session: str | None


class Unserializable(Nothing):
    @property
    def as_text(self) -> str:
        raise ValueError("this text cannot be made")


def fail(how: How) -> Nothing:
    """Fail as asked. What a caller must not read is in the message."""
    if how == "wrong_type":
        return Bound(tenant="secret", agent=None, project=None, issue=None, session=None)  # pyright: ignore[reportReturnType]
    if how == "unserializable":
        return Unserializable()
    if how == "recursion":
        return fail(how)
    if how == "exit":
        sys.exit("secret")
    if how == "stop_iteration":
        next(iter(()))
    errors = {"value_error": ValueError, "assertion": AssertionError, "memory": MemoryError}
    raise errors[how]("secret")


@tool(
    title="Fail inline", effect="read", action="probe:use", tier="observe", group="System", profiles="",
    default=True, inline=True,
)  # fmt: skip
def fail_inline(ctx: Context, args: Fail) -> Nothing:
    """Fail on the event loop. Use it in tests. Returns never. Does nothing else."""
    return fail(args.how)


@tool(
    title="Fail reading", effect="read", action="probe:use", tier="observe", group="System", profiles="", default=True
)  # fmt: skip
def fail_reading(ctx: Context, args: Fail) -> Nothing:
    """Fail in a reading thread. Use it in tests. Returns never. Does nothing else."""
    return fail(args.how)


@tool(
    title="Fail writing", effect="write", action="probe:use", tier="act", group="System", profiles="", default=True
)  # fmt: skip
def fail_writing(ctx: Context, args: Fail) -> Nothing:
    """Write an agent and then fail. Use it in tests. Returns never. Leaves nothing behind."""
    IdentityStore(ctx.tx, ctx.actor.tenant).create_agent("half-done", None)
    return fail(args.how)


@tool(
    title="Fail outside", effect="external", action="probe:use", tier="act", group="System", profiles="", default=True
)  # fmt: skip
async def fail_outside(ctx: Context, args: Fail) -> Nothing:
    """Fail outside of any transaction. Use it in tests. Returns never. Does nothing else."""
    return fail(args.how)


@tool(
    title="Show binding", effect="read", action="probe:use", tier="observe", group="System", profiles="WJ",
    default=True, inline=True, binds="issue",
)  # fmt: skip
def show_binding(ctx: Context, args: NoInput) -> Bound:
    """Say what the session is bound to. Use it in tests. Returns the binding. Takes no arguments."""
    actor = ctx.actor
    return Bound(
        tenant=actor.tenant, agent=actor.agent, project=actor.project, issue=actor.issue, session=actor.session
    )


@tool(
    title="Pay out", effect="read", action="credits:write", tier="act", group="System", profiles="",
    default=True, inline=True, scopes=("owner:notify",),
)  # fmt: skip
def pay_out(ctx: Context, args: NoInput) -> Nothing:
    """Need two scopes at once. Use it in tests. Returns nothing. Does nothing else."""
    return Nothing()


@tool(
    title="Reset server", effect="read", action="system:write", tier="act", group="System", profiles="",
    default=True, inline=True, scopes=("admin",),
)  # fmt: skip
def reset_server(ctx: Context, args: NoInput) -> Nothing:
    """Need the scope admin. Use it in tests. Returns nothing. Does nothing else."""
    return Nothing()


class Pass(ToolInput):
    name: str = Field(description="Tool to call inside.")


@tool(
    title="Pass on", effect="write", action="probe:use", tier="act", group="System", profiles="", default=True
)  # fmt: skip
def pass_on(ctx: Context, args: Pass) -> Nothing:
    """Call another tool inside the transaction. Use it in tests. Returns nothing. Has the caller's rights only."""
    ctx.call_here(args.name, {"name": "made-inside"})
    return Nothing()


@tool(
    title="Send mail", effect="read", action="probe:use", tier="act", group="System", profiles="", default=True,
    inline=True, needs="mail",
)  # fmt: skip
def send_mail(ctx: Context, args: NoInput) -> Nothing:
    """Need a setting. Use it in tests. Returns nothing. Stays listed without it unless the installation hides it."""
    return Nothing()
