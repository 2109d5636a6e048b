import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied
from tests.domains.sessions.conftest import Desk
from tests.sessions.transcript_folder import FIRST, SECOND, TranscriptFolder, assistant, result, said, use, user


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TranscriptFolder:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return TranscriptFolder(tmp_path / "claude" / "projects")


async def read(desk: Desk, uri: str, actor: Actor | None = None) -> dict[str, Any]:
    (part,) = await desk.fleet.platform.calls.read(actor or desk.fleet.owner, uri)
    return json.loads(part.text)


async def test_neither_agents_nor_lesser_people_nor_other_tenants_read_transcripts(
    desk: Desk, ada: Actor, stranger: Actor, folder: TranscriptFolder
) -> None:
    folder.put(FIRST, user("hello"))
    owner = desk.fleet.owner
    for actor in (ada, replace(owner, role="viewer"), replace(owner, role="operator"), stranger):
        for uri in ("transcripts://", f"transcript://{FIRST}"):
            with pytest.raises((PermissionDenied, NotFound)):
                await read(desk, uri, actor)


@pytest.mark.parametrize("name", ["nothing", "..", "%2e%2e%2fsecret", SECOND])
async def test_what_is_not_there_is_not_found(desk: Desk, folder: TranscriptFolder, name: str) -> None:
    folder.put(FIRST, user("hello"))
    with pytest.raises(NotFound):
        await read(desk, f"transcript://{name}")


async def test_transcripts_are_listed_and_read(desk: Desk, folder: TranscriptFolder) -> None:
    assert await read(desk, "transcripts://") == {"transcripts": []}
    folder.put(SECOND, user("older"), at_s=1)
    folder.put(
        FIRST, user("look"), assistant(use("c1", "Read", file_path="a")), user([result("c1", "content")]),
        assistant(said("seen"), message_id="msg_2"), at_s=2,
    )  # fmt: skip
    listed = (await read(desk, "transcripts://"))["transcripts"]
    assert [each["title"] for each in listed] == ["look", "older"]
    found = await read(desk, f"transcript://{FIRST}")
    assert found["transcript"]["title"] == "look"
    assert [message["role"] for message in found["messages"]] == ["user", "assistant", "assistant"]
    assert found["messages"][1]["parts"][0]["result"] == "content"
    assert (found["more"], found["unread"]) == (False, 0)


async def test_transcripts_are_entries_of_their_template(desk: Desk, folder: TranscriptFolder) -> None:
    folder.put(FIRST, user("look"))
    found = desk.fleet.platform.registry.find_resource(f"transcript://{FIRST}")
    assert found is not None
    declared = found[0]
    assert declared.entries is not None
    listed = await desk.fleet.platform.calls.look_up(desk.fleet.owner, declared, "entries", declared.entries, {})
    assert [(entry.uri, entry.title) for entry in listed] == [(f"transcript://{FIRST}", "look")]
