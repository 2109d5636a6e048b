"""How each client is started: what its mode lets it do, how it goes on with a session, whom it asks."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import ConfigurationError
from rookery.relay import SESSION_KEY
from rookery.runtimes import command_gemini
from rookery.runtimes.command import CLIENTS, command_runtime
from rookery.runtimes.command_client import Invocation, Turn, all_servers
from rookery.runtimes.command_own import OwnCommand
from rookery.sessions.port import Permission
from tests.runtimes.command_stage import KEY, Person, Stage, said, told, turn

OTHER = {"type": "stdio", "command": "/opt/other", "args": ["x"], "env": {"OTHER_TOKEN": "s3cret"}}
REMOTE = {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer s3cret"}}
SERVERS = {"other": OTHER, "far-away": REMOTE}
ALLOWED = ("mcp__other__look", "mcp__far-away__ask")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def begun(stage: Stage, client: str, mode: Any = "ask", native_id: str | None = None, **more: Any) -> Invocation:
    """How the client would be started for a turn."""
    launch = stage.launch(mode=mode, servers=SERVERS, allowed=ALLOWED, **more)
    folder = stage.work / f"turn-{client}-{mode}-{len(list(stage.work.iterdir()))}"
    folder.mkdir()
    servers = all_servers(str(stage.home), launch, "mark", {})
    given = Turn(launch=launch, mode=mode, prompt="go on", folder=folder, servers=servers, native_id=native_id)
    return CLIENTS[client]().invocation(given)


def settings(invocation: Invocation) -> dict[str, Any]:
    """What Codex is told by `-c`."""
    words = list(invocation.words)
    lines = [words[at + 1] for at, word in enumerate(words) if word == "-c"]
    return tomllib.loads("\n".join(lines))


@pytest.mark.parametrize("name", ["rookery", "", "a.b", "a b", "x" * 65, 'a"b', "$(x)"])
def test_a_server_that_could_be_taken_for_ours_or_for_an_option_is_refused(stage: Stage, name: str) -> None:
    with pytest.raises(ConfigurationError):
        all_servers(str(stage.home), stage.launch(servers={name: OTHER}), "mark", {})


@pytest.mark.parametrize("client", CLIENTS)
def test_no_secret_stands_among_the_words(stage: Stage, client: str) -> None:
    for mode in ("ask", "act", "autonomy"):
        words = " ".join(begun(stage, client, mode, instructions="You are Ada.").words)
        assert KEY not in words
        assert "s3cret" not in words
        assert "go on" not in words
        assert "Ada" not in words


def test_our_server_is_attached_to_the_session_and_to_nothing_else(stage: Stage) -> None:
    ours = all_servers(str(stage.home), stage.launch(), "mark", {})["rookery"]
    assert ours["args"][-2:] == ["stdio", "--attach"]
    assert (ours["env"][SESSION_KEY], ours["env"]["ROOKERY_HOME"]) == (KEY, str(stage.home))


def test_codex_is_held_by_its_sandbox_and_asks_nobody(stage: Stage) -> None:
    sandboxes = {mode: settings(begun(stage, "codex", mode)) for mode in ("ask", "act", "autonomy")}
    assert {mode: told["sandbox_mode"] for mode, told in sandboxes.items()} == {
        "ask": "read-only",
        "act": "workspace-write",
        "autonomy": "danger-full-access",
    }
    assert {told["approval_policy"] for told in sandboxes.values()} == {"never"}
    servers = sandboxes["ask"]["mcp_servers"]
    assert servers["rookery"]["default_tools_approval_mode"] == "approve"
    assert (servers["rookery"]["required"], servers["other"]["required"]) == (True, False)
    assert all("tools" not in server for server in servers.values())
    free = sandboxes["act"]["mcp_servers"]["other"]["tools"]
    assert free == {"look": {"approval_mode": "approve"}}


def test_codex_gets_what_others_must_not_read_by_variables(stage: Stage) -> None:
    invocation = begun(stage, "codex")
    servers = settings(invocation)["mcp_servers"]
    assert servers["other"]["env_vars"] == ["OTHER_TOKEN"]
    [variable] = servers["far-away"]["env_http_headers"].values()
    assert invocation.environment[variable] == "Bearer s3cret"
    assert invocation.environment["OTHER_TOKEN"] == "s3cret"
    assert SESSION_KEY in servers["rookery"]["env_vars"]
    assert set(settings(invocation)["shell_environment_policy"]["exclude"]) == set(invocation.environment)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ROOKERY_HOME"])
def test_two_values_of_one_variable_cannot_be_given_by_codex(stage: Stage, name: str) -> None:
    server = {"command": "/opt/x", "env": {name: "another"}}
    launch = stage.launch(servers={"x": server})
    servers = all_servers(str(stage.home), launch, "mark", {})
    given = Turn(launch=launch, mode="ask", prompt="", folder=stage.work, servers=servers)
    with pytest.raises(ConfigurationError, match=name):
        CLIENTS["codex"]().invocation(given)


def test_gemini_is_held_by_its_approval_mode_and_its_own_settings(stage: Stage) -> None:
    found = {mode: begun(stage, "gemini", mode, max_turns=7) for mode in ("ask", "act", "autonomy")}
    modes = [each.words[list(each.words).index("--approval-mode") + 1] for each in found.values()]
    assert modes == ["default", "auto_edit", "yolo"]
    written = json.loads(Path(found["ask"].environment[command_gemini.SETTINGS]).read_text())
    assert {name: server["trust"] for name, server in written["mcpServers"].items()} == {
        "other": False,
        "far-away": False,
        "rookery": True,
    }
    assert written["mcpServers"]["far-away"]["httpUrl"] == REMOTE["url"]
    assert written["model"]["maxSessionTurns"] == 7
    assert written["hooksConfig"]["enabled"] is False
    assert written["mcp"]["allowed"] == ["other", "far-away", "rookery"]
    asks, acts = policy(found["ask"]), policy(found["act"])
    assert asks[0] == {"toolName": "*", "decision": "deny", "priority": 100}
    assert {"write_file", "run_shell_command"}.isdisjoint(asks[1]["toolName"])
    assert [rule.get("mcpName") for rule in asks] == [None, None, "rookery"]
    assert [(rule["mcpName"], rule.get("toolName")) for rule in acts if "mcpName" in rule] == [
        ("rookery", "*"),
        ("other", ["look"]),
        ("far-away", ["ask"]),
    ]
    assert "write_file" in acts[1]["toolName"]
    assert "run_shell_command" not in acts[1]["toolName"]
    assert "--admin-policy" not in found["autonomy"].words


def policy(invocation: Invocation) -> list[dict[str, Any]]:
    """The rules that Gemini CLI is given."""
    words = list(invocation.words)
    return tomllib.loads(Path(words[words.index("--admin-policy") + 1]).read_text())["rule"]


def test_what_the_system_says_to_gemini_stays_in_force(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    system = stage.work / "system.json"
    monkeypatch.setattr(command_gemini, "SYSTEM_SETTINGS", system)
    corporate = {"corporate": {"httpUrl": "https://x"}, "rookery": {"command": "another"}}
    said = {"tools": {"core": ["read_file"]}, "mcpServers": corporate, "mcp": {"allowed": ["corporate"]}}
    system.write_text(json.dumps(said))
    written = json.loads(Path(begun(stage, "gemini").environment[command_gemini.SETTINGS]).read_text())
    assert (written["tools"]["core"], written["mcp"]["allowed"]) == (["read_file"], ["corporate"])
    assert set(written["mcpServers"]) == {"corporate", "other", "far-away", "rookery"}
    assert written["mcpServers"]["rookery"]["args"][-1] == "--attach"
    system.write_text("{ // a comment\n}")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        begun(stage, "gemini")


def test_opencode_has_no_tool_that_it_would_have_to_ask_for(stage: Stage) -> None:
    def permission(mode: str) -> dict[str, str]:
        return json.loads(begun(stage, "opencode", mode).environment["OPENCODE_CONFIG_CONTENT"])["permission"]

    asks, acts = permission("ask"), permission("act")
    assert (asks["*"], asks["read"], asks["rookery_*"]) == ("deny", "allow", "allow")
    assert {"edit", "bash", "other_look"} & asks.keys() == set()
    assert (acts["*"], acts["edit"], acts["other_look"]) == ("deny", "allow", "allow")
    assert "bash" not in acts
    assert permission("autonomy")["*"] == "allow"
    assert "ask" not in {*asks.values(), *acts.values()}
    assert begun(stage, "opencode").environment["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"


@pytest.mark.parametrize("mode", ["ask", "act", "autonomy"])
def test_claude_asks_for_every_tool_whatever_the_mode_is(stage: Stage, mode: str) -> None:
    invocation = begun(stage, "claude-cli", mode)
    words = list(invocation.words)
    assert words[words.index("--permission-mode") + 1] == "default"
    assert words[words.index("--permission-prompt-tool") + 1] == "stdio"
    assert "--allowedTools" not in words
    assert invocation.asks


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("claude-cli", ["--resume=the-id"]),
        ("codex", ["resume", "the-id", "-"]),
        ("gemini", ["--resume", "the-id"]),
        ("opencode", ["--session", "the-id"]),
    ],
)
def test_a_client_goes_on_with_its_own_session(stage: Stage, client: str, words: list[str]) -> None:
    again = list(begun(stage, client, native_id="the-id").words)
    at = again.index(words[0])
    assert again[at : at + len(words)] == words
    assert words[0] not in begun(stage, client).words


@pytest.mark.parametrize("client", ["codex", "gemini"])
def test_what_an_agent_is_told_of_itself_comes_once(stage: Stage, client: str) -> None:
    assert begun(stage, client, instructions="You are Ada.").input == b"You are Ada.\n\ngo on"
    assert begun(stage, client, native_id="x", instructions="You are Ada.").input == b"go on"


async def test_a_session_is_resumed_by_the_id_that_the_client_gave_it(stage: Stage) -> None:
    stage.prints("codex", "codex_tools", before=stage.notes_words)
    agent = await stage.agent("codex")
    assert agent.native_id is None
    await turn(agent)
    await turn(agent)
    first, second = stage.words
    assert "resume" not in first
    assert second[-3:] == ["resume", agent.native_id, "-"]
    assert (await stage.agent("codex", resumed="kept-id")).native_id == "kept-id"


async def test_a_session_that_the_client_has_lost_is_told_and_begun_anew(stage: Stage) -> None:
    stage.program("codex", "import sys\nsys.exit('Error: no rollout found for thread id kept-id')")
    agent = await stage.agent("codex", resumed="kept-id")
    events = await turn(agent)
    assert told(events, "error")[0]["code"] == "lost"
    assert (agent.native_id, agent.alive) == (None, True)
    stage.prints("codex", "codex_tools")
    assert (await turn(agent))[-1].data["reason"] == "completed"


ASKING = """
import json, sys
def ask(number, tool, given):
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": f"toolu_{number}"}
    print(json.dumps({"type": "control_request", "request_id": f"req-{number}", "request": request}), flush=True)
    return json.loads(sys.stdin.readline())["response"]
