"""What the pictures show: a fleet that has worked for two weeks, made by the calls that people and agents make.

The demo has played before: its project is `till`. A second project, `shop`, has what waits for a person.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from picture_shop import CHANGES, SENSITIVE, make_branch, make_shop

from rookery.app import Platform
from rookery.core.tool import Tool
from rookery.db.tx import Tx
from rookery.demo.repository import git
from rookery.domains.health.tables import health_snapshots
from rookery.domains.schedules.overview import run_schedule_now
from rookery.domains.tracker.worktree import Marker, write_marker
from rookery.identity.binding import Binding
from rookery.identity.store import now_ms
from rookery.lifecycle.run_store import NewRun, Runs, Usage
from rookery.lifecycle.suite_tables import test_health as suite_runs

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SHOP = "shop"
PATIENCE_S = 30.0
SPENT_USD = (2.1, 3.4, 1.2, 0.4, 4.8, 5.2, 3.9, 2.2, 0.9, 6.1, 4.4, 3.1, 5.6)
"""What the days before today have cost."""
ROLES = (("researcher", "research"), ("worker", "ready"), ("judge", "ready"))
ISSUES: tuple[tuple[str, str, int, tuple[str, ...]], ...] = (
    ("Log in with a passkey", "ready", 1, ("in_progress",)),
    ("The basket forgets its voucher", "ready", 1, ("in_progress",)),
    ("Show the price without tax to companies", "architecture", 2, ("in_progress", "blocked")),
    ("Search finds no plural", "research", 2, ()),
    ("Orders can be exported as CSV", "grooming", 3, ()),
    ("The newsletter has two unsubscribe links", "ready", 4, ("cancelled",)),
    ("Prices are shown in two currencies", "ready", 3, ("in_progress", "review", "done")),
)
CLAIMED = "Invoices name the wrong country"
PROPOSED = (("Pictures of products load late", 3), ("A customer can delete the account", 2))
"""What agents have noticed; it is in the backlog until a person wants it."""
LEARNINGS = (
    ("Amounts are whole cents everywhere; a float in a price is a bug even if the tests pass.", "convention"),
    (
        "The voucher service answers 200 with an error in the body; check `status` before anything else is read.",
        "gotcha",
    ),
    ("Templates of mails are rendered twice, so a placeholder in a customer's name is replaced as well.", "gotcha"),
    ("New endpoints get a rate limit in the same commit; the middleware refuses routes that have none.", "pattern"),
)
HEALTH: tuple[dict[str, int], ...] = (
    {"todos": 14, "test_failures": 9, "large_files": 4},
    {"todos": 12, "test_failures": 3, "large_files": 4},
    {"todos": 13, "test_failures": 0, "large_files": 3},
)
WORKFLOW: dict[str, Any] = {
    "name": "Release",
    "description": "Notes, a check by a person's agent, and an hour of looking on.",
    "nodes": [
        {"id": "start", "type": "start", "label": "Begin", "position": {"x": 0, "y": 80}},
        {"id": "split", "type": "parallel", "label": "At once", "position": {"x": 180, "y": 80}},
        {"id": "notes", "type": "transform", "label": "Notes", "config": {"template": "Release {{input.version}}"}},
        {"id": "look", "type": "delay", "label": "An hour", "config": {"delayMs": 3_600_000}},
        {"id": "both", "type": "join", "label": "Both", "position": {"x": 540, "y": 80}},
        {"id": "end", "type": "end", "label": "Done", "position": {"x": 720, "y": 80}},
    ],
    "edges": [
        {"id": "e1", "sourceNodeId": "start", "targetNodeId": "split"},
        {"id": "e2", "sourceNodeId": "split", "targetNodeId": "notes"},
        {"id": "e3", "sourceNodeId": "split", "targetNodeId": "look"},
        {"id": "e4", "sourceNodeId": "notes", "targetNodeId": "both"},
        {"id": "e5", "sourceNodeId": "look", "targetNodeId": "both"},
        {"id": "e6", "sourceNodeId": "both", "targetNodeId": "end"},
    ],
}


class Fleet:
    """Calls as the owner or as an agent. What is held or waits for an answer goes on until `close`."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self.platform = platform
        self.folder = folder
        self._held: list[asyncio.Task[Any]] = []

    async def call(self, tool: str | Tool, /, *, as_: Mapping[str, Any] | None = None, **arguments: Any) -> Any:
        """The structured answer."""
        bound = Binding(**{"source": "cli", "as_owner": True, **(as_ or {})})
        actor = (await self.platform.database.read(lambda tx: self.platform.resolver.resolve(tx, bound))).actor
        calls = self.platform.calls
        made = calls.call(actor, tool, arguments) if isinstance(tool, str) else calls.run(actor, tool, arguments)
        return (await made).structured

    def leave_waiting(self, tool: str, /, *, as_: Mapping[str, Any], **arguments: Any) -> None:
        """A call whose answer nobody gives."""
        self._held.append(asyncio.create_task(self.call(tool, as_=as_, **arguments)))

    async def asked(self, many: int) -> None:
        """Wait until so many asks are open."""
        async with asyncio.timeout(PATIENCE_S):
            while len((await self.call("list_asks"))["asks"]) < many:
                await asyncio.sleep(0.1)

    async def close(self) -> None:
        for task in self._held:
            task.cancel()
        await asyncio.gather(*self._held, return_exceptions=True)


