"""The commands that show the transcripts of Claude Code."""

from pathlib import Path

from tests.cli.terminal import Terminal
from tests.sessions.transcript_folder import CWD, FIRST, TranscriptFolder, assistant, said, use, user


def test_transcripts_are_listed_and_shown(terminal: Terminal, tmp_path: Path) -> None:
    terminal.environ["CLAUDE_CONFIG_DIR"] = str(tmp_path / "claude")
    assert f"no transcripts in {tmp_path / 'claude' / 'projects'}" in terminal.ok("transcripts")
    assert "there is no transcript nothing" in terminal.fails("transcripts", "show", "nothing")
    folder = TranscriptFolder(tmp_path / "claude" / "projects")
    todo = use("c1", "TodoWrite", todos=[{"content": "look\x1b[2J around", "status": "pending"}])
    folder.put(FIRST, user("mend it"), assistant(said("I look"), todo), b"broken")
    listed = terminal.ok("transcripts")
    for shown in (FIRST, "mend it", CWD):
        assert shown in listed
    assert "no transcripts" in terminal.ok("transcripts", "list", "--cwd", "/elsewhere")
    shown = terminal.ok("transcripts", "show", FIRST[:8])
    for part in ("> mend it", "< I look", "* TodoWrite", "[pending] look?[2J around", "(1 lines could not be read)"):
        assert part in shown
    assert terminal.json("transcripts", "show", FIRST, "--json")["transcript"]["title"] == "mend it"
