"""What git writes is read as git itself counts it; what git would not write is refused."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.diff import MAX_DIFF_BYTES, MAX_FILES, FileStat, parse_diff
from tests.domains.tracker.desk import GIT_ENVIRONMENT

HEAD = "diff --git a/src/x.py b/src/x.py\nindex 1111111..2222222 100644\n--- a/src/x.py\n+++ b/src/x.py\n"
GOOD = HEAD + "@@ -1,3 +1,4 @@ def f():\n a\n-b\n+c\n+d\n e\n"
TEXT = b"".join(b"line %d\n" % number for number in range(30))
# A link's target, or content and mode; None stands for a file that is not there.
File = bytes | str | None
Counted = dict[str, tuple[int, int, bool, str | None]]


class Repository:
    """Compares two states of a folder with real git."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> bytes:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **GIT_ENVIRONMENT}
        command = ["git", "-c", "core.autocrlf=false", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, check=True, capture_output=True, timeout=60
        ).stdout

    def tree(self, files: Mapping[str, File], executable: frozenset[str] = frozenset()) -> str:
        self.git("rm", "-rqf", "--ignore-unmatch", ".")
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                path.symlink_to(content)
            elif content is not None:
                path.write_bytes(content)
                path.chmod(0o755 if name in executable else 0o644)
        self.git("add", "-A")
        return self.git("write-tree").decode().strip()

    def diff(self, old: str, new: str, *options: str, config: tuple[str, ...] = ()) -> str:
        given = [part for setting in config for part in ("-c", setting)]
        return self.git(*given, "diff", *options, old, new).decode("utf-8", "backslashreplace")

    def counted(self, old: str, new: str, *options: str) -> Counted:
        """What git itself counts."""
        fields = iter(self.git("diff", "--numstat", "-z", *options, old, new).decode().split("\0")[:-1])
        found: Counted = {}
        for field in fields:
            added, deleted, path = field.split("\t", 2)
            old_path = None if path else next(fields)
            binary = added == "-"
            found[path or next(fields)] = (0 if binary else int(added), 0 if binary else int(deleted), binary, old_path)
        return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "compared")


def ours(text: str) -> Counted:
    return {file.path: (file.added, file.deleted, file.binary, file.old_path) for file in parse_diff(text).files}


def one(text: str) -> FileStat:
    (file,) = parse_diff(text).files
    return file


OLD: dict[str, File] = {
    "renamed.txt": TEXT,
    "moved only.txt": TEXT + b"x\n",
    "changed.bin": bytes(range(256)) * 4,
    "mode.sh": b"#!/bin/sh\n",
    "moved and mode.sh": TEXT + b"mode\n",
    "no newline.txt": b"a\nb",
    "crlf.txt": b"a\r\nb\r\nc\r\n",
    "copied from.py": b"".join(b"source %d\n" % number for number in range(40)),
    "deleted.txt": b"1\n2\n3\n",
    "deleted empty.txt": b"",
    "ünï/日本.txt": b"q\n",
    'quo"te\\.txt': b"q\n",
    "tab\tand\nnewline.txt": b"q\n",
    "looks b/like.txt b/two.txt": b"q\n",
    "dashes.sql": b"-- one\n-- two\n++ three\nx\n",
    "line ends.txt": "a\rb\x0cc\x1cd\u2028e\u0085f\n".encode(),
    "latin.txt": b"caf\xe9\n",
    "link": "renamed.txt",
    "becomes a link": b"content\n",
    "unchanged.txt": b"same\n",
    "a/b/deep.txt": b"1\n",
}
NEW: dict[str, File] = {
    "renamed to.txt": TEXT.replace(b"line 3\n", b"LINE 3\n"),
    "moved only to.txt": TEXT + b"x\n",
    "changed.bin": bytes(range(255, -1, -1)) * 4,
    "new.bin": bytes(range(256)),
    "mode.sh": b"#!/bin/sh\n",
    "moved and mode to.sh": TEXT + b"mode\n",
    "no newline.txt": b"a\nc",
    "new without newline.txt": b"end",
    "crlf.txt": b"a\r\nB\r\nc\r\nd\r\n",
    "copied from.py": b"".join(b"source %d\n" % number for number in range(40)) + b"more\n",
    "copied to.py": b"".join(b"source %d\n" % number for number in range(40)),
    "new empty.txt": b"",
    "ünï/日本.txt": b"q\nr\n",
    'quo"te\\.txt': b"z\n",
    "tab\tand\nnewline.txt": b"w\n",
    "looks b/like.txt b/two.txt": b"q\nr\n",
    "dashes.sql": b"x\ny\n",
    "line ends.txt": "a\rb\x0cc\x1cd\u2028e\u0085g\n".encode(),
    "latin.txt": b"caf\xe8\n",
    "link": "unchanged.txt",
    "becomes a link": "unchanged.txt",
    "unchanged.txt": b"same\n",
    "a/b/deep.txt": b"2\n",
    "b/new.txt": b"like no other\n",
}
EXECUTABLE = frozenset({"mode.sh", "moved and mode to.sh"})
COPIES = ("--find-copies-harder",)
WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "plain": ((), ()),
    "with copies": (COPIES, ()),
    "without renames": (("--no-renames",), ()),
    "with binary patches": (("--binary",), ()),
    "without context": (("--unified=0", "--full-index"), ()),
    "after a summary": (("--patch-with-stat",), ()),
    "without prefixes": (("--no-prefix",), ()),
    "with other prefixes": ((), ("diff.mnemonicPrefix=true",)),
    "with unquoted names": ((), ("core.quotePath=false",)),
    "without spaces on empty lines": ((), ("diff.suppressBlankEmpty=true",)),
    "with words of functions": (("--function-context",), ()),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_change_is_counted_as_git_counts_it(repository: Repository, way: str) -> None:
    options, config = WAYS[way]
    old, new = repository.tree(OLD), repository.tree(NEW, EXECUTABLE)
    detection = tuple(option for option in options if option in (*COPIES, "--no-renames"))
    expected = repository.counted(old, new, *detection)
    stats = parse_diff(repository.diff(old, new, *options, config=config))
    assert ours(repository.diff(old, new, *options, config=config)) == expected
    assert (stats.added, stats.deleted) == (sum(n[0] for n in expected.values()), sum(n[1] for n in expected.values()))


