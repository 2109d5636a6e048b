"""Without the extra `claude` the platform starts, and whoever wants such an agent is told what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from rookery.core.errors import ConfigurationError
from rookery.runtimes import claude
from rookery.sessions.port import Launch
from tests.platform_fixtures import Fleet

ROOT = Path(__file__).parents[3]
STARTED = """
import sys
import rookery.app, rookery.server.run, rookery.server.inprocess, rookery.runtimes.claude
print(sorted(name for name in sys.modules if name.startswith("claude_agent_sdk")))
"""


class Nobody:
    async def may_use(self, use: object) -> None: ...
    async def answers(self, call_id: str, questions: object) -> None: ...


async def test_without_the_sdk_it_says_what_to_install(claude_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude, "SDK", "no_such_sdk")
    runtime = claude.ClaudeRuntime(claude_fleet.platform)
    assert runtime.missing is not None
    assert "pip install 'rookery[claude]'" in runtime.missing
    launch = Launch(session="ses_none", actor=claude_fleet.actor(), mode="ask")
    with pytest.raises(ConfigurationError, match="not installed"):
        await runtime.start(launch, Nobody())  # pyright: ignore[reportArgumentType]


def test_whoever_starts_no_such_agent_does_not_load_the_sdk() -> None:
    run = [sys.executable, "-c", STARTED]
    done = subprocess.run(run, env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
