"""The same attempts through the real doors: over HTTP in both eras, and over stdio as a process of its own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import PermissionDenied
from tests.security.keep import Keep
from tests.server.processes import Client, environment, error_code, outcome
from tests.server.streamable.web import LEGACY, MODERN, Web, events, serving

FLAGS = {
    "an agent as the web": ("--agent", "mighty", "--source", "web"),
    "a judge": ("--agent", "mighty", "--agent-type", "judge"),
    "the owner in a schedule": ("--as-owner", "--scheduler"),
}


async def posted(web: Web, era: str, session: str, token: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What came back."""
    if era == LEGACY:
        answer = await web.call(session, tool, token, **arguments)
    else:
        answer = await web.modern("tools/call", token, name=tool, arguments=arguments)
    assert answer.status_code < 500, answer.text
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        return events(answer.text)[-1]
    return answer.json()


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_no_token_but_the_owners_gets_anywhere_over_http(keep: Keep, era: str) -> None:
    keep.actors()
    before = keep.rights()
    async with serving(keep.fleet) as web:
        for name in ("agent", "operator", "viewer"):
            secret = keep.secrets[name]
            session = await web.initialize(secret) if era == LEGACY else ""
            for tool, arguments in keep.attacks():
                await posted(web, era, session, secret, tool, arguments)
            assert keep.rights() == before, name
        answer = {"ask_id": keep.question, "answer": "2"}
        secret = keep.secrets["owner"]
        session = await web.initialize(secret) if era == LEGACY else ""
        await posted(web, era, session, secret, "answer_ask", answer)
    assert len(keep.rights()["answered"]) == 1


@pytest.mark.parametrize("who", FLAGS)
async def test_no_session_but_the_owners_gets_anywhere_over_stdio(lone_keep: Keep, tmp_path: Path, who: str) -> None:
    keep = lone_keep
    keep.actors()
    before = keep.rights()
    settings = keep.platform.settings
    env = environment(Path(settings.home), None, ROOKERY_APPROVAL_HOLD_S="0", ROOKERY_DATABASE=settings.database_url)
    attacks = keep.attacks()

    def attempt() -> list[dict[str, Any]]:
        client = Client(tmp_path, env, "--direct", *FLAGS[who])
        try:
            client.initialize()
            return [outcome(client.request("tools/call", name=tool, arguments=given)) for tool, given in attacks]
        finally:
            client.close()

    told = [(*attack, answer) for attack, answer in zip(attacks, await asyncio.to_thread(attempt), strict=True)]
    for tool, arguments, answer in told:
        harmless = tool in ("save_memory", "configure_notifications")
        refused = "error" in answer and error_code(answer) in (PermissionDenied.code, "INVALID_PARAMS")
        assert refused or harmless, (tool, arguments, answer)
    assert keep.rights() == before
