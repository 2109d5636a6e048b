"""How a diff is shown, without a server: rows, sides, comments, colours, hidden characters, and what is left out."""

import re
import time
from pathlib import Path

import pytest
from markupsafe import Markup

from rookery.domains.tracker.diff_files import ChangedFile, changed_files
from rookery.web.code_colours import LONGEST_READ, coloured, language_of
from rookery.web.diff_outline import (
    FILES_ON_A_PAGE,
    OPEN_FILE,
    OPEN_LINES,
    file_page,
    folders,
    opened,
    outline_of,
    what_happened,
)
from rookery.web.diff_view import LONGEST_FILE, Clock, Notes, View, file_rows
from rookery.web.hidden_marks import LONGEST_LINE, deceiving, marked
from tests.web.guest import words_of

EDIT = """diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,4 @@ module
 def a():
-    return 1
+    return 2
+    # more
 # end
"""


def added(path: str, lines: list[str]) -> str:
    """A new file, as git shows it."""
    body = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}"


def shown(diff: str, view: View = "unified", number: int = 0, **notes: str) -> str:
    file = changed_files(diff)[number]
    written: Notes = {("new", int(name.removeprefix("at"))): [Markup(f"<p>{text}</p>")] for name, text in notes.items()}
    return file_rows(diff, file, view, written, Clock()).rows


def test_unified_shows_deleted_before_added_with_both_numbers() -> None:
    rows = re.findall(r"<tr class=\"(\w*)\">(.*?)</tr>", shown(EDIT))
    assert [mark for mark, _ in rows] == ["hunk", "", "d", "a", "a", ""]
    numbers = [re.findall(r'<td class="n"[^>]*>(\d*)</td>', row) for _, row in rows[1:]]
    assert numbers == [["1", "1"], ["2", ""], ["", "2"], ["", "3"], ["3", "4"]]


def test_side_by_side_sets_what_was_deleted_beside_what_came_in_its_place() -> None:
    rows = [words_of(row) for row in shown(EDIT, "split").split("</tr>")[1:5]]
    assert rows == ["1 def a(): 1 def a():", "2 return 1 2 return 2", "3 # more", "3 # end 4 # end"]


@pytest.mark.parametrize("view", ["unified", "split"])
def test_a_comment_stands_once_below_its_line(view: View) -> None:
    rows = shown(EDIT, view, at1="why?", at3="which?")
    assert rows.count("why?") == rows.count("which?") == 1
    assert words_of(rows).index("def a():") < words_of(rows).index("why?") < words_of(rows).index("return 1")
    assert words_of(rows).index("# more") < words_of(rows).index("which?") < words_of(rows).index("# end")


def test_code_has_classes_and_nothing_of_it_is_markup() -> None:
    rows = shown(added("x.py", ['a = "</td><script>alert(1)</script>"  # <b>']))
    assert '<b class="s">&#34;&lt;/td&gt;&lt;script&gt;' in rows
    assert "<script" not in rows
    assert "style=" not in rows


def test_what_turns_lines_around_hides_or_speaks_to_terminals_is_marked() -> None:
    trojan = 'if level != "user\u202e \u2066# only admins\u2069 \u2066": \x1b[2J\u200b\u3164\ufeff'
    rows = shown(added("x.py", [trojan]))
    for name in ("202E", "2066", "2069", "001B", "200B", "3164", "FEFF"):
        assert f'<span class="hidden-mark bad" title="U+{name} ' in rows
    assert not re.search("[\u202e\u2066\u2069\x1b\u200b\u3164\ufeff]", rows)
    assert "right-to-left override" in rows
    assert deceiving(trojan) == 8


def test_plain_text_of_all_alphabets_is_left_as_it_is_with_its_tabs_and_spaces() -> None:
    text = "\tжизнь  世界 café שלום ✔️ "
    assert marked(text) == text
    assert deceiving(text) == 0
    assert "U+00A0 no-break space" in marked("a\u00a0b")
    assert deceiving("a\u00a0b\r") == 0
    assert ">CR</span>" in marked("dos\r")


def test_languages_are_known_by_name_and_no_colour_changes_the_text() -> None:
    names = {"a/b.py": "python", "Makefile": "make", "x.TSX": "typescript", "a.unknown": None, "": None}
    assert {name: language_of(name) for name in names} == names
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    html = coloured(source, "python", time.monotonic() + 60)
    plain = [re.sub("<b[^>]*>|</b>", "", line) for line in html]
    assert plain == [str(marked(line)) for line in source]
    assert any("<b class" in line for line in html)


@pytest.mark.parametrize(
    ("lines", "until"),
    [(["x" * 80] * (LONGEST_READ // 80 + 1), 60.0), (['"""', "never ended " * 1000], 60.0), (["a = 1"] * 5000, -1.0)],
)
def test_what_is_too_long_or_too_late_has_no_colours_and_all_its_lines(lines: list[str], until: float) -> None:
    html = coloured(lines, "python", time.monotonic() + until)
    assert len(html) == len(lines)
    assert "<b" not in html[-1]


def test_long_lines_and_long_files_are_cut_and_say_so() -> None:
    long = shown(added("min.js", ["y" * (LONGEST_LINE + 7)]))
    assert "and 7 more characters" in long
    assert "y" * (LONGEST_LINE + 1) not in long
    diff = added("big.txt", ["z"] * (LONGEST_FILE + 10))
    found = file_rows(diff, changed_files(diff)[0], "unified", {}, Clock())
    assert (found.lines, found.left_out) == (LONGEST_FILE, 10)


def test_only_so_much_is_open_at_once_and_files_with_comments_come_first() -> None:
    diff = "".join(added(f"d{number % 3}/f{number}.py", ["x = 1"] * 100) for number in range(100))
    files = outline_of("pr-many", diff).files
    chosen = opened(files, {"d0/f99.py"})
    assert 99 in chosen
    assert sum(files[number].changed_lines for number in chosen) <= OPEN_LINES + 100
    big = changed_files(added("big.py", ["x"] * (OPEN_FILE + 1)) + added("uv.lock", ["x"]))
    assert opened(big, set()) == set()
    assert opened(big, {"big.py"}) == {0}


def test_files_are_paged_and_found_by_name() -> None:
    diff = "".join(added(f"d{number % 3}/f{number}.py", ["x"]) for number in range(FILES_ON_A_PAGE + 50))
    files = outline_of("pr-paged", diff).files
    second = file_page(files, "", 2)
    assert (len(second.files), second.pages, second.found) == (50, 2, FILES_ON_A_PAGE + 50)
    assert [file.path for file in file_page(files, "F249", 9).files] == ["d0/f249.py"]
    assert file_page(files, "nothing", 1).files == []
    assert [name for name, _ in folders(second.files)] == ["d0", "d1", "d2"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"status": "modified"}, ""),
        (
            {"status": "modified", "old_mode": "100644", "new_mode": "100755"},
            "plain file (100644) to executable (100755)",
        ),
        ({"status": "added", "new_mode": "120000"}, "new file, symbolic link (120000)"),
        ({"status": "added", "new_mode": "100644", "binary": True}, "new file, binary"),
        ({"status": "deleted", "old_mode": "160000"}, "deleted, submodule (160000)"),
    ],
)
def test_what_became_of_a_file_is_said_in_words(values: dict[str, str], words: str) -> None:
    usual = {"number": 0, "path": "a", "old_path": None, "added": 0, "deleted": 0, "binary": False, "generated": False}
    file = ChangedFile(**{**usual, "old_mode": None, "new_mode": None, "start": 0, "end": 0, **values})  # pyright: ignore
    assert what_happened(file) == words
