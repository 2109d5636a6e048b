"""Transcripts of Claude Code in a folder in which anything may lie: what is listed, and what is read."""

import itertools
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.core.errors import NotFound, ValidationFailed
from rookery.sessions.transcript_files import CHUNK, MAX_LINE, projects_folder, slug_of
from rookery.sessions.transcripts import HEAD, TAIL, Transcripts
from tests.sessions.transcript_folder import (
    CWD,
    FIRST,
    MODEL,
    SECOND,
    SLUG,
    THIRD,
    TranscriptFolder,
    assistant,
    result,
    said,
    use,
    user,
)


@pytest.fixture
def folder(tmp_path: Path) -> TranscriptFolder:
    return TranscriptFolder(tmp_path / "projects")


@pytest.fixture
def transcripts(folder: TranscriptFolder) -> Transcripts:
    return Transcripts(folder.root)


def titles(transcripts: Transcripts, **wanted: Any) -> list[str]:
    return [each.title for each in transcripts.page(100, **wanted)]


def spoken(transcripts: Transcripts, offset: int = 0, **how: Any) -> list[str]:
    return [message.text for message in transcripts.read(FIRST, offset, **how).messages]


def test_without_a_folder_there_is_nothing(transcripts: Transcripts) -> None:
    assert transcripts.page(10) == []
    with pytest.raises(NotFound, match=f"there is no transcript {FIRST}"):
        transcripts.of(FIRST)


@pytest.mark.parametrize("wanted", ["", "..", f"../{SLUG}/{FIRST}", f"{FIRST}.jsonl", "0a1b2c3", "\0", "x" * 5000])
def test_what_is_no_id_is_not_found(folder: TranscriptFolder, transcripts: Transcripts, wanted: str) -> None:
    folder.put(FIRST, user("hello"))
    with pytest.raises(NotFound):
        transcripts.of(wanted)
    with pytest.raises(NotFound):
        transcripts.read(wanted)


def test_a_beginning_of_an_id_is_enough_if_no_other_has_it(folder: TranscriptFolder, transcripts: Transcripts) -> None:
    for each in (FIRST, SECOND, THIRD):
        folder.put(each, user("hello"))
    assert transcripts.of(THIRD[:8]).id == THIRD
    with pytest.raises(NotFound):
        transcripts.of(FIRST[:8])


@pytest.mark.parametrize("offset", [-1, 10_000])
def test_an_offset_beyond_the_file_is_refused(folder: TranscriptFolder, transcripts: Transcripts, offset: int) -> None:
    folder.put(FIRST, user("hello"))
    with pytest.raises(ValidationFailed, match="the transcript has"):
        transcripts.read(FIRST, offset)


def test_links_are_not_followed_and_what_is_no_file_is_not_opened(
    folder: TranscriptFolder, transcripts: Transcripts, tmp_path: Path
) -> None:
    outside = TranscriptFolder(tmp_path / "elsewhere")
    secret = outside.put(SECOND, user("a secret"))
    folder.put(FIRST, user("hello"))
    (folder.root / SLUG / f"{SECOND}.jsonl").symlink_to(secret)
    (folder.root / "-linked").symlink_to(secret.parent)
    os.mkfifo(folder.root / SLUG / f"{THIRD}.jsonl")
    (folder.root / SLUG / "a-folder.jsonl").mkdir()
    assert titles(transcripts) == ["hello"]
    for each in (SECOND, THIRD, "a-folder"):
        with pytest.raises(NotFound):
            transcripts.read(each)


def test_files_that_cannot_be_read_do_not_fail_the_listing(folder: TranscriptFolder, transcripts: Transcripts) -> None:
    folder.put(FIRST, user("hello"), at_s=9)
    folder.put(SECOND, b"\xff\xfe\x00", b"{not json", b"[]", b"null", b'{"type":"user","message":7}', at_s=8)
    folder.put(THIRD, b"[" * 100_000, b'{"a":' * 50_000, at_s=7)
    folder.put("empty", at_s=6)
    folder.put("a name with spaces", user("not ours"))
    folder.put("agent-1234", user("what a subagent was told"))
    assert titles(transcripts) == ["hello", "Session 0a1b2c3d", "Session ffffffff", "Session empty"]
    part = transcripts.read(SECOND)
    assert (part.messages, part.unread, part.more) == ([], 4, False)
    assert transcripts.read(THIRD).unread == 2


