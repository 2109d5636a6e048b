"""`rookery verify-attestation`: in a process of its own, without a server or a database."""

import asyncio
import json
from pathlib import Path

import pytest

from rookery.attest.verify import verify_log
from rookery.cli import attestations
from tests.attest.notary import AGENT, Notary, changed, forged, score
from tests.cli.terminal import Terminal
from tests.outgoing.loopback import web_server
from tests.server.streamable.web import serving


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def log(notary: Notary, tmp_path: Path) -> Path:
    file = tmp_path / "log.json"
    file.write_bytes(notary.attest(51, 52, 53))
    return file


def test_what_does_not_hold_is_told_with_exit_code_1(terminal: Terminal, log: Path) -> None:
    whole = log.read_bytes()
    log.write_bytes(changed(whole, lambda content: content["attestations"].pop()))
    assert terminal.fails("verify-attestation", str(log)) == (
        "It does not hold (cut): the log was cut: it had 3 entries, and 2 are left.\n"
    )
    log.write_bytes(whole[:-1])
    assert "does not hold (changed)" in terminal.fails("verify-attestation", str(log))
    log.write_bytes(whole)
    assert "(key_replaced)" in terminal.fails("verify-attestation", str(log), "--key", "0" * 64)
    assert "(cut)" in terminal.fails("verify-attestation", str(log), "--head", f"4:{'0' * 64}")
    told = terminal.run("verify-attestation", str(log), "--head", f"3:{'0' * 64}", "--json")
    assert (told.exit_code, json.loads(told.stdout)["fault"]) == (1, "chain")


def test_what_is_no_file_or_no_head_is_refused(terminal: Terminal, log: Path, tmp_path: Path) -> None:
    assert "No such file" in terminal.fails("verify-attestation", str(tmp_path / "nothing.json"))
    assert "is no head" in terminal.fails("verify-attestation", str(log), "--head", "3")
    assert "directory" in terminal.fails("verify-attestation", str(tmp_path))
    assert not terminal.database.exists()


def test_a_log_writes_nothing_of_its_own_to_the_terminal(terminal: Terminal, log: Path, notary: Notary) -> None:
    escape = "\x1b[2K\rThe log holds"
    for agent, more in ((escape, {}), (AGENT, {"computedAt": escape}), (AGENT, {"trustLevel": escape})):
        log.write_bytes(forged({**score(51), "computedAt": "2026-11-16T10:00:00Z", **more}, agent=agent))
        assert "\x1b" not in terminal.fails("verify-attestation", str(log))
    spoilt = changed(notary.attest(54), lambda content: content["head"]["signatures"][0].update(keyid=escape))
    log.write_bytes(spoilt)
    assert "\x1b" not in terminal.fails("verify-attestation", str(log))


def test_what_has_no_end_is_not_read_to_its_end(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attestations, "MAX_BYTES", 1000)
    assert "more than 1000 bytes" in terminal.fails("verify-attestation", "/dev/zero")


def test_a_good_log_is_verified_in_another_process(terminal: Terminal, log: Path) -> None:
    found = verify_log(log.read_bytes())
    assert found.head is not None
    head = f"3:{found.head.hash}"
    done = terminal.process("verify-attestation", str(log), "--key", found.keyid, "--head", head)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"The log of {AGENT} holds: 3 attestations, level medium."
    assert lines[1:3] == [f"key:  {found.keyid}", f"head: {head}"]
    assert [line.split()[1] for line in lines[3:]] == ["53/100", "52/100", "51/100"]
    told = terminal.json("verify-attestation", str(log), "--json")
    assert (told["verified"], told["head"], len(told["attestations"])) == (True, head, 3)
    assert not terminal.database.exists()


async def test_it_is_fetched_from_where_the_server_has_it(notary: Notary, terminal: Terminal) -> None:
    notary.attest(51, 52)
    async with serving(notary.fleet) as web:
        for address in (f"attestations/{AGENT}", f"attestations/{AGENT}/log.json"):
            url = f"http://127.0.0.1:{web.port}/{address}"
            done = await asyncio.to_thread(terminal.process, "verify-attestation", url, "--json")
            assert (done.returncode, json.loads(done.stdout)["count"]) == (0, 2)
        gone = f"http://127.0.0.1:{web.port}/attestations/agt_nobody"
        done = await asyncio.to_thread(terminal.process, "verify-attestation", gone)
        assert (done.returncode, done.stdout) == (1, "")
        assert "answered with 404" in done.stderr


async def test_an_address_that_sends_elsewhere_on_this_machine_is_not_followed(terminal: Terminal) -> None:
    async with web_server() as first, web_server() as second:
        first.says("/log.json", 302, location=f"{second.url}/log.json")
        done = await asyncio.to_thread(terminal.process, "verify-attestation", f"{first.url}/log.json")
        assert done.returncode == 1
        assert "private network" in done.stderr
        assert second.seen == []
