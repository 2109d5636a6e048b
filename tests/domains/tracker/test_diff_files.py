"""A diff of git taken apart to be shown: files, modes, hunks and lines, from what git itself prints."""

import os
from pathlib import Path

from rookery.domains.tracker.diff import parse_diff
from rookery.domains.tracker.diff_files import changed_files, hunks, line_at
from tests.domains.tracker.desk import git


def repository(folder: Path, files: dict[str, str | bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    write(folder, files)
    return folder


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "work")


def change(folder: Path) -> str:
    return git(folder, "diff", "--no-color", "-M", "HEAD~1", "HEAD")


def test_lines_have_their_numbers_on_both_sides(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 31))
    place = repository(tmp_path / "r", {"a.py": text})
    write(place, {"a.py": text.replace("line 5\n", "line five\nand a half\n").replace("line 25\n", "")})
    diff = change(place)
    (file,) = changed_files(diff)
    first, second = hunks(diff, file)
    assert (file.path, file.status, file.added, file.deleted) == ("a.py", "modified", 2, 2)
    changed = [(line.kind, line.old, line.new, line.text) for line in first.lines if line.kind != "kept"]
    assert changed == [
        ("deleted", 5, None, "line 5"),
        ("added", None, 5, "line five"),
        ("added", None, 6, "and a half"),
    ]
    assert [(line.old, line.new) for line in second.lines if line.text == "line 26"] == [(26, 26)]
    assert line_at(diff, "a.py", "new", 6) == "and a half"
    assert line_at(diff, "a.py", "old", 25) == "line 25"
    assert line_at(diff, "a.py", "new", 15) is None
    assert line_at(diff, "b.py", "new", 6) is None


def test_renames_modes_links_binaries_and_missing_ends_of_lines_are_told(tmp_path: Path) -> None:
    place = repository(
        tmp_path / "r", {"old name.txt": "one\ntwo\nthree\n", "run.sh": "echo\n", "x.bin": b"\0\1", "e.txt": "a\nb\n"}
    )
    git(place, "mv", "old name.txt", "new näme.txt")
    os.chmod(place / "run.sh", 0o755)
    os.symlink("run.sh", place / "link")
    write(place, {"x.bin": b"\0\2", "e.txt": "a\nb", "new näme.txt": "one\ntwo\nfour\n"})
    diff = change(place)
    files = {file.path: file for file in changed_files(diff)}
    assert (files["new näme.txt"].old_path, files["new näme.txt"].status) == ("old name.txt", "renamed")
    assert (files["run.sh"].old_mode, files["run.sh"].new_mode, files["run.sh"].size) == ("100644", "100755", 0)
    assert files["link"].new_mode == "120000"
    assert (files["x.bin"].binary, files["x.bin"].added) == (True, 0)
    (hunk,) = hunks(diff, files["e.txt"])
    assert [(line.text, line.unended) for line in hunk.lines if line.kind == "added"] == [("b", True)]
    assert line_at(diff, "old name.txt", "old", 3) == "three"
    assert line_at(diff, "new näme.txt", "old", 3) is None


def test_what_looks_like_a_header_inside_of_a_file_is_a_line_of_it(tmp_path: Path) -> None:
    trap = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    place = repository(tmp_path / "r", {"a.txt": "kept\n"})
    write(place, {"a.txt": f"kept\n{trap}", "b.txt": trap})
    diff = change(place)
    files = changed_files(diff)
    assert [(file.path, file.added) for file in files] == [("a.txt", 6), ("b.txt", 6)]
    assert [line.text for hunk in hunks(diff, files[1]) for line in hunk.lines] == trap.splitlines()


def test_counts_are_those_by_which_the_risk_was_found(tmp_path: Path) -> None:
    place = repository(tmp_path / "r", {f"f{number}.txt": "a\n" * number for number in range(1, 30)})
    write(place, {f"f{number}.txt": "a\nb\n" * number for number in range(5, 25)})
    diff = change(place)
    stats = parse_diff(diff)
    assert [(file.path, file.added, file.deleted) for file in changed_files(diff)] == [
        (file.path, file.added, file.deleted) for file in stats.files
    ]
    signed = f"{diff}-- \n2.40.1\n\n"
    assert [file.deleted for file in changed_files(signed)] == [file.deleted for file in stats.files]
