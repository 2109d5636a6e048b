"""Apprise behind the guard: where its process may connect, and what comes back. Without the extra, that it says so."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rookery.core.errors import ValidationFailed
from rookery.outgoing.services import check_service, is_installed, tell_service
from tests.outgoing.loopback import web_server

pytestmark = pytest.mark.anyio
SECRET = "s3cr3t"
needs_apprise = pytest.mark.skipif(not is_installed(), reason="the extra notify is not installed")

GUARDED = """
import json, os, socket, subprocess, sys
from rookery.outgoing.service_process import Guard
allow, host, port = json.loads(sys.argv[1])
guard = Guard(allow)
sys.addaudithook(guard)
def tried(what):
    try:
        what()
        return "done"
    except PermissionError:
        return "blocked"
    except OSError:
        return "failed"
print(json.dumps({
    "connect": tried(lambda: socket.create_connection((host, port), 5).close()),
    "by name": tried(lambda: socket.socket().connect(("localhost", port))),
    "datagram": tried(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", (host, port))),
    "local": tried(lambda: socket.socket(socket.AF_UNIX).connect("/nowhere")),
    "program": tried(lambda: subprocess.run(["true"])),
    "shell": tried(lambda: os.system("true")),
    "blocked": guard.blocked,
}))
"""


def tried(allow: list[str], host: str, port: int) -> dict[str, object]:
    """What a process with the guard can do, by trying it."""
    command = [sys.executable, "-W", "ignore", "-c", GUARDED, json.dumps([allow, host, port])]
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(source)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_the_process_connects_where_it_may_and_starts_nothing() -> None:
    async with web_server() as web:
        nothing = {"by name": "blocked", "local": "blocked", "program": "blocked", "shell": "blocked", "blocked": True}
        assert tried([], "127.0.0.1", web.port) == {**nothing, "connect": "blocked", "datagram": "blocked"}
        for allow in (["127.0.0.0/8"], [f"localhost:{web.port}"], ["localhost"]):
            assert tried(allow, "127.0.0.1", web.port) == {**nothing, "connect": "done", "datagram": "done"}
        assert tried(["localhost:1"], "127.0.0.1", web.port)["connect"] == "blocked"


@pytest.mark.skipif(is_installed(), reason="the extra notify is installed")
async def test_without_the_extra_it_says_what_is_missing() -> None:
    with pytest.raises(ValidationFailed, match="apprise is not installed"):
        await check_service([], "json://8.8.8.8")


FAKE = """
import sys, time

class Apprise:
    def add(self, url):
        self.url = url
        return True

    def notify(self, **told):
        import os
        print("chatter " * 100_000, flush=True)
        if "slow" in self.url:
            time.sleep(600)
        home = os.path.expanduser("~")
        return home == "/nonexistent" and os.environ["NETRC"] == os.devnull
"""


@pytest.fixture
def fake_apprise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that prints and takes its time."""
    (tmp_path / "apprise.py").write_text(FAKE)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("fake_apprise")
async def test_what_a_plugin_prints_is_no_answer_and_no_home_is_found() -> None:
    await tell_service([], "fake://x", title="t", body="b", level="info")


@pytest.mark.usefixtures("fake_apprise")
async def test_the_process_ends_also_if_whoever_started_it_was_killed() -> None:
    order = {"allow": [], "url": "slow://x", "check": False, "within_s": 1, "title": "", "body": "", "level": "info"}
    command = [sys.executable, "-P", "-m", "rookery.outgoing.service_process"]
    environment = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = await asyncio.to_thread(
        subprocess.run, command, input=json.dumps(order).encode(), capture_output=True, timeout=60, env=environment
    )
    assert (done.returncode, done.stdout) == (-signal.SIGALRM, b"")


@needs_apprise
async def test_a_service_is_told_where_the_guard_allows_it() -> None:
    async with web_server() as web:
        address = f"json://127.0.0.1:{web.port}/{SECRET}"
        await check_service([], address)
        with pytest.raises(ValidationFailed, match="this machine's own or a private network") as refusal:
            await tell_service([], address, title="News", body="it works", level="error")
        assert SECRET not in str(refusal.value)
        assert web.seen == []
        await tell_service(["127.0.0.1"], address, title="News", body="it works", level="error")
        (seen,) = web.seen
        assert json.loads(seen.body)["message"] == "it works"


@needs_apprise
@pytest.mark.parametrize("address", ["nonsense", f"pigeon://{SECRET}", "http://", ""])
async def test_an_address_that_apprise_does_not_know_is_refused(address: str) -> None:
    with pytest.raises(ValidationFailed, match="knows no service") as refusal:
        await check_service([], address)
    assert SECRET not in str(refusal.value)
