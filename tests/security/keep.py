"""A platform in which something waits for its owner, and everybody who is not the owner."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.store import Asks, NewAsk
from rookery.asks.tables import approvals, asks
from rookery.core.actor import Actor
from rookery.core.errors import ApprovalRequired, RookeryError
from rookery.core.tool import PROFILES, Tool
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.owner.notify_tables import SHARED, notification_channels
from rookery.domains.schedules.planning import plan
from rookery.domains.schedules.tables import executions, schedules
from rookery.identity.access import AccessStore
from rookery.identity.binding import TokenIdentity
from rookery.identity.store import IdentityStore
from rookery.identity.tables import agents, bundle_uses, bundles, grants, people, profiles, projects, tokens
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet
from tests.security import probes

RIGHTS = (people, agents, profiles, bundles, bundle_uses, grants, tokens, projects)
CALL_S = 5.0
EVERYTHING = ["*", "tool:*"]
EXTRA: dict[str, ModuleType] = {"probes": probes}


class Keep:
    """What waits: `question`, `execution` with its ask `schedule`, and `approval`, an ask with a `ticket`."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.platform = fleet.platform
        self.question = self.schedule = self.execution = self.approval = self.ticket = ""

    async def fill(self) -> "Keep":
        """Let everything begin to wait that can wait for an owner."""
        default = self.fleet.actor().agent
        assert default is not None
        new = NewAsk(kind="question", agent_id=default, question="Which colour?", options=["red", "green"])
        self.question = self.change(lambda tx: Asks(tx, "default").open(new))[0].id
        for name in ("bob", "careful"):
            await self.fleet.call(self.fleet.owner, "create_agent", name=name)
        await self.fleet.call(self.fleet.owner, "update_agent", agent="careful", mode="ask")
        self.execution = (await self.due([{"type": "codebase_review"}])).id
        self.schedule = self.rows(sa.select(asks).where(asks.c.subject == self.execution))[0].id
        with pytest.raises(ApprovalRequired) as required:
            await self.fleet.call(self.fleet.actor(agent="careful"), "save_memory", key="k", content="careful")
        ticket = required.value.approval or {}
        self.approval, self.ticket = ticket["ask_id"], ticket["approval_token"]
        assert all((self.question, self.schedule, self.execution, self.approval, self.ticket))
        return self

    async def due(self, actions: list[dict[str, Any]]) -> Any:
        """The execution of a schedule of the default agent that is due now, after a worker was at it."""
        made = await self.fleet.call(
            self.fleet.actor(), "manage_schedule", action="create", name="mine", cron_expression="0 0 29 2 *",
            schedule_actions=actions,
        )  # fmt: skip
        schedule_id = made.schedules[0]["id"]

        def now(tx: Tx) -> None:
            row = tx.one(sa.select(schedules).where(schedules.c.id == schedule_id))
            assert row is not None
            plan(tx, row, now_ms(tx))

        self.change(now)
        await self.work()
        (row,) = self.rows(sa.select(executions).where(executions.c.schedule_id == schedule_id))
        return row

    async def work(self) -> None:
        """Let a worker do everything that is due."""
        async with running_worker(self.platform):
            await settled(self.platform)

    def rows(self, statement: sa.Executable) -> Sequence[Any]:
        return self.platform.database.direct(lambda tx: tx.all(statement))

    def change(self, work: Callable[[Tx], Any]) -> Any:
        return self.platform.database.direct(work, write=True)

    def rights(self) -> dict[str, Any]:
        """Who may do what, and how what waits stands: nobody but the owner may change any of it."""
        found: dict[str, Any] = {
            table.name: sorted(map(str, self.rows(sa.select(table).where(table.c.tenant == "default"))))
            for table in RIGHTS
        }
        waiting = (self.question, self.schedule, self.approval)
        kept = (
            sa.select(asks.c.id, asks.c.status, asks.c.answer, asks.c.later_ms)
            .where(asks.c.id.in_(waiting))
            .order_by(asks.c.id)
        )
        found["waiting"] = [tuple(row) for row in self.rows(kept)]
        found["answered"] = self.rows(sa.select(asks.c.id).where(asks.c.status == "answered"))
        found["used"] = self.rows(sa.select(approvals.c.ask_id).where(approvals.c.used_ms.is_not(None)))
        found["decided"] = self.rows(sa.select(executions.c.id).where(executions.c.decided_by.is_not(None)))
        found["execution"] = self.rows(sa.select(executions.c.status).where(executions.c.id == self.execution))
        shared = sa.select(notification_channels.c.id).where(notification_channels.c.agent_id == SHARED)
        found["channels"] = self.rows(shared)
        return found

    def attacks(self) -> list[tuple[str, dict[str, Any]]]:
        """Calls that would answer, approve, deny or give rights, if they were let."""
        answers = [
            ("answer_ask", {"ask_id": ask_id, "answer": said, "similar": similar})
            for ask_id in (self.question, self.schedule, self.approval, self.question[:8])
            for said, similar in (("1", False), ("approve", True), ("deny", False), ("later", False))
        ]
        decisions = [
            ("manage_schedule", {"action": action, "execution_id": execution_id})
            for action in ("approve", "deny")
            for execution_id in (self.execution, self.execution[:8], self.schedule)
        ]
        ticket = {"key": "k", "content": "careful", "approval_token": self.ticket}
        taking = [
            (tool, {"id": row.id})
            for tool, table in (("revoke_grant", grants), ("revoke_token", tokens))
            for row in self.rows(sa.select(table.c.id).order_by(table.c.id).limit(2))
        ]
        return [*answers, *decisions, ("save_memory", ticket), *taking, *GIVING]

    def blind(self, tool: Tool) -> list[dict[str, Any]]:
        """Arguments that any tool might take for what it needs, and some that it must not take."""
        schema = tool.input.model_json_schema()
        fields = schema.get("properties", {})
        needed = {name: self._filled(name, fields[name]) for name in schema.get("required", [])}
        ids = {name: self._filled(name, fields[name]) for name in fields if name.endswith("_id")}
        actions = [{"action": value} for value in fields.get("action", {}).get("enum", []) if value != "delete"]
        return [needed | ids, *({**needed, **ids, **each} for each in [*actions, *SMUGGLED])]

    def _filled(self, name: str, schema: Mapping[str, Any]) -> Any:
        if "enum" in schema:
            return schema["enum"][0]
        kinds = [schema, *schema.get("anyOf", ())]
        kind = next((each["type"] for each in kinds if each.get("type", "null") != "null"), "string")
        text = {"execution_id": self.execution, "agent_id": "bob"}.get(name, self.question)
        shapes: dict[str, Any] = {"integer": 1, "number": 1.0, "boolean": True, "array": [text], "object": {"a": text}}
        return shapes.get(kind, text)

    async def tried(self, actor: Actor, tool: str, arguments: dict[str, Any], within_s: float = CALL_S) -> None:
        """Call it, whatever comes of it."""
        with contextlib.suppress(RookeryError, TimeoutError):
            async with asyncio.timeout(within_s):
                await self.platform.calls.call(actor, tool, arguments)

    def actors(self) -> dict[str, Actor]:
        """Everybody who is not the owner, or not there."""
        self.change(self._people_and_tokens)
        bound: dict[str, dict[str, Any]] = {
            "the default agent": {},
            "another agent": {"agent": "bob"},
            "an agent that has to ask": {"agent": "careful"},
            "an agent with every grant": {"agent": "mighty"},
            "an agent as the web": {"agent": "mighty", "source": "web"},
            "an agent in a schedule": {"agent": "mighty", "scheduler": True},
            "an agent of an agent": {"agent": "mighty", "source": "agent", "depth": 2},
            "a token with every scope": {"token": self.secrets["agent"]},
            "an outsider with every scope": {"identity": outsider("stranger")},
            "an outsider who claims to be the owner": {"identity": outsider(self.fleet.owner.subject)},
            "an operator": {"token": self.secrets["operator"]},
            "a viewer": {"token": self.secrets["viewer"]},
            "the owner's token in a schedule": {"token": self.secrets["owner"], "scheduler": True},
            "the owner in a schedule": {"as_owner": True, "scheduler": True},
            **{f"the profile {name}": {"agent": "mighty", "profile": name} for name in PROFILES.values()},
        }
        return {name: self.fleet.actor(**binding) for name, binding in bound.items()}

    def _people_and_tokens(self, tx: Tx) -> None:
        store, access = IdentityStore(tx, "default"), AccessStore(tx, "default")
        self.secrets: dict[str, str] = {}
        every = sorted(tool.name for tool in self.platform.registry)
        mighty = store.create_agent("mighty", None)
        for name in every:
            access.grant(mighty.id, name, "for a test", "test", None, without_approval=True)
        access.save_bundle("everything", every, "", "")
        access.use_bundle(access.bundle_id("everything"), mighty.id, "agent")
        for role in ("operator", "viewer"):
            row = {"id": f"per-{role}", "tenant": "default", "name": role, "role": role, "created_ms": 1}
            tx.run(sa.insert(people).values(row))
            self.secrets[role] = access.create_token(role, f"per-{role}", "person", EVERYTHING, "test", None)[1]
        owner = store.owner().id
        self.secrets["owner"] = access.create_token("owner", owner, "person", EVERYTHING, "test", None)[1]
        self.secrets["agent"] = access.create_token("agent", mighty.id, "agent", EVERYTHING, "test", None)[1]


