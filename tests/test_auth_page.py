"""docs/auth.md: its examples work as they stand, and it explains every refusal."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rookery.server.auth import make_authenticator
from rookery.settings import load_settings

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "auth.md").read_text(encoding="utf-8")
REFUSING = [*(ROOT / "src/rookery/server/auth").glob("*.py"), ROOT / "src/rookery/identity/resolve.py"]


def blocks(language: str, text: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", [*blocks("toml"), *blocks("toml", (ROOT / "docs/settings.md").read_text())])
def test_every_file_in_the_docs_can_be_used_as_it_stands(tmp_path: Path, text: str) -> None:
    (tmp_path / "rookery.toml").write_text(text)
    assert make_authenticator(load_settings(str(tmp_path), {})).mode


async def test_the_token_that_the_page_makes_is_accepted(tmp_path: Path) -> None:
    [program] = blocks("python")
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    (tmp_path / "rookery.toml").write_text(next(text for text in blocks("toml") if '"jwt"' in text))
    authenticator = make_authenticator(load_settings(str(tmp_path), {}))
    identity = (await authenticator.authenticate(f"Bearer {made.stdout.strip()}")).binding.identity
    assert identity is not None
    assert (identity.client, identity.subject, identity.scopes) == (
        "nightly-build",
        "build-7",
        {"system:read", "tool:ping"},
    )


def test_every_refusal_is_explained_and_none_that_is_not_there() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in REFUSING)
    explained = set(re.findall(r"^\| `([^`]+)` \|", PAGE.partition("## What a refusal means")[2], re.MULTILINE))
    assert {message for message in explained if f'"{message}"' not in source} == set()
    plain = set(re.findall(r'(?:refuse|Unauthorized|MissingToken)\(\s*"([^"{]+)"', source))
    assert plain - explained == {
        "the token demands an extension that this server does not have",
        "the token holds no claims",
        "the token's key id is not a name",
    }
