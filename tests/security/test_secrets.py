"""No secret is in a log, a result, a record or an error: neither the platform's own, nor what is said to tools."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.around.logs import JsonFormatter
from rookery.asks.store import Asks, NewAsk
from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.db.server_keys import server_keys
from rookery.domains.workflows.hooks import hook_secret
from tests.cli.terminal import Terminal
from tests.domains.owner.telling import HERE
from tests.outgoing.loopback import Web as Channel
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet
from tests.security.keep import EXTRA, Keep, outsider
from tests.security.test_only_the_owner import WAITS
from tests.server.streamable.web import serving

CANARY = "canary-7f3a9c"
PASSWORD, MODEL_KEY, CONFIG = "pw-51c0ffee", "sk-model-0ddba11", "cfg-5eedbed5"
WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"
RECORDS = ("audit_log", "jobs")
"""What must not repeat what was said to a tool. The domains' own rows are what it was said for, and the events of a
session are what was said in it."""


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[StringIO]:
    """Everything that is logged, as the product writes it, of every library and level."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    caplog.set_level(logging.DEBUG)
    # The client of the test itself tells where it goes; the product uses none that does.
    caplog.set_level(logging.WARNING, logger="httpx2")
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)


@pytest.fixture
async def keep(prepared_database_url: str, make_fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch) -> Keep:
    """One with keys of every kind around it."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN"):
        monkeypatch.setenv(name, MODEL_KEY)
    url = sa.make_url(prepared_database_url)
    if url.get_backend_name() == "postgresql":
        url = url.set(password=PASSWORD)
    fleet = make_fleet(
        url.render_as_string(hide_password=False), extra=EXTRA, runtime="scripted", approval_hold_s=0, mnemonic=WORDS,
        outgoing_allow=HERE, public_url="https://rookery.example",
    )  # fmt: skip
    return await Keep(fleet).fill()


def records(keep: Keep) -> dict[str, str]:
    """Every row of every table, as text, by table."""

    def dumped(tx: Any) -> dict[str, str]:
        names = sa.inspect(tx.connection).get_table_names()
        return {
            name: "\n".join(str(tuple(row)) for row in tx.all(sa.text(f'SELECT * FROM "{name}"'))) for name in names
        }

    return keep.platform.database.direct(dumped)


def spoken(tool: Any) -> list[dict[str, Any]]:
    """Arguments in which every text is the canary: all of them, and those that are needed."""
    schema = tool.input.model_json_schema()
    fields = schema.get("properties", {})

    def value(about: dict[str, Any]) -> Any:
        if "enum" in about:
            return about["enum"][-1]
        kinds = {each.get("type") for each in (about, *about.get("anyOf", ()))}
        shapes = {"integer": 1, "number": 1.0, "boolean": True, "array": [CANARY], "object": {CANARY: CANARY}}
        return CANARY if "string" in kinds else next((shapes[kind] for kind in kinds if kind in shapes), CANARY)

    whole = {name: value(about) for name, about in fields.items()}
    needed = {name: whole[name] for name in schema.get("required", ())}
    return [whole, needed, {**needed, CANARY: CANARY}]


async def test_what_is_said_to_tools_is_in_no_log_and_no_record(keep: Keep, logged: StringIO) -> None:
    actors = keep.actors()
    for actor in (actors["an agent with every grant"], actors["an agent that has to ask"], keep.fleet.owner):
        for tool in list(keep.platform.registry):
            # The probes call tools by names that are told, and which tool was called is on record.
            if tool.name not in WAITS and tool.domain not in EXTRA:
                for arguments in spoken(tool):
                    await keep.tried(actor, tool.name, arguments)
    ada = keep.fleet.actor()
    for number, message in enumerate(
        (f"!say {CANARY}", f"!fail {CANARY}", f'!call ping {{"x": "{CANARY}"}}', f"[WORK] {CANARY}")
    ):
        # Each in other words, or they would be taken for the same.
        said = {"to_agent": "bob", "message": f"{message}\n!say {number}", "wait": False}
        await keep.tried(ada, "send_message", said)
    await keep.tried(ada, "ask_owner", {"question": CANARY, "context": CANARY}, within_s=0.5)
    await keep.due([{"type": "custom", "prompt": f"!fail {CANARY}"}])
    assert CANARY not in logged.getvalue()
    kept = records(keep)
    assert kept.keys() >= set(RECORDS)
    repeating = [(name, row) for name in RECORDS for row in kept[name].split("\n") if CANARY in row]
    assert repeating == []
    assert CANARY in "".join(kept.values())


async def told(keep: Keep, actor: Actor) -> str:
    """Everything that reading tools show to a caller, and what they are refused with."""
    said: list[str] = []
    for tool in list(keep.platform.registry):
        if tool.effect != "read" and tool.name not in ("configure_notifications", "manage_schedule", "manage_workflow"):
            continue
        variants = keep.blind(tool) if tool.effect == "read" else []
        for arguments in ({}, {"action": "list"}, {"limit": 50}, *variants):
            try:
                result = await keep.platform.calls.call(actor, tool.name, arguments)
            except RookeryError as error:
                said.append(json.dumps(error.as_dict(), default=str))
            else:
                said += [result.text, json.dumps(result.structured, default=str)]
    return "\n".join(said)


async def _link(keep: Keep, channel: Channel) -> str:
    """The token of the link with which a question went out to the owner's channel."""
    config = {"url": f"{channel.url}/{CONFIG}?k={CONFIG}", "secret": CONFIG}
    await keep.fleet.call(
        keep.fleet.owner, "configure_notifications", action="set", channel_type="webhook", config=config
    )
    new = NewAsk(kind="question", agent_id=keep.fleet.actor().agent or "", question="Shall we?", options=["yes", "no"])
    keep.change(lambda tx: Asks(tx, "default").open(new))
    await keep.work()
    found = re.findall(r"/hooks/asks/[0-9a-f]+/([A-Za-z0-9_-]+)", "".join(map(str, channel.seen)))
    assert found
    return found[-1]


