"""What people decide about the reputation of others."""

from typing import Annotated

from pydantic import AfterValidator, Field

from rookery.attest.card import card_address
from rookery.core.context import Context
from rookery.core.errors import NotFound
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.reputation.attesters import Attesters
from rookery.domains.reputation.inputs import address


class ForgetAttester(ToolInput):
    log: Annotated[str, AfterValidator(address)] = Field(description="The address of its log, its card or itself.")


class Forgotten(ToolOutput):
    log: str


def _card(address: str) -> str:
    try:
        return card_address(address)
    except ValueError:
        return address


@tool(
    title="Forget attester", effect="write", action="reputation:forget", tier="act", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def forget_attester(ctx: Context, args: ForgetAttester) -> Forgotten:
    """Accept that an agent elsewhere has a new key or a new log. What was remembered of it is lost: nothing protects
    from a replaced key until it was verified again."""
    if not Attesters(ctx.tx, ctx.actor.tenant).forget(args.log, _card(args.log)):
        raise NotFound("no such log was ever verified", hint="use log or card as verify_agent_reputation tells them")
    return Forgotten(log=args.log)
