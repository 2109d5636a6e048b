"""The settings of A2A: what is refused, and what no error and no log repeats."""

from pathlib import Path

import pytest

from rookery.core.errors import ConfigurationError
from tests.settings_loading import Load, loader

KEYID = "0f" * 32


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return loader(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROOKERY_A2A_TRUST", "agents.example=some"),
        ("ROOKERY_A2A_TRUST", "agents.example=low,high"),
        ("ROOKERY_A2A_TRUST", "agents.example"),
        ("ROOKERY_A2A_TRUST", f"agents.example={'a' * 64}"),
        ("ROOKERY_A2A_TRUST", f"agents.example=high,{'A' * 64}"),
        ("ROOKERY_A2A_TRUST", f"agents.example=high,{'a' * 63}"),
        ("ROOKERY_A2A_TRUST", f"agents.example=high,{'a' * 64},{'b' * 64}"),
        ("ROOKERY_A2A_TOKENS", "agents.example=hunter2,hunter3"),
        ("ROOKERY_A2A_TOKENS", "hunter2"),
        ("ROOKERY_A2A_TOKENS", "https://agents.example=hunter2"),
        ("ROOKERY_A2A_TOKENS", "agents.example=hunter2 x"),
        ("ROOKERY_A2A_TRUST", "https://agents.example=low"),
        ("ROOKERY_A2A_TRUST", "agents.example=low;Agents.example=high"),
        ("ROOKERY_A2A_MIN_TRUST", "some"),
        ("ROOKERY_A2A_ALLOW", "http://agents.lan/"),
        ("ROOKERY_A2A_MAX_AGENTS", "-1"),
        ("ROOKERY_A2A_INVOCATION_COOLDOWN_MS", "soon"),
        ("ROOKERY_HTTP_PATH", "/a2a"),
    ],
)
def test_what_makes_no_sense_stops_the_start_without_telling_a_token(load: Load, name: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(environ={name: value})
    assert name in refused.value.message
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"


def test_hosts_have_one_token_and_one_level_each(load: Load) -> None:
    said = {
        "ROOKERY_A2A_TOKENS": "a.example=hunter2;b.lan:8080=x=y",
        "ROOKERY_A2A_TRUST": f"A.Example=high;b.lan=low,{KEYID}",
    }
    settings = load(environ=said)
    assert dict(settings.a2a_tokens) == {"a.example": ("hunter2",), "b.lan:8080": ("x=y",)}
    assert dict(settings.a2a_trust) == {"a.example": ("high",), "b.lan": ("low", KEYID)}
    assert "hunter2" not in repr(settings)