def test_what_happened_to_a_file_is_named(repository: Repository) -> None:
    old, new = repository.tree(OLD), repository.tree(NEW, EXECUTABLE)
    status = {file.path: file.status for file in parse_diff(repository.diff(old, new, *COPIES)).files}
    assert status["renamed to.txt"] == status["moved only to.txt"] == status["moved and mode to.sh"] == "renamed"
    assert status["copied to.py"] == "copied"
    assert status["new.bin"] == status["b/new.txt"] == "added"
    assert status["deleted.txt"] == "deleted"
    assert status["mode.sh"] == status["becomes a link"] == status["changed.bin"] == "modified"


def test_a_submodule_is_one_changed_line_and_its_log_is_refused(repository: Repository) -> None:
    old = repository.tree({"x.txt": b"x\n"})
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    new = repository.git("write-tree").decode().strip()
    assert ours(repository.diff(old, new, "--submodule=short")) == {"module": (1, 0, False, None)}
    with pytest.raises(ValidationFailed):
        parse_diff(repository.diff(old, new, "--submodule=log"))


def test_the_patch_of_one_commit_is_read_and_of_two_refused(repository: Repository) -> None:
    for number in range(3):
        (repository.folder / "x.txt").write_text(f"-- \n{number}\n")
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", "a message\n\nwith\n- a list\n+ of two")
    for command in (("format-patch", "-1", "--stdout"), ("show",)):
        assert ours(repository.git(*command).decode()) == {"x.txt": (1, 1, False, None)}
    for command in (("format-patch", "-2", "--stdout"), ("log", "-p", "-2")):
        with pytest.raises(ValidationFailed):
            parse_diff(repository.git(*command).decode())


NAMES = st.lists(
    st.text("ab \t\"\\'üλ日-+@.", min_size=1, max_size=6).filter(lambda part: part.strip(".") and part != ".git"),
    min_size=1,
    max_size=3,
).map("/".join)
CONTENT = st.one_of(
    st.lists(st.sampled_from([b"a", b"b", b"+c", b"-- d", b"@@ -1 +1 @@", b"diff --git", b"", b" ", b"\r", b"\\"])).map(
        b"\n".join
    ),
    st.binary(max_size=20),
)


def no_file_is_a_folder(files: Mapping[str, bytes]) -> bool:
    return not any(other.startswith(f"{name}/") for name in files for other in files)


