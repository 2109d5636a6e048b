"""The public conformance suite against `rookery up --auth none`, with fixtures that only these tests load.

One test is one run of the suite, so that parallel processes start no run twice.
"""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.running import Home
from tests.conformance.suite import CURRENT, FORMER, Report, required, run_suite

PLUGIN = Path(__file__).with_name("plugin")
# Not scored, and yet we hold to them; the rest of what is not scored is about tasks, which we do not offer.
BEYOND = {
    "2025-11-25": {"server-session-lifecycle", "json-schema-2020-12", "server-sse-polling"},
    "2026-07-28": {"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"},
}


@pytest.fixture
def home() -> Iterator[Home]:
    """A home in which the fixtures can be loaded."""
    made = Home(PLUGIN)
    yield made
    made.close()


@pytest.fixture
def bare_home() -> Iterator[Home]:
    """A home as everybody has it."""
    made = Home()
    yield made
    made.close()


def conformance(home: Home, answers: str, name: str, *options: str) -> Report:
    home.env["ROOKERY_HTTP_ANSWERS"] = answers
    return run_suite(name, home.up("--auth", "none", "--port", "0"), home.folder, *options)


@pytest.mark.parametrize("answers", ["auto", "sse"])
@pytest.mark.parametrize(("revision", "count"), [("2025-11-25", 30), ("2026-07-28", 37)])
def test_every_scenario_that_a_revision_requires_passes(home: Home, revision: str, count: int, answers: str) -> None:
    report = conformance(home, answers, CURRENT, "--requirements", revision)
    wanted = required(revision)
    failed = {*wanted, *BEYOND[revision]} - report.passed()
    assert not failed, report.complaints(failed)
    assert (len(wanted), report.code) == (count, 0), report.output


@pytest.mark.parametrize("answers", ["auto", "sse"])
def test_every_check_of_the_former_suite_passes(home: Home, answers: str) -> None:
    report = conformance(home, answers, FORMER)
    passed = [check for check in report.checks if check.status == "SUCCESS"]
    # Where an answer needs no stream there is none, and the suite has one thing less to look at.
    assert len(passed) == (40 if answers == "sse" else 39), report.complaints(report.scenarios)
    assert {check.id for check in report.checks if check not in passed} <= {"server-sse-streams-functional"}
    assert (len(report.checks), report.code) == (40, 0), report.output


def listed(port: int, what: str) -> list[dict[str, Any]]:
    """What a client of 2026-07-28 is listed."""
    method = "resources/templates/list" if what == "resourceTemplates" else f"{what}/list"
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        text = answer.read().decode()
    return json.loads(text[text.index("{") :])["result"][what]


def fixtures(found: list[dict[str, Any]]) -> list[str]:
    names = [str(each.get("uri") or each.get("uriTemplate") or each["name"]) for each in found]
    return [name for name in names if name.startswith(("test_", "test:", "json_schema"))]


def test_a_server_without_the_plugin_lists_no_fixture_and_one_with_it_does(home: Home, bare_home: Home) -> None:
    with_it, without = (each.up("--auth", "none", "--port", "0") for each in (home, bare_home))
    for what in ("tools", "resources", "resourceTemplates", "prompts"):
        assert fixtures(listed(with_it, what)), what
        assert not fixtures(listed(without, what)), what


def test_the_command_line_lists_no_fixture_either(bare_home: Home) -> None:
    found = json.loads(bare_home.run("tools", "--json", "--as-owner"))
    assert found
    assert not fixtures(found)