def agent(name: str, **binding: Any) -> dict[str, Any]:
    return {"as_owner": False, "agent": name, "source": "stdio", **binding}


async def fill(fleet: Fleet, scripts: Path) -> None:
    """Everything, so that no page is empty."""
    owner = {"project": SHOP}
    await _people_and_agents(fleet)
    identifiers = await _shop(fleet, owner)
    await _past_runs(fleet, identifiers)
    await _reviews(fleet, identifiers)
    await _records(fleet, owner, identifiers)
    await _automation(fleet)
    await _at_work(fleet, scripts)
    await _asks(fleet, identifiers)


async def _past_runs(fleet: Fleet, identifiers: list[str]) -> None:
    """Runs of the days before, by the store itself with a clock of those days."""
    shown = await fleet.call("list_projects")
    project = next(each["id"] for each in shown["projects"] if each["slug"] == SHOP)
    agents = {each["name"]: each["id"] for each in (await fleet.call("list_agent_settings"))["agents"]}
    found = [await fleet.call("get_issue", as_={"project": SHOP}, issue_id=each) for each in identifiers]
    issues = [each["id"] for each in found]

    def write(tx: Tx) -> None:
        today = now_ms()
        for ago, usd in enumerate(reversed(SPENT_USD), start=1):
            begun = today - ago * DAY_MS
            for number, (role, phase) in enumerate(ROLES):
                new = NewRun(
                    project_id=project,
                    issue_id=issues[ago % len(issues)],
                    agent=agents[role],
                    profile=role,
                    phase=phase,
                    kind="orchestrator",
                )
                _run(tx, begun + number * 600_000, new, usd / 3, "failed" if ago % 5 == number + 1 else "succeeded")

    await fleet.platform.database.change(write)