message = json.loads(sys.stdin.readline())["message"]["content"]
answers = [ask(number, *each) for number, each in enumerate(json.loads(message))]
over = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s-1", "num_turns": 1}
told = json.dumps([[each["request_id"], each["response"]] for each in answers])
print(json.dumps({**over, "result": told}), flush=True)
sys.stdin.read()
"""


async def asked(stage: Stage, host: Any, uses: list[Any], **more: Any) -> list[Any]:
    """What Claude Code is answered when it asks for these tools."""
    stage.program("claude", ASKING)
    agent = await stage.agent("claude-cli", host, **more)
    done = (await turn(agent, json.dumps(uses)))[-1]
    assert done.data["reason"] == "completed", done.data
    answers = json.loads(done.data["output"])
    assert [request for request, _ in answers] == [f"req-{number}" for number in range(len(uses))]
    return [answer for _, answer in answers]


async def test_a_tool_that_is_refused_is_not_used(stage: Stage) -> None:
    person = Person(allow=False)
    [answer] = await asked(stage, person, [["Bash", {"command": "ls"}]])
    assert answer == {"behavior": "deny", "message": "the owner said no"}
    [use] = person.asked
    assert (use.tool, use.input, use.call_id) == ("Bash", {"command": "ls"}, "toolu_0")


async def test_a_host_that_breaks_allows_nothing(stage: Stage) -> None:
    class Broken(Person):
        async def may_use(self, use: Any) -> Permission:
            raise RuntimeError("the database is gone")

    [answer] = await asked(stage, Broken(), [["Bash", {}]])
    assert answer["behavior"] == "deny"
    assert "gone" not in answer["message"]


async def test_a_tool_that_is_allowed_is_used_with_what_was_asked_for(stage: Stage) -> None:
    [answer] = await asked(stage, Person(), [["Bash", {"command": "ls"}]])
    assert answer == {"behavior": "allow", "updatedInput": {"command": "ls"}}


async def test_allowed_tools_of_others_are_free_where_the_mode_allows_something_by_itself(stage: Stage) -> None:
    person = Person(allow=False)
    uses = [["mcp__other__look", {}], ["mcp__other__write", {}]]
    free = {"servers": SERVERS, "allowed": ["mcp__other__look"]}
    answers = await asked(stage, person, uses, mode="act", **free)
    assert [answer["behavior"] for answer in answers] == ["allow", "deny"]
    answers = await asked(stage, person, uses, mode="ask", **free)
    assert [answer["behavior"] for answer in answers] == ["deny", "deny"]


async def test_a_question_is_answered_by_the_person(stage: Stage) -> None:
    question = {"question": "Which?", "header": "Colour", "options": [{"label": "red", "description": "fire"}]}
    person = Person(answers=["red"])
    [answer] = await asked(stage, person, [["AskUserQuestion", {"questions": [question]}]])
    assert answer["updatedInput"]["answers"] == {"Which?": "red"}
    [(call_id, [said])] = person.asked
    assert (call_id, said.question, said.options[0].label, said.several) == ("toolu_0", "Which?", "red", False)
    [answer] = await asked(stage, Person(answers=None), [["AskUserQuestion", {"questions": [question]}]])
    assert answer["behavior"] == "deny"


async def test_a_stricter_mode_ends_the_turn_of_a_client_that_cannot_change(stage: Stage) -> None:
    stage.prints("codex", "codex_tools", after="import time\nwhile True: time.sleep(60)")
    agent = await stage.agent("codex", mode="autonomy")
    await agent.send("x")
    events: list[Any] = []
    async for event in agent.events():
        events.append(event)
        if event.name == "text_delta":
            await agent.set_mode("ask")
    assert events[-1].data["reason"] == "interrupted"
    assert any("mode ask" in data.get("text", "") for data in told(events, "system"))


async def test_a_wider_mode_counts_from_the_next_turn_on(stage: Stage) -> None:
    stage.prints("codex", "codex_tools", before=stage.notes_words)
    agent = await stage.agent("codex", mode="ask")
    await agent.send("x")
    events: list[Any] = []
    async for event in agent.events():
        events.append(event)
        if event.name == "tool_call_start":
            await agent.set_mode("act")
    assert events[-1].data["reason"] == "completed"
    await turn(agent)
    sandboxes = [[word for word in words if word.startswith("sandbox_mode")] for words in stage.words]
    assert sandboxes == [['sandbox_mode="read-only"'], ['sandbox_mode="workspace-write"']]


async def test_an_own_command_gets_its_places_filled(stage: Stage) -> None:
    script = (
        "import json, sys\n"
        "servers = json.load(open(sys.argv[2]))['mcpServers']\n"
        "print(sys.argv[1], *servers, sys.argv[3], repr(sys.stdin.read()))"
    )
    agent = await stage.own(script, "--say={prompt}", "{mcp_config}", "{mode}", mode="act")
    assert said(await turn(agent, "{mcp_config} & {mode} 'x'")) == "--say={mcp_config} & {mode} 'x' rookery act ''\n"
    agent = await stage.own("import sys\nprint(sys.stdin.read())")
    assert said(await turn(agent, "by standard input")) == "by standard input\n"


async def test_a_message_that_no_command_line_takes_is_told(stage: Stage) -> None:
    agent = await stage.own("print(1)", "{prompt}")
    for message in ("x" * 200_000, "a\0b"):
        assert "too long for a command line" in told(await turn(agent, message), "error")[0]["message"]


@pytest.mark.parametrize("line", ["", "   ", "agent 'open"])
def test_a_command_line_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(ConfigurationError, match="runtime_command"):
        OwnCommand(line)


def test_every_client_has_a_runtime_of_its_name(tmp_path: Path) -> None:
    names = [*CLIENTS, "command"]
    assert [command_runtime(name, str(tmp_path), "my-agent").name for name in names] == names
    assert names == ["claude-cli", "codex", "gemini", "opencode", "command"]
