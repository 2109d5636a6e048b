"""A clean session: Claude Code sees the way to its model, the marks of its session, and nothing else of ours."""

import json
from pathlib import Path

import pytest

from tests.clients.scripted_model import Say, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from rookery.runtimes.claude_launch import (
    INSTRUCTIONS_FILE,
    SERVERS_FILE,
    ClaudeConfig,
    permission_mode,
    write_files,
)
from rookery.sessions.port import Launch
from tests.platform_fixtures import Fleet
from tests.runtimes.claude.conftest import Speaks
from tests.runtimes.claude.stage import CONFIG, Stage, turn

SERVERS = {"shop": {"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer dear"}}}
OURS = {
    "ROOKERY_KEY": "our-key",
    "DATABASE_URL": "postgresql://owner:our-password@db/rookery",
    "GITHUB_TOKEN": "our-token",
    "AWS_SECRET_ACCESS_KEY": "our-secret",
}


async def test_no_secret_of_ours_reaches_the_agent(
    stage: Stage, speaks: Speaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OURS.items():
        monkeypatch.setenv(name, value)
    model = speaks(Use("Bash", {"command": "env"}), Say("seen"))
    agent = await stage.agent(mode="act")
    played = await turn(agent)
    seen = dict(line.partition("=")[::2] for line in played.one("tool_result")["text"].splitlines())
    assert not OURS.keys() & seen.keys()
    assert "our-" not in played.one("tool_result")["text"]
    assert "sk-ant-dummy" not in played.one("tool_result")["text"], "the key of the model is for Claude Code alone"
    assert seen["ROOKERY_SESSION"] == stage.session
    assert seen["RUN_OF_ROOKERY"]
    assert model.headers[0]["x-api-key"] == "sk-ant-dummy"
    begun = Path(f"/proc/{agent.pid}/environ").read_bytes()
    assert b"our-" not in begun
    assert b"sk-ant-dummy" not in begun


async def test_a_server_of_others_does_not_see_the_key_of_the_model(
    stage: Stage, speaks: Speaks, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    speaks(Say("hello"))
    nosy = {"type": "stdio", "command": "sh", "args": ["-c", f"env > {seen}.part; mv {seen}.part {seen}"]}
    played = await turn(await stage.agent(servers={"nosy": nosy}))
    assert played.done["output"] == "hello"
    assert f"ROOKERY_SESSION={stage.session}" in seen.read_text()
    assert "sk-ant-dummy" not in seen.read_text()


async def test_without_a_key_its_absence_is_the_models_to_tell(
    stage: Stage, speaks: Speaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = speaks(Say("hello"))
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "gateway")
    assert (await turn(await stage.agent())).done["output"] == "hello"
    assert "x-api-key" not in model.headers[0]


async def test_the_keys_of_foreign_servers_stand_on_no_command_line_and_soon_nowhere(
    stage: Stage, speaks: Speaks
) -> None:
    model = speaks(Say("hello"))
    agent = await stage.agent(servers=SERVERS, instructions="Between us.")
    words = Path(f"/proc/{agent.pid}/cmdline").read_bytes().decode().split("\0")
    assert not any("dear" in word or "Between us" in word for word in words)
    assert not Path(words[words.index("--mcp-config") + 1]).parent.exists()
    played = await turn(agent)
    assert [each["name"] for each in played.all("session_status")[0]["servers"]] == ["shop", "rookery"]
    assert "Between us." in json.dumps(model.requests[0])


def test_what_others_must_not_read_is_for_our_eyes_alone(claude_fleet: Fleet, tmp_path: Path) -> None:
    launch = Launch(session="ses_one", actor=claude_fleet.actor(), mode="ask", instructions="Between us.")
    write_files(tmp_path, launch, SERVERS)
    servers = tmp_path / SERVERS_FILE
    assert "dear" in servers.read_text()
    assert {file.stat().st_mode & 0o777 for file in (servers, tmp_path / INSTRUCTIONS_FILE)} == {0o600}


def _settings_of_the_machine(stage: Stage, user: Path) -> None:
    (stage.folder / "CLAUDE.md").write_text("The word of the project is heron.")
    (stage.folder / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"stray": {"type": "stdio", "command": "/bin/false"}}})
    )
    (user / ".claude").mkdir()
    (user / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash(*)"]}}))


async def test_settings_of_the_machine_count_only_if_they_are_named(stage: Stage, user: Path, speaks: Speaks) -> None:
    _settings_of_the_machine(stage, user)
    model = speaks(Say("hello"))
    played = await turn(await stage.agent())
    assert "heron" not in json.dumps(model.requests[0])
    assert [each["name"] for each in played.all("session_status")[0]["servers"]] == ["rookery"]


async def test_settings_that_are_named_count(stage: Stage, user: Path, speaks: Speaks) -> None:
    _settings_of_the_machine(stage, user)
    model = speaks(Say("hello"))
    named = ClaudeConfig(environment=CONFIG.environment, setting_sources=("project",))
    played = await turn(await stage.agent(config=named))
    assert "heron" in json.dumps(model.requests[0])
    assert [each["name"] for each in played.all("session_status")[0]["servers"]] == ["rookery"]


def test_nobody_acts_unasked_as_root() -> None:
    assert permission_mode("autonomy", root=True) == "default"
    assert permission_mode("autonomy", root=False) == "bypassPermissions"
    assert {permission_mode("ask", root=root) for root in (True, False)} == {"default"}
    assert {permission_mode("act", root=root) for root in (True, False)} == {"acceptEdits"}
