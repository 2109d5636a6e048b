"""`rookery stdio --attach` as a client starts it, through the relay and in direct mode."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.app import make_platform
from rookery.identity.resolve import Binding
from rookery.identity.sightings import agent_sightings
from rookery.identity.store import IdentityStore
from rookery.relay import SESSION_KEY
from rookery.sessions.store import NewSession, SessionRows
from rookery.settings import load_settings
from tests.server.conftest import Place
from tests.server.processes import error_code

TOLD = "rookery stdio: "


class Sessions:
    """The sessions of a home, reached through its database beside the server that runs there."""

    def __init__(self, home: Path) -> None:
        self._platform = make_platform(load_settings(str(home), plugins=False))

    def open(self, tenant: str = "default", **binding: Any) -> tuple[str, str]:
        """A new session, by its id and its key."""

        def work(tx: Any) -> tuple[str, str]:
            IdentityStore(tx, tenant).set_up()
            actor = self._platform.resolver.resolve(tx, Binding(tenant=tenant, **binding)).actor
            new = NewSession(actor=actor, runtime="command", mode="autonomy", opened_by="me", cwd="/srv/nest")
            row = SessionRows(tx, tenant).create(new)
            SessionRows(tx, tenant).began(row, "run-0")
            return row.id, SessionRows(tx, tenant).new_pass(row.id)

        return self._platform.database.direct(work, write=True)

    def end(self, session_id: str) -> None:
        self._platform.database.direct(lambda tx: SessionRows(tx, "default").end(session_id), write=True)

    def seen(self) -> int:
        """How many agents have come to a door."""
        counted = sa.select(sa.func.count()).select_from(agent_sightings)
        return self._platform.database.direct(lambda tx: tx.scalar(counted))

    def close(self) -> None:
        self._platform.close()


@pytest.fixture(scope="module")
def sessions(shared: Place) -> Iterator[Sessions]:
    sessions = Sessions(shared.home)
    yield sessions
    sessions.close()


@pytest.fixture
def with_key(shared: Place) -> Iterator[Any]:
    """Puts a key into the environment of the clients that the test starts."""

    def put(key: str) -> None:
        shared.env[SESSION_KEY] = key

    yield put
    shared.env.pop(SESSION_KEY, None)


def refused(place: Place, *flags: str, direct: bool = False) -> str:
    code, answers, stderr = place.client(*flags, direct=direct).end()
    assert (code, answers) == (2, [])
    [sentence] = stderr.splitlines()
    assert sentence.startswith(TOLD)
    return sentence


def test_a_wrong_key_is_refused_with_one_sentence(shared: Place, with_key: Any, direct: bool) -> None:
    with_key("not-the-key-of-anything")
    said = refused(shared, "--attach", direct=direct)
    assert "the key belongs to no session" in said
    assert "not-the-key" not in said


def test_an_ended_session_is_refused(shared: Place, sessions: Sessions, with_key: Any, direct: bool) -> None:
    session_id, key = sessions.open()
    with_key(key)
    client = shared.session("--attach", direct=direct)
    assert client.call("ping")["status"] == "pong"
    sessions.end(session_id)
    assert error_code(client.call("ping")) == "UNAUTHORIZED"
    assert "has ended" in refused(shared, "--attach", direct=direct)


def test_without_a_key_it_does_not_start(shared: Place, direct: bool) -> None:
    assert SESSION_KEY in refused(shared, "--attach", direct=direct)


@pytest.mark.parametrize(
    "flags", [("--agent", "default"), ("--as-owner",), ("--project-id", "default"), ("--session-id", "x")]
)
def test_nothing_about_the_session_can_be_said_beside_it(
    shared: Place, sessions: Sessions, with_key: Any, flags: tuple[str, ...]
) -> None:
    with_key(sessions.open()[1])
    assert f"{flags[0]} cannot be beside --attach" in refused(shared, "--attach", *flags)


def test_a_key_on_the_command_line_is_refused(shared: Place, sessions: Sessions) -> None:
    _, key = sessions.open()
    assert "--attach takes no value" in refused(shared, f"--attach={key}")
    # It may begin with a dash, as flags do.
    assert "unknown " in refused(shared, "--attach", key)


def test_the_calls_are_those_of_the_session(shared: Place, sessions: Sessions, with_key: Any, direct: bool) -> None:
    _, key = sessions.open(within=frozenset({"ping", "locate_client"}))
    with_key(key)
    client = shared.session("--attach", direct=direct)
    assert client.tool_names() == {"ping", "locate_client"}
    assert client.call("locate_client") == {"cwd": "/srv/nest", "worktree": None}
    assert error_code(client.call("save_note", text="x")) == "PERMISSION_DENIED"


def test_a_session_of_another_tenant_stays_in_it(
    shared: Place, sessions: Sessions, with_key: Any, direct: bool
) -> None:
    ours = shared.session(direct=direct).call("list_agents")["agents"]
    with_key(sessions.open(tenant="other")[1])
    theirs = shared.session("--attach", direct=direct).call("list_agents")["agents"]
    assert {agent["id"] for agent in ours} & {agent["id"] for agent in theirs} == set()
    assert [agent["name"] for agent in theirs] == ["default"]


def test_an_agent_that_the_platform_runs_is_not_noted_as_a_client_that_came(place: Place, direct: bool) -> None:
    place.server()
    sessions = Sessions(place.home)
    place.env[SESSION_KEY] = sessions.open()[1]
    attached = place.session("--attach", direct=direct)
    assert attached.call("ping")["status"] == "pong"
    assert (attached.end()[0], sessions.seen()) == (0, 0)
    client = place.session(direct=direct)
    assert client.call("save_note", text="here") == {"done": "here"}
    assert (client.end()[0], sessions.seen()) == (0, 1)
    sessions.close()


def test_the_key_stands_in_no_log_and_no_command_line(shared: Place, sessions: Sessions, with_key: Any) -> None:
    _, key = sessions.open()
    with_key(key)
    client = shared.session("--attach")
    assert client.call("ping")["status"] == "pong"
    assert key.encode() not in Path(f"/proc/{client.process.pid}/cmdline").read_bytes()
    assert all(key not in process.errors for process in (*shared.servers, *shared.clients))


def test_a_session_goes_on_after_the_server_was_started_again(place: Place) -> None:
    place.server()
    sessions = Sessions(place.home)
    _, place.env[SESSION_KEY] = sessions.open(within=frozenset({"ping"}))
    sessions.close()
    client = place.session("--attach")
    place.servers[-1].stop()
    place.server()
    assert client.call("ping")["status"] == "pong"
    assert client.tool_names() == {"ping"}