TREES = st.dictionaries(NAMES, CONTENT, max_size=4).filter(no_file_is_a_folder)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(TREES, TREES)
def test_any_two_trees_are_compared_as_git_compares_them(
    tmp_path_factory: pytest.TempPathFactory, one: dict[str, bytes], other: dict[str, bytes]
) -> None:
    repository = Repository(tmp_path_factory.mktemp("trees") / "compared")
    old, new = repository.tree(one), repository.tree(other)
    expected = repository.counted(old, new)
    text = repository.git("diff", old, new).decode("utf-8", "backslashreplace").replace("\0", "0")
    if not expected:
        with pytest.raises(ValidationFailed, match="empty"):
            parse_diff(text)
        return
    found = ours(text)
    # Nothing in a diff says whether a file that was only moved is binary.
    unchanged = {path for path, counts in found.items() if counts[:2] == (0, 0)}
    assert {path: counts for path, counts in found.items() if path not in unchanged} == {
        path: counts for path, counts in expected.items() if path not in unchanged
    }
    assert found.keys() == expected.keys()


REFUSED: dict[str, tuple[str, str]] = {
    "nothing": ("", "empty"),
    "only space": (" \n\r\n\t", "empty"),
    "prose": ("I changed the login page.", "no diff"),
    "half a line": ("diff --git", "under no line"),
    "no name": ("diff --git \n", "name one file"),
    "a plain diff": ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "plain"),
    "a combined diff": (
        "diff --cc x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,1 @@@\n- a\n -b\n++c\n",
        "combined",
    ),
    "a hunk before the first file": ("@@ -1 +1 @@\n-a\n+b\n" + GOOD, "under no line"),
    "a header without hunks": (HEAD, "no change under it"),
    "a file without change": ("diff --git a/x b/x\n", "no change under it"),
    "two names without a rename": ("diff --git a/x b/y\nindex 1..2\n", "one file twice"),
    "half a rename": ("diff --git a/x b/y\nrename from x\n", "half of a rename"),
    "another new name": (GOOD.replace("+++ b/src/x.py", "+++ b/secrets/key.py"), "names another file"),
    "another old name": (GOOD.replace("--- a/src/x.py", "--- /dev/null"), "names another file"),
    "a new file with an old name": (GOOD.replace("index 1", "new file mode 100644\nindex 1"), "names another file"),
    "a strange header": (GOOD.replace("index 1", "# hidden\nindex 1"), "no file's header"),
    "too few lines": (GOOD.replace("@@ -1,3 +1,4", "@@ -1,9 +1,9"), "shorter"),
    "too many lines": (GOOD.replace("@@ -1,3 +1,4", "@@ -1,2 +1,3"), "outside of the hunks"),
    "too many deleted lines": (GOOD.replace("@@ -1,3 +1,4", "@@ -1,2 +1,9"), "longer"),
    "no number": (GOOD.replace("@@ -1,3 +1,4", "@@ -1,three +1,4"), "outside of the hunks"),
    "a number without end": (GOOD.replace("-1,3", f"-1,{'9' * 5000}"), "digits"),
    "an added line after the hunk": (GOOD + "+hidden\n", "outside of the hunks"),
    "a kept line after the hunk": (GOOD + " hidden\n", "outside of the hunks"),
    "a second file without a header": (GOOD + "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "outside of the hunks"),
    "a sentence at the end": (GOOD + "Thanks for the review!\n", "no hunk has a line"),
    "an end in the middle": (GOOD[: GOOD.index("+d")], "shorter"),
    "one file twice": (GOOD + GOOD, "twice"),
    "a path upwards": (GOOD.replace("src/x.py", "../x.py"), "no path"),
    "a path from the root": (GOOD.replace("src/x.py", "/etc/passwd"), "no path"),
    "a name that no disk takes": (GOOD.replace("src/x.py", "x" * 256), "255 bytes"),
    "a path with NUL": ('diff --git "a/\\000" "b/\\000"\nold mode 100644\nnew mode 100755\n', "no path"),
    "a line with NUL": (GOOD.replace("+c", "+\0"), "NUL"),
    "half a character": (GOOD.replace("+c", "+\ud800"), "half a character"),
    "a line in a binary patch": ("diff --git a/x b/x\nGIT binary patch\nliteral 3\n+hidden\n", "binary patch"),
    "a hunk in a binary file": (
        "diff --git a/x b/x\nBinary files a/x and b/x differ\n@@ -1 +1 @@\n-a\n+b\n",
        "binary patch",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_git_would_not_write_is_refused_with_a_hint(kind: str) -> None:
    text, about = REFUSED[kind]
    with pytest.raises(ValidationFailed, match=about) as refused:
        parse_diff(text)
    assert refused.value.hint
    assert "git diff" in refused.value.hint
    assert len(refused.value.message) <= 500


def test_more_than_the_limit_is_refused_by_size_and_by_files() -> None:
    def long(size: int) -> str:
        head = HEAD + "@@ -0,0 +1 @@\n+"
        return head + "x" * (size - len(head))

    assert parse_diff(long(MAX_DIFF_BYTES)).added == 1
    with pytest.raises(ValidationFailed, match="5000001 bytes"):
        parse_diff(long(MAX_DIFF_BYTES + 1))
    with pytest.raises(ValidationFailed, match="bytes"):
        parse_diff(long(MAX_DIFF_BYTES).replace("x", "ü"))
    files = (f"diff --git a/{n} b/{n}\nold mode 100644\nnew mode 100755\n" for n in range(MAX_FILES + 1))
    with pytest.raises(ValidationFailed, match="10001 files"):
        parse_diff("".join(files))


HOSTILE: dict[str, Callable[[int], str]] = {
    "binary head": lambda n: "diff --git a/f b/f\nBinary files " + "and " * (n // 4),
    "binary line in a hunk": lambda n: GOOD + "Binary files " + "and " * (n // 4),
    "addresses": lambda n: "diff --git " + "://x " * (n // 5),
    "many names": lambda n: "diff --git a/" + "x b/" * (n // 4),
    "quotes and backslashes": lambda n: 'diff --git "' + "\\" * n,
    "at signs": lambda n: HEAD + "@@ " * (n // 3),
    "a quoted name": lambda n: GOOD + "--- " + '"' * n,
    "a binary patch": lambda n: "diff --git a/f b/f\nGIT binary patch\nliteral 1\n" + "z" * n + "\x01",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_lines_take_no_longer_than_others(kind: str) -> None:
    # One line of four megabytes would take hours in quadratic time.
    with contextlib.suppress(ValidationFailed):
        assert parse_diff(HOSTILE[kind](4_000_000)).added == 0


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
@example("diff --git  \n")
@example('diff --git " "\n')
def test_no_text_breaks_it(text: str) -> None:
    for given_text in (text, GOOD + text, HEAD + text, f"diff --git {text}", f"diff --git a/x b/x\n{text}"):
        with contextlib.suppress(ValidationFailed):
            assert parse_diff(given_text).files


HEADS = "rename from x|rename to y|new file mode 100644|deleted file mode 100644|similarity index 100%|literal 3"
PIECES = [
    *GOOD.splitlines(keepends=True),
    *(f"{head}\n" for head in HEADS.split("|")),
    *("\n", "\r\n", "+x\n", "-y\n", " z\n", "@@ -1 +1 @@\n", "\\ No newline\n", "-- \n", "2.39.5\n"),
    *("GIT binary patch\n", "Binary files a/x and b/x differ\n"),
]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_what_is_read_of_pieces_of_diffs_counts_every_line(pieces: list[str]) -> None:
    text = GOOD.split("\n", 1)[0] + "\n" + "".join(pieces)
    try:
        stats = parse_diff(text)
    except ValidationFailed:
        return
    body = "".join(pieces).split("\n")
    signature = 1 if "-- " in body else 0
    minus = sum(line.startswith("-") and not line.startswith("--- ") for line in body)
    assert stats.added == sum(line.startswith("+") and not line.startswith("+++ ") for line in body)
    assert stats.deleted in (minus, minus - signature)


def test_what_is_kept_has_the_sums_and_the_first_files() -> None:
    stats = parse_diff("".join(GOOD.replace("x.py", f"{number}.py") for number in range(5)))
    kept = stats.as_json(most=2)
    assert (kept["added"], kept["deleted"], kept["changed_files"]) == (10, 5, 5)
    assert kept["files"] == [
        {"path": f"src/{number}.py", "status": "modified", "added": 2, "deleted": 1} for number in range(2)
    ]
    moved = parse_diff("diff --git a/x.py b/test_x.py\nrename from x.py\nrename to test_x.py\n").as_json()
    assert moved["files"] == [
        {"path": "test_x.py", "old_path": "x.py", "status": "renamed", "added": 0, "deleted": 0, "test": True}
    ]


def test_windows_line_ends_around_the_diff_do_no_harm() -> None:
    assert one(GOOD.replace("\n", "\r\n")) == one(GOOD)
