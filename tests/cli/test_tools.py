"""`rookery tools`: the list that a session gets, and the documentation of them all."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from rookery.cli.tool_docs import render
from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.plugins import load_domains
from tests import stand_ins
from tests.cli.terminal import Terminal
from tests.platform_fixtures import Fleet

DOCS = Path(__file__).parents[2] / "docs" / "tools.md"


class Chirp(ToolOutput):
    heard: str


@tool(
    title="Chirp", effect="read", action="birds:read", tier="observe", group="Read", profiles="W", default=True,
    inline=True,
)  # fmt: skip
def chirp(ctx: Context, args: NoInput) -> Chirp:
    """Say something. Use it in this test. Returns what was said. Does nothing else."""
    return Chirp(heard="chirp")


@pytest.fixture
def birds() -> ModuleType:
    """A domain that somebody dropped in: one function."""
    module = ModuleType(chirp.module)
    module.__dict__["chirp"] = chirp
    return module


def test_json_has_exactly_name_domain_effect_tier_and_tokens(terminal: Terminal) -> None:
    listed = terminal.json("tools", "--json", "--as-owner")
    assert {tuple(each) for each in listed} == {("name", "domain", "effect", "tier", "tokens")}
    ping = next(each for each in listed if each["name"] == "ping")
    assert (ping["domain"], ping["effect"], ping["tier"]) == ("system", "read", "observe")
    assert isinstance(ping["tokens"], int)
    assert ping["tokens"] > 0


def test_the_plain_list_groups_the_tools_by_domain(terminal: Terminal) -> None:
    lines = terminal.ok("tools", "--as-owner").splitlines()
    start = lines.index("system")
    assert [line.split()[0] for line in lines[start + 1 : start + 3]] == ["get_server_info", "ping"]
    assert lines[start + 3] == "tracker"


def test_tokens_adds_a_column_and_the_sum(terminal: Terminal) -> None:
    listed = terminal.json("tools", "--json")
    lines = terminal.ok("tools", "--tokens").splitlines()
    assert lines[-1] == f"{len(listed)} tools, {sum(each['tokens'] for each in listed)} tokens"
    assert str(listed[0]["tokens"]) in next(line for line in lines if listed[0]["name"] in line).split()


def test_output_that_is_no_terminal_has_no_drawing_in_it(terminal: Terminal) -> None:
    assert terminal.ok("tools", "--as-owner").isascii()


def test_the_list_follows_the_profile_and_the_scope_file(terminal: Terminal, tmp_path: Path) -> None:
    scope = tmp_path / "scope.json"
    scope.write_text('["corvid_ping"]')
    listed = terminal.json("tools", "--json", "--agent-type", "worker", "--tool-scope-file", str(scope))
    assert [each["name"] for each in listed] == ["ping"]


def test_an_agent_without_tools_is_told_so(terminal: Terminal) -> None:
    terminal.ok("agents", "create", "mute", "--permissions", "none")
    assert terminal.ok("tools", "--agent", "mute") == "This session has no tools.\n"
    assert terminal.json("tools", "--agent", "mute", "--json") == []


def test_the_documentation_of_the_tools_is_up_to_date(terminal: Terminal) -> None:
    is_current = terminal.ok("tools", "--markdown") == DOCS.read_text(encoding="utf-8")
    assert is_current, "run make docs"


def test_the_documentation_needs_no_home(terminal: Terminal) -> None:
    terminal.ok("tools", "--markdown")
    assert not terminal.home.exists()


def test_a_tool_that_is_dropped_in_is_documented_listed_and_decided(
    make_fleet: Callable[..., Fleet], tmp_path: Path, birds: ModuleType
) -> None:
    fleet = make_fleet(f"sqlite:///{tmp_path / 'rookery.db'}", extra={"birds": birds})
    assert "chirp" in fleet.names(fleet.actor())
    text = render(fleet.platform.registry)
    assert "## birds\n" in text
    assert "### `chirp`\n\n**Chirp.** Say something." in text


def test_the_documentation_says_who_may_use_a_tool_and_what_limits_it() -> None:
    text = render(load_domains(plugins=False, extra={"stand_ins": stand_ins}).registry)
    sections = {part.partition("`")[0]: part for part in text.split("### `")[1:]}
    assert "| agents | by a grant, or named in the agent's own list |" in sections["grant_credits"]
    assert "| people | owner |" in sections["grant_credits"]
    assert "blocked in scheduled sessions; may be taken from" in sections["send_message"]
    assert "below depth 3 only" in sections["send_message"]
    assert "hidden without the service code_index" in sections["code_symbols"]
    assert "| profiles | judge |" in sections["approve_phase"]
    assert "needs a bound issue" in sections["approve_phase"]
    assert "| agents | never |" in sections["create_agent"]
    assert "| people | owner, operator, viewer |" in sections["list_agent_settings"]


def test_arguments_are_documented_with_type_default_and_whether_they_are_needed() -> None:
    text = render(load_domains(plugins=False).registry)
    assert "| `limit` | integer, 1 to 500 | no | `50` | At most this many, newest first. |" in text
    assert '| `mode` | `"ask"` or `"act"` or `"autonomy"` | no |  | What needs a person\'s yes. |' in text
    assert "| `tools` | list of string | yes |  |" in text


def test_the_same_registry_gives_the_same_text() -> None:
    first, second = (render(load_domains(plugins=False).registry) for _ in range(2))
    assert first == second
    assert json.dumps(first).count("\\t") == 0
