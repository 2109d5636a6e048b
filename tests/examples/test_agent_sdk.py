"""The example program as somebody runs it: its agent calls a tool of ours, with a scripted model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.running import bare_environment
from tests.clients.scripted_model import ScriptedModel, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "agent_sdk.py"
PATIENCE_S = 90
MOST_STATEMENTS = 25


def test_its_agent_uses_a_tool_of_ours(tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    with ScriptedModel(Use("mcp__rookery__ping", {})) as model:
        reached = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-ant-dummy"}
        switches = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        ours = {"PYTHONPATH": str(ROOT / "src"), "ROOKERY_HOME": str(tmp_path / "home")}
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), "ping", "the", "server"],
            env=bare_environment(user, **reached, **switches, **ours), cwd=user,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "pong"
    assert "ping the server" in str(model.requests[-1]["messages"])


def test_it_is_short_enough_to_be_read_at_once() -> None:
    lines = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= MOST_STATEMENTS