def test_a_line_of_any_length_is_passed_over(folder: TranscriptFolder, transcripts: Transcripts) -> None:
    long = b'{"type":"user","message":{"content":"' + b"x" * (MAX_LINE + 2 * CHUNK) + b'"}}'
    path = folder.put(FIRST, user("before"), long, user("after"))
    part = transcripts.read(FIRST)
    assert [message.text for message in part.messages] == ["before", "after"]
    assert (part.unread, part.next_offset) == (1, path.stat().st_size)
    in_pieces: list[str] = []
    offset, more = 0, True
    while more:
        piece = transcripts.read(FIRST, offset, room=CHUNK)
        in_pieces += [message.text for message in piece.messages]
        assert piece.next_offset > offset
        offset, more = piece.next_offset, piece.more
    assert in_pieces == ["before", "after"]


def test_a_line_that_is_being_written_is_read_once_it_is_whole(
    folder: TranscriptFolder, transcripts: Transcripts
) -> None:
    path = folder.put(FIRST, user("hello"))
    whole = path.stat().st_size
    line = json.dumps(assistant(said("good morning"), use("c1", "Read", file_path="a"))).encode()
    cut = line.index(b'"a"}') + 4
    path.write_bytes(path.read_bytes() + line[:cut])
    part = transcripts.read(FIRST)
    assert (part.next_offset, [message.text for message in part.messages]) == (whole, ["hello"])
    path.write_bytes(path.read_bytes() + line[cut:])
    part = transcripts.read(FIRST, whole)
    assert (part.next_offset, [message.text for message in part.messages]) == (whole + len(line), ["good morning"])
    path.write_bytes(path.read_bytes() + b"\n" + json.dumps(user("thanks")).encode() + b"\n")
    assert spoken(transcripts, part.next_offset) == ["thanks"]
    assert spoken(transcripts) == ["hello", "good morning", "thanks"]


def test_an_offset_within_a_line_begins_with_the_next_one(folder: TranscriptFolder, transcripts: Transcripts) -> None:
    folder.put(FIRST, user("one"), user("two"))
    assert spoken(transcripts, 5) == ["two"]


def test_a_result_of_a_call_before_the_offset_is_told_apart(folder: TranscriptFolder, transcripts: Transcripts) -> None:
    path = folder.put(FIRST, assistant(use("c1", "Read", file_path="a")))
    middle = path.stat().st_size
    folder.put(FIRST, assistant(use("c1", "Read", file_path="a")), user([result("c1", "content of a", is_error=True)]))
    part = transcripts.read(FIRST, middle)
    assert part.messages == []
    assert part.late_results == [{"call_id": "c1", "result": "content of a", "is_error": True}]


def test_the_newest_come_first_and_those_of_a_folder_are_found_by_it(
    folder: TranscriptFolder, transcripts: Transcripts
) -> None:
    folder.put(FIRST, user("old"), at_s=1)
    folder.put(SECOND, user("new"), at_s=3)
    folder.put(THIRD, user("elsewhere"), slug="-srv-other", at_s=2)
    assert titles(transcripts) == ["new", "elsewhere", "old"]
    assert titles(transcripts, offset=1) == ["elsewhere", "old"]
    assert titles(transcripts, cwd=CWD) == ["new", "old"]
    assert titles(transcripts, cwd="/srv/other") == ["elsewhere"]
    assert [each.title for each in transcripts.page(1)] == ["new"]


def test_the_folder_of_a_long_path_is_known_by_its_beginning(
    folder: TranscriptFolder, transcripts: Transcripts
) -> None:
    path = f"/srv/{'long/' * 60}end"
    folder.put(FIRST, user("deep"), slug=f"{slug_of(path)}-1x2y3z")
    assert titles(transcripts, cwd=path) == ["deep"]


def test_the_folder_is_the_one_that_claude_code_is_told(tmp_path: Path) -> None:
    assert projects_folder({"CLAUDE_CONFIG_DIR": str(tmp_path)}) == tmp_path / "projects"
    assert projects_folder({}) == Path.home() / ".claude" / "projects"
    assert slug_of("/srv/my shop_é") == "-srv-my-shop--"


TITLES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "the first text": ([user("mend the\n  login")], "mend the login"),
    "a text after a command": ([user("<command-name>/clear</command-name>"), user("mend it")], "mend it"),
    "a text after what a command printed": ([user("<local-command-stdout>ok</local-command-stdout>"), user("x")], "x"),
    "a text after a notification": ([user("<task-notification>done</task-notification>"), user("go on")], "go on"),
    "a text after a continuation": ([user("This session is being continued from …"), user("and now")], "and now"),
    "a text after an interruption": ([user([said("[Request interrupted by user]")]), user("no")], "no"),
    "a text without its reminder": ([user("<system-reminder>today</system-reminder>mend it")], "mend it"),
    "a text beside a reminder": ([user([said("<system-reminder>x</system-reminder>"), said("mend it")])], "mend it"),
    "not what nobody typed": ([user("expanded", isMeta=True), user("typed")], "typed"),
    "not what a subagent was told": ([user("look around", isSidechain=True), user("typed")], "typed"),
    "not a result": ([user([result("c1", "content")]), user("typed")], "typed"),
    "nothing": ([assistant(said("hello"))], "Session 0a1b2c3d"),
}