def _run(tx: Tx, at_ms: int, new: NewRun, usd: float, outcome: Literal["succeeded", "failed"]) -> None:
    at: Callable[[], int] = lambda: at_ms  # noqa: E731
    run = Runs(tx, "default", now=at).start(new)
    tokens = round(usd * 60_000)
    used = Usage(cost_micros=round(usd * 1e6), input_tokens=tokens, output_tokens=tokens // 8, turns=14)
    Runs(tx, "default", now=at).spend(run.id, used)
    Runs(tx, "default", now=lambda: at_ms + 480_000).move(
        run.id, outcome, error="the tests failed twice" if outcome == "failed" else None
    )


async def _people_and_agents(fleet: Fleet) -> None:
    for name in ("ada", "grace", "linus"):
        await fleet.call("create_agent", name=name)
    await fleet.call("update_agent", agent="linus", mode="ask", trust=1)
    await fleet.call("update_agent", agent="ada", trust=3)
    await fleet.call("create_token", name="CI", agent="grace")
    for name, amount in (("ada", 500), ("grace", 250), ("worker", 900)):
        found = (await fleet.call("list_agent_settings"))["agents"]
        wallet = next(f"agent:{each['id']}" for each in found if each["name"] == name)
        await fleet.call("grant_credits", wallet_address=wallet, amount=amount, reference="monthly")


async def _shop(fleet: Fleet, owner: Mapping[str, Any]) -> list[str]:
    repository = fleet.folder / SHOP
    await asyncio.to_thread(make_shop, repository)
    await fleet.call("create_project", slug=SHOP, name="Shop", path=str(repository))
    gate = {"command": "./check", "label": "tests", "required": True}
    await fleet.call("configure_project", as_=owner, gates=[gate], sensitive_paths=SENSITIVE)
    made: list[str] = []
    for title, phase, priority, road in ISSUES:
        wish = _wish(title, priority, "web", f"phase:{phase}")
        issue = (await fleet.call("create_issue", as_=owner, **wish))["identifier"]
        for status in road:
            why = {"reason": "which countries have another rate?"} if status == "blocked" else {}
            await fleet.call("set_issue_status", as_=owner, issue_id=issue, status=status, **why)
        made.append(issue)
    worker = agent("worker", profile="worker", project=SHOP)
    claimed = (await fleet.call("create_issue", as_=owner, **_wish(CLAIMED, 2, "mails")))["identifier"]
    await fleet.call("claim_issue", as_=worker, issue_id=claimed, minutes=60)
    for title, priority in PROPOSED:
        await fleet.call("create_issue", as_=worker, **_wish(title, priority, "web"))
    return made


def _wish(title: str, priority: int, *labels: str) -> dict[str, Any]:
    text = f"**What**: {title.lower()}.\n\n- [ ] a test shows it\n- [ ] the documentation says it"
    return {"title": title, "description": text, "priority": priority, "labels": list(labels)}


async def _reviews(fleet: Fleet, identifiers: list[str]) -> None:
    """Two pull requests: one to be reviewed, one to be merged."""
    for identifier, change in zip(identifiers, CHANGES, strict=False):
        tree = fleet.folder / "trees" / identifier
        branch = f"rookery/{identifier.lower()}-{change.name}"
        await asyncio.to_thread(make_branch, fleet.folder / SHOP, tree, branch, change)
        write_marker(str(tree), Marker(identifier, branch=branch))
        worker = agent("worker", profile="worker", project=SHOP, issue=identifier, worktree=str(tree), cwd=str(tree))
        diff = await asyncio.to_thread(git, str(tree), "diff", "main...HEAD")
        gates = [{"command": "./check", "label": "tests", "exit_code": 0, "output": "Ran 6 tests\n\nOK"}]
        wish = {"diff": diff, "branch_name": branch, "base_branch": "main", "gate_results": gates}
        await fleet.call("create_pr", as_=worker, **wish)
    judge = agent("judge", profile="judge", project=SHOP, issue=identifiers[1])
    await fleet.call("approve_pr", as_=judge, reason="Small, tested, and does what the issue says.")


async def _records(fleet: Fleet, owner: Mapping[str, Any], identifiers: list[str]) -> None:
    issue = {"project": SHOP, "issue": identifiers[0]}
    for pattern, kind in LEARNINGS:
        await fleet.call("add_learning", as_=issue, pattern=pattern, learning_type=kind, applies_to=["shop/"])
    for number in range(4):
        health = {"test_count": 40 + 6 * number, "tests_added": 6, "execution_time_ms": 900 + 130 * number}
        await fleet.call("record_test_health", as_=issue, **health)
    await fleet.call("add_comment", as_=issue, content="The old browsers of the warehouse know no passkeys.")
    for counts in HEALTH:
        await fleet.call("record_health_snapshot", as_=owner, counts=counts)
    await fleet.platform.database.change(_over_weeks)
    for path, concept in (
        ("shop/login.py", "error_handling"),
        ("shop/basket.py", "error_handling"),
        ("shop/basket.py", "rounding"),
        ("till/money.py", "rounding"),
        ("till/bill.py", "rounding"),
        ("tests/test_basket.py", "flakiness"),
    ):
        await fleet.call("record_coverage", as_=owner, file_path=path, concept=concept, status="covered")
    await fleet.call("configure_vault", as_=owner, on=True)
    await fleet.call("vault_update", as_=owner, path="README.md")
    for key, content in (("style", "People here want short commits."), ("warehouse", "They close at four on Fridays.")):
        await fleet.call("save_memory", as_=agent("ada", project=SHOP), key=key, content=content)


def _over_weeks(tx: Tx) -> None:
    """What was recorded just now was recorded once a week, the last of it an hour ago."""
    for table, at in ((health_snapshots, "collected_ms"), (suite_runs, "at_ms")):
        rows = tx.all(sa.select(table.c.seq).order_by(table.c.seq.desc()))
        for weeks, row in enumerate(rows):
            ago_ms = weeks * 7 * DAY_MS + HOUR_MS
            tx.run(sa.update(table).where(table.c.seq == row.seq).values({at: table.c[at] - ago_ms}))


async def _automation(fleet: Fleet) -> None:
    looks = [{"type": "custom", "prompt": "Look through the open issues and say which of them are stale."}]
    plans = (("Nightly look", "0 3 * * *", "owner_approve"), ("Dependencies", "0 7 * * 1", "auto"))
    for name, cron, policy in plans:
        wish = {"name": name, "cron_expression": cron, "timezone": "Europe/Vienna", "schedule_actions": looks}
        made = await fleet.call("manage_schedule", action="create", agent_id="ada", approval_policy=policy, **wish)
        await fleet.call(run_schedule_now, schedule_id=made["schedules"][0]["id"])
    made = (await fleet.call("manage_workflow", action="create", agent_id="ada", **WORKFLOW))["workflows"][0]
    await fleet.call("manage_workflow", action="activate", workflow_id=made["id"])
    await fleet.call("manage_workflow", action="run", workflow_id=made["id"], input={"version": "1.4"})


async def _at_work(fleet: Fleet, scripts: Path) -> None:
    """An agent that researches an issue, and a session of a person, both for as long as the pictures take."""
    # From an agent, so that it waits in the backlog until there is a script.
    worker = agent("worker", profile="worker", project="till")
    issue = (await fleet.call("create_issue", as_=worker, title="Bills can be split by weight"))["identifier"]
    place = scripts / issue
    place.mkdir()
    (place / "researcher-research-1.yaml").write_text(
        "- call: {tool: get_issue}\n- spend: 0.04\n- wait: 900\n", encoding="utf-8"
    )
    await fleet.call("set_issue_status", as_={"project": "till"}, issue_id=issue, status="todo")
    script = "\n".join(
        (
            "!think The basket is kept in two places, and only one of them knows of vouchers.",
            '!call recall_memory {"query": "basket"}',
            "!say I look at where the basket is stored, and then at the voucher.",
            "!spend 0.12",
            "!wait 900",
        )
    )
    wish: dict[str, Any] = {
        "message": script,
        "agent": "grace",
        "project": SHOP,
        "title": "Why does the basket forget?",
    }
    await fleet.call("start_session", **wish)
    async with asyncio.timeout(PATIENCE_S):
        while len((await fleet.call("list_runs", status="running"))["runs"]) < 2:
            await asyncio.sleep(0.2)


async def _asks(fleet: Fleet, identifiers: list[str]) -> None:
    ada = agent("ada", project=SHOP, issue=identifiers[3])
    question = "Should the search treat “shirts” and “shirt” as the same word?"
    fleet.leave_waiting("ask_owner", as_=ada, question=question, options=["Yes, everywhere", "Only in titles", "No"])
    grace = agent("grace", project=SHOP)
    fleet.leave_waiting("ask_owner", as_=grace, question="Which of the two unsubscribe links may go?")
    fleet.leave_waiting("save_memory", as_=agent("linus", project=SHOP), key="deploy", content="Deploys on Tuesdays.")
    await fleet.asked(3)