async def _everything(keep: Keep, channel: Channel) -> dict[str, str]:
    """The secrets that there are by now, each of which was used."""
    actors = keep.actors()
    secrets = {f"token of {name}": secret for name, secret in keep.secrets.items()}
    secrets |= {"ticket": keep.ticket, "config": CONFIG, "model key": MODEL_KEY, "password": PASSWORD, "words": WORDS}
    secrets["link"] = await _link(keep, channel)
    secrets["hook"] = keep.change(lambda tx: hook_secret(tx, "run", "node"))
    made = await keep.fleet.call(keep.fleet.owner, "create_token", name="fresh", agent="bob")
    secrets["fresh token"] = made.secret
    ask_id = re.findall(r"/hooks/asks/([0-9a-f]+)/", "".join(map(str, channel.seen)))[-1]
    async with serving(keep.fleet) as web:
        path = f"/hooks/asks/{ask_id}/{secrets['link']}"
        assert (await web.http.get(path)).status_code == 200
        assert (await web.http.post(path, data={"choice": "1"})).status_code == 200
        assert (await web.http.get(path)).status_code == 410
        hook = {"authorization": f"Bearer {secrets['hook']}"}
        await web.http.post("/hooks/workflows/run/node", json={}, headers=hook)
        session = await web.initialize(secrets["fresh token"])
        await web.call(session, "ping", secrets["fresh token"])
        await web.call(session, "ping", "rk_" + "x" * 43)
    ticket = {"key": "k", "content": "careful", "approval_token": keep.ticket}
    await keep.tried(actors["an agent that has to ask"], "save_memory", ticket)
    await keep.tried(actors["another agent"], "save_memory", ticket)
    return secrets


@pytest.mark.parametrize("status", [200, 500])
async def test_no_secret_of_the_platform_is_told(keep: Keep, logged: StringIO, status: int) -> None:
    async with web_server() as channel:
        channel.says(f"/{CONFIG}", status, CONFIG.encode())
        secrets = await _everything(keep, channel)
        await keep.fleet.call(keep.fleet.actor(), "notify_owner", message="it is done")
        await keep.work()
    keys = keep.rows(sa.select(server_keys.c.name, server_keys.c.secret))
    secrets |= {f"server key {row.name}": row.secret for row in keys}
    kept = records(keep)
    kept.pop("server_keys")
    everything = "\n".join(kept.values())
    assert {name for name, secret in secrets.items() if secret in logged.getvalue()} == set()
    assert {name for name, secret in secrets.items() if secret in everything} == set()
    actors = {"the owner": keep.fleet.owner, "an agent": keep.fleet.actor(agent="mighty")}
    actors["an outsider"] = keep.fleet.actor(identity=outsider("stranger"))
    for who, actor in actors.items():
        said = await told(keep, actor)
        assert {name for name, secret in secrets.items() if secret in said} == set(), who


def test_the_password_of_the_database_is_in_no_error(tmp_path: Path) -> None:
    database = f"postgresql://ada:{PASSWORD}@127.0.0.1:1/none"
    terminal = Terminal(tmp_path, ROOKERY_DATABASE=database)
    said = [result.output for result in (terminal.run("doctor"), terminal.run("migrate"))]
    loud = Terminal(tmp_path, ROOKERY_DATABASE=database, ROOKERY_LOG_LEVEL="debug")
    for done in (loud.process("asks"), loud.process("stdio")):
        assert done.returncode != 0
        said.append(done.stdout + done.stderr)
    assert all(said)
    assert PASSWORD not in "".join(said)
