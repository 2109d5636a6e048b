"""Tools that move credits, and clients that use them at random. For tests of many clients at once."""

import asyncio
import random
from collections.abc import Callable

from pydantic import Field

from rookery.app import Platform
from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.identity.resolve import Binding
from rookery.ledger.store import Ledger

WALLETS = ("agent:agt-1", "agent:agt-2", "shared")
Say = Callable[[str], None]


class UseTill(ToolInput):
    verb: str = Field(description="What to do.")
    wallet: str = Field(description="Whose.")
    amount: int = Field(description="How much.")
    key: str = Field(description="Once.")


class SettleHold(ToolInput):
    hold: str = Field(description="The reservation.")
    spent: int = Field(description="How much of it.")


class Made(ToolOutput):
    id: str


@tool(title="Use till", effect="write", action="till:use", tier="act", group="Write", profiles="", default=True)
def use_till(ctx: Context, args: UseTill) -> Made:
    """Move credits. Use it in tests. Returns the transaction. Only for tests."""
    ledger = Ledger(ctx.tx, ctx.actor.tenant)
    if args.verb == "grant":
        return Made(id=ledger.grant(args.wallet, args.amount, "r", args.key).id)
    if args.verb == "refund":
        return Made(id=ledger.refund(args.wallet, args.amount, "r", args.key).id)
    if args.verb == "reserve":
        return Made(id=ledger.reserve(args.wallet, args.amount, "r", args.key).id)
    return Made(id=ledger.deduct(args.wallet, "deduction", args.amount, "r", args.key).id)


@tool(title="Settle hold", effect="write", action="till:use", tier="act", group="Write", profiles="", default=True)
def settle_hold(ctx: Context, args: SettleHold) -> Made:
    """End a reservation. Use it in tests. Returns the transaction. Only for tests."""
    return Made(id=Ledger(ctx.tx, ctx.actor.tenant).settle(args.hold, args.spent).id)


class Client:
    """Grants, spends, holds and settles, by the dice, on few wallets. `say` hears each key that was answered."""

    def __init__(self, platform: Platform, name: str, say: Say) -> None:
        self._platform = platform
        self._name = name
        self._dice = random.Random(name)
        self._say = say
        self._actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding())).actor

    async def run(self, changes: int | None = None) -> None:
        """So many changes, or changes until the process is killed."""
        number = 0
        while changes is None or number < changes:
            number += 1
            await self._one(f"{self._name}-{number}")

    async def _one(self, key: str) -> None:
        dice = self._dice
        verb = dice.choices(("grant", "deduct", "reserve", "refund"), (3, 5, 3, 1))[0]
        wanted = {"verb": verb, "wallet": dice.choice(WALLETS), "amount": dice.randint(1, 40), "key": key}
        # One in five is asked for twice at once, as by a client that does not know whether it was heard.
        again = 2 if dice.random() < 0.2 else 1
        made = await asyncio.gather(*(self._call("use_till", **wanted) for _ in range(again)))
        ids = {each for each in made if each}
        assert len(ids) <= 1, ids
        if not ids:
            return
        held = ids.pop()
        self._say(key)
        if verb == "reserve" and dice.random() < 0.8:
            spent = dice.randint(0, wanted["amount"])
            if await self._call("settle_hold", hold=held, spent=spent):
                self._say(f"end:{held}")

    async def _call(self, name: str, **arguments: object) -> str | None:
        """The id of the transaction, or None if there was not enough for it."""
        try:
            result = await self._platform.calls.call(self._actor, name, arguments)
        except Conflict as error:
            if "key" in error.message:
                raise
            return None
        assert isinstance(result.value, Made)
        return result.value.id


async def use(platform: Platform, clients: int, name: str, say: Say, changes: int | None = None) -> None:
    """So many clients at once."""
    await asyncio.gather(*(Client(platform, f"{name}-{at}", say).run(changes) for at in range(clients)))