@pytest.mark.parametrize("case", TITLES)
def test_the_title_is(folder: TranscriptFolder, transcripts: Transcripts, case: str) -> None:
    lines, title = TITLES[case]
    folder.put(FIRST, *lines)
    assert titles(transcripts) == [title]


def test_a_title_has_at_most_80_characters_also_of_a_message_longer_than_the_head(
    folder: TranscriptFolder, transcripts: Transcripts
) -> None:
    folder.put(FIRST, user("mend " * 30))
    folder.put(SECOND, user('say "ä\\n' + "😀" * HEAD))
    folder.put(THIRD, user([said("mend " * HEAD)]))
    for each in transcripts.page(3):
        assert len(each.title) == 80
        assert each.title.endswith("…")
    assert transcripts.of(SECOND).title.startswith('say "ä\\n😀')
    assert transcripts.of(THIRD).title.startswith("mend mend")


@pytest.mark.parametrize("room", range(12))
def test_a_head_that_ends_within_a_letter_gives_a_title_all_the_same(
    folder: TranscriptFolder, transcripts: Transcripts, room: int
) -> None:
    folder.put(FIRST, user("mend" + " " * (HEAD - 200 + room) + "😀" * 400))
    title = transcripts.of(FIRST).title
    assert title.encode().decode().startswith("mend")


def test_head_and_tail_tell_what_a_transcript_is(folder: TranscriptFolder, transcripts: Transcripts) -> None:
    filling = assistant(said("x" * TAIL), message_id="msg_0")
    synthetic = assistant(said("API error"), message_id="msg_2")
    synthetic["message"]["model"] = "<synthetic>"
    last = user("go on", permissionMode="acceptEdits")
    path = folder.put(FIRST, user("mend it"), filling, assistant(said("done")), synthetic, last, at_s=1_794_830_400)
    listed = transcripts.page(1)[0]
    assert (listed.title, listed.cwd, listed.mode, listed.project) == ("mend it", CWD, "default", SLUG)
    assert (listed.model, listed.context_tokens) == (None, None)
    assert listed.started_ms == 1_794_830_400_000 == listed.updated_ms
    assert listed.size == path.stat().st_size
    shown = transcripts.of(FIRST)
    assert (shown.model, shown.mode, shown.context_tokens) == (MODEL, "acceptEdits", 3210)
    assert (shown.id, shown.title, shown.etag) == (listed.id, listed.title, listed.etag)


def test_a_head_is_read_again_only_after_a_change(folder: TranscriptFolder, transcripts: Transcripts) -> None:
    folder.put(FIRST, user("first"), at_s=5)
    before = transcripts.page(1)[0]
    folder.put(FIRST, user("other"), at_s=5)
    assert transcripts.page(1)[0] is before
    folder.put(FIRST, user("third"), at_s=6)
    after = transcripts.page(1)[0]
    assert (after.title, after.etag == before.etag) == ("third", False)


def test_several_threads_may_list_at_once(folder: TranscriptFolder, transcripts: Transcripts) -> None:
    for number in range(30):
        folder.put(f"session-{number:02}", user(f"title {number}"), at_s=number)
    seen: list[list[str]] = []
    threads = [threading.Thread(target=lambda: seen.append(titles(transcripts))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [[f"title {number}" for number in range(29, -1, -1)]] * 8


LINES = st.lists(st.one_of(st.binary(max_size=300), st.text(min_size=1, max_size=80).map(lambda text: user(text))))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(lines=LINES, rooms=st.lists(st.integers(1, 400), min_size=1), ended=st.booleans())
def test_whatever_a_file_holds_its_pieces_are_the_whole(
    folder: TranscriptFolder, transcripts: Transcripts, lines: list[Any], rooms: list[int], ended: bool
) -> None:
    path = folder.put(FIRST, *lines)
    if not ended:
        path.write_bytes(path.read_bytes()[:-1])
    assert len(transcripts.page(5)) == 1
    whole = [message.text for message in transcripts.read(FIRST).messages]
    pieces: list[str] = []
    offset, size = 0, path.stat().st_size
    for room in itertools.cycle(rooms):
        part = transcripts.read(FIRST, offset, room)
        pieces += [message.text for message in part.messages]
        if not part.more:
            break
        assert offset < part.next_offset <= size
        offset = part.next_offset
    assert pieces == whole
