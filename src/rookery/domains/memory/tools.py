"""Tools with which agents and people remember: each has memories of its own, which nobody else sees."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from rookery.core.context import Context
from rookery.core.errors import ConfigurationError, Conflict, RookeryError, ServiceUnavailable
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.memory.hygiene import refuse_secrets
from rookery.domains.memory.ledger import Entry, Ledger, LocalLedger
from rookery.domains.memory.recalls import recalls_of
from rookery.domains.memory.row_seal import RowSeal
from rookery.domains.memory.store import Found, Memories, NewMemory, owner_of
from rookery.sealing.key_table import current_version
from rookery.sealing.keyring import Keyring

Key = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
SHOWN_LETTERS = 2_000
"""Of a list of memories each is shown so far; by its key all of it."""
LEDGER_COPY = "memory-ledger"
NEEDS_KEY = "set ROOKERY_MNEMONIC or a key file, and start the server again"


class SaveMemory(ToolInput):
    key: Key = Field(description="Short name; an existing one is overwritten.")
    content: str = Field(min_length=1, max_length=20_000, description="What to remember.")
    ttl_days: int | None = Field(None, ge=1, le=3650, description="Forget it after so many days.")


class Saved(ToolOutput):
    key: str
    outcome: Literal["created", "updated", "merged"]


class RecallMemory(ToolInput):
    key: Key | None = Field(None, description="Exact key; wins over query.")
    query: str | None = Field(None, max_length=20_000, description="Words or their beginnings.")
    limit: int = Field(20, ge=1, le=50, description="At most.")


class Recalled(ToolOutput):
    memories: list[dict[str, Any]]


class ForgetMemory(ToolInput):
    key: Key = Field(description="Exact key.")
    archive: bool = Field(False, description="Keep it, found by key only.")


class Forgotten(ToolOutput):
    key: str
    outcome: Literal["forgotten", "archived"]


class PromoteMemory(ToolInput):
    key: Key = Field(description="Exact key.")


class Promoted(ToolOutput):
    key: str
    status: Literal["confirmed"]
    txid: str


def memories_of(ctx: Context, tx: Tx) -> Memories:
    """The memories of whoever calls."""
    facts = ctx.platform.facts
    seal = RowSeal(facts.get("keyring"), hide_keys=bool(facts.get("hide_keys")))
    return Memories(tx, owner_of(ctx.actor), seal)


@tool(
    title="Save memory", effect="write", action="memory:write", tier="act", group="Write", profiles="", default=True,
    bundles=("preset-researcher", "preset-memory-manager"), idempotent=True, outline=False,
)  # fmt: skip
def save_memory(ctx: Context, args: SaveMemory) -> Saved:
    """Remember something under a key, for you alone. Use it for what later sessions should know.
    Returns the key; what nearly repeats another memory updates that one (merged). Secrets are refused."""
    refuse_secrets(args.key, args.content)
    network = ctx.platform.facts.get("network", "local")
    if network != "local" and ctx.platform.facts.get("keyring") is None:
        raise ConfigurationError(
            f"on the network {network} memories are kept sealed, and no key is set", hint=NEEDS_KEY
        )
    new = NewMemory(key=args.key, content=args.content, ttl_days=args.ttl_days)
    outcome, key = memories_of(ctx, ctx.tx).save(new, ctx.actor)
    return Saved(key=key, outcome=outcome)


@tool(
    title="Recall memory", effect="read", action="memory:read", tier="observe", group="Read", profiles="", default=True,
    bundles=("preset-researcher", "preset-memory-manager"), outline=False,
)  # fmt: skip
def recall_memory(ctx: Context, args: RecallMemory) -> Recalled:
    """Recall your memories: by key, by words, or the newest. Use it before you start.
    Returns the best first; at most 50, long ones cut unless asked by key."""
    store = memories_of(ctx, ctx.tx)
    if args.key is not None:
        one = store.get(args.key)
        found = [] if one is None else [one]
    else:
        found = store.newest(args.limit) if args.query is None else store.search(args.query, args.limit)
    if args.key is not None or args.query is not None:
        recalls_of(ctx.platform).add([each.row.seq for each in found])
    return Recalled(memories=[shown(each, whole=args.key is not None) for each in found])


def shown(found: Found, *, whole: bool) -> dict[str, Any]:
    """A memory as a caller reads it; what goes without saying is left out."""
    row, content = found.row, found.content
    more: dict[str, Any] = {
        "cut": True if not whole and len(content) > SHOWN_LETTERS else None,
        "score": found.score,
        "txid": row.txid[-8:] if row.txid else None,
        "expires_ms": row.expires_ms,
        "archived": True if row.archived else None,
        "run": row.run_id,
        "issue": row.issue_id,
    }
    return {
        "key": found.key,
        "content": content if whole else content[:SHOWN_LETTERS],
        "updated_ms": row.updated_ms,
        "status": row.status,
        **{name: value for name, value in more.items() if value is not None},
    }


@tool(
    title="Forget memory", effect="write", action="memory:write", tier="act", group="Write", profiles="", default=True,
    bundles=("preset-memory-manager",), outline=False,
)  # fmt: skip
def forget_memory(ctx: Context, args: ForgetMemory) -> Forgotten:
    """Forget one of your memories, or archive it. Use it for what is no longer true.
    Returns what was done. What is forgotten cannot be brought back."""
    store = memories_of(ctx, ctx.tx)
    (store.archive if args.archive else store.forget)(args.key)
    return Forgotten(key=args.key, outcome="archived" if args.archive else "forgotten")


@tool(
    title="Promote memory", effect="external", action="memory:write", tier="act", group="Write", profiles="",
    default=True, bundles=("preset-memory-manager",), idempotent=True, open_world=False, outline=False,
)  # fmt: skip
async def promote_memory(ctx: Context, args: PromoteMemory) -> Promoted:
    """Write a sealed copy of a memory to the ledger, for good. Use it for what must not get lost.
    Returns the transaction. Needs the server's mnemonic or key file."""
    keyring: Keyring | None = ctx.platform.facts.get("keyring")
    if keyring is None:
        raise ConfigurationError("only sealed copies go to the ledger, and no key is set", hint=NEEDS_KEY)
    found, version = await ctx.write(lambda tx: _pending(memories_of(ctx, tx), args.key, keyring))
    if version is None:
        return Promoted(key=found.key, status="confirmed", txid=found.row.txid)
    ledger: Ledger = ctx.platform.facts.get("ledger") or LocalLedger(ctx.write)
    copy = keyring.seal(LEDGER_COPY, f"[MEMORY:{found.key}] {found.content}", found.row.id)
    owner = owner_of(ctx.actor)
    entry = Entry(tenant=owner.tenant, owner=owner.name, memory_id=found.row.id, key_version=version, payload=copy)
    try:
        txid = await ledger.put(entry)
    except RookeryError as error:
        await ctx.write(lambda tx: memories_of(ctx, tx).settle(found, "failed"))
        raise ServiceUnavailable(f"the ledger did not take it: {error.message}", hint="promote it again") from error
    if not await ctx.write(lambda tx: memories_of(ctx, tx).settle(found, "confirmed", txid)):
        raise Conflict(f"{found.key} was changed meanwhile", hint="promote it again")
    return Promoted(key=found.key, status="confirmed", txid=txid)


def _pending(store: Memories, key: str, keyring: Keyring) -> tuple[Found, int | None]:
    """The memory, marked as on its way, and the version of the key. None: this very text is in the ledger already."""
    found = store.find(key)
    if found.row.status == "confirmed":
        return found, None
    store.settle(found, "pending")
    return found, current_version(store.tx, keyring)