def outsider(subject: str) -> TokenIdentity:
    return TokenIdentity(
        tenant="default",
        client="elsewhere",
        subject=subject,
        scopes=frozenset(EVERYTHING),
        expires_ms=time.time_ns() // 1_000_000 + 3_600_000,
    )


GIVING: list[tuple[str, dict[str, Any]]] = [
    ("grant_tool", {"agent": "bob", "tool": "grant_credits"}),
    ("grant_tool", {"agent": "bob", "tool": "vault_delete", "without_approval": True}),
    ("update_agent", {"agent": "careful", "mode": "autonomy"}),
    ("update_agent", {"agent": "bob", "permissions": ["grant_credits", "answer_ask"]}),
    ("update_agent", {"agent": "bob", "trust": 4}),
    ("create_agent", {"name": "puppet"}),
    ("create_token", {"name": "mine"}),
    ("create_token", {"name": "mine", "agent": "bob", "scopes": ["*"]}),
    ("save_bundle", {"name": "mine", "tools": ["grant_tool"]}),
    ("assign_bundle", {"bundle": "everything", "agent": "bob"}),
    ("set_profile_tools", {"profile": "judge", "allowed": None, "disallowed": None}),
    ("set_profile_tools", {"profile": "worker", "allowed": ["answer_ask"]}),
    ("set_project_members", {"project": "default", "agents": ["bob"]}),
    ("create_project", {"slug": "mine"}),
    ("configure_notifications", {"action": "set", "channel_type": "webhook", "config": {"url": "https://1.1.1.1/x"}}),
    ("delete_bundle", {"bundle": "everything"}),
]
"""What would make somebody mightier, or weaken whoever is."""
SMUGGLED: list[dict[str, Any]] = [
    {"as_owner": True, "role": "owner"},
    {"actor": {"kind": "human", "role": "owner"}, "_meta": {"as_owner": True}},
    {"approval_token": "", "approved": True, "answered_by": "owner"},
]
