"""Worktrees and their markers, on real git repositories that an agent has had its hands on."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.core.errors import Conflict, ServiceUnavailable, TimedOut, ValidationFailed
from rookery.domains.tracker.worktree import (
    MARKER,
    Marker,
    branch_of,
    changed_source_lines,
    commits_ahead,
    diff_against,
    head_of,
    is_clean,
    same_repository,
    verify_worktree,
    write_marker,
)
from rookery.files import git as asking
from tests.domains.tracker.desk import git

BRANCH = "symphony/SYM-001"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on main."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    put(folder, "src/app.py", "one\ntwo\nthree\n")
    put(folder, "README.md", "# App\n")
    commit(folder)
    return folder


@pytest.fixture
def tree(repository: Path, tmp_path: Path) -> Path:
    """A marked worktree of SYM-001."""
    folder = tmp_path / "trees" / "SYM-001"
    git(repository, "worktree", "add", "-q", "-b", BRANCH, str(folder), "main")
    write_marker(str(folder), Marker("SYM-001", "iss-1", BRANCH))
    return folder


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def commit(folder: Path, message: str = "work") -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def refusal(folder: Path | str | None, cwd: Path | str | None = None) -> str:
    with pytest.raises(Conflict) as caught:
        verify_worktree(None if folder is None else str(folder), None if cwd is None else str(cwd), "SYM-001", "iss-1")
    assert caught.value.hint
    assert "Recovery: " in caught.value.message
    return caught.value.message


def test_without_a_bound_worktree_there_is_nothing_to_verify() -> None:
    assert refusal(None) == refusal("") == refusal("relative/folder")
    assert "No worktree is bound for SYM-001" in refusal(None)


def test_a_deleted_worktree_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert f"{gone} does not exist any more" in refusal(gone)


def test_an_agent_outside_is_told_the_way_back(tree: Path, tmp_path: Path) -> None:
    assert refusal(tree, tmp_path) == (
        f"Worktree marker file not found at {tmp_path}/.symphony-worktree. "
        f"Recovery: run `cd {tree}` to return to your worktree."
    )
    # A folder whose name merely starts with the worktree's is no part of it.
    beside = tree.with_name("SYM-001-other")
    beside.mkdir()
    assert f"`cd {tree}`" in refusal(tree, beside)


def test_an_agent_in_the_worktree_of_another_issue_is_told_whose_it_is(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "trees" / "SYM-002"
    other.mkdir()
    write_marker(str(other), Marker("SYM-002", "iss-2", "symphony/SYM-002"))
    assert "the worktree of SYM-002, not in that of SYM-001" in refusal(tree, other)
    assert "belongs to SYM-002, not to SYM-001" in refusal(other)


def test_the_way_back_survives_a_shell(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "it's; a folder"
    git(repository, "worktree", "add", "-q", "-b", "odd", str(folder))
    write_marker(str(folder), Marker("SYM-001"))
    assert """cd '""" in refusal(folder, tmp_path)


def spoil(tree: Path, how: str) -> None:
    marker = tree / MARKER
    marker.unlink()
    if how == "link":
        (tree / "elsewhere").write_text("SYM-001")
        marker.symlink_to(tree / "elsewhere")
    elif how == "fifo":
        os.mkfifo(marker)
    elif how == "folder":
        marker.mkdir()
    elif how != "missing":
        marker.write_bytes({"big": b"SYM-001 " * 1000, "empty": b" \n"}.get(how, how.encode()))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("missing", "marker file not found at"),
        ("link", "is a symbolic link"),
        ("fifo", "is not a regular file"),
        ("folder", "is not a regular file"),
        ("big", "is larger than 4,096 bytes"),
        ("empty", "names no issue"),
        ('{"issue": "SYM-001"', "names no issue"),
        ('{"issue": ["SYM-001"]}', "names no issue"),
        ('{"branch": "main"}', "names no issue"),
        ('{"issue": "SYM-001", "issue_id": 5}', "names no issue"),
        ('{"a":' * 800, "names no issue"),
        ("SYM-002", "belongs to SYM-002"),
        ('{"issue": "SYM-001", "issue_id": "iss-of-another-installation"}', "belongs to SYM-001"),
        ('{"issue": "OLD-009", "issue_id": "iss-1"}', "belongs to OLD-009"),
    ],
)
def test_a_marker_that_does_not_prove_it_is_refused(tree: Path, how: str, told: str) -> None:
    spoil(tree, how)
    assert told in refusal(tree, tree)


def test_a_marked_worktree_is_verified_from_its_root_and_from_within(tree: Path) -> None:
    for cwd in (None, tree, tree / "src"):
        found = verify_worktree(str(tree), None if cwd is None else str(cwd), "SYM-001", "iss-1")
        assert (found.path, found.issue, found.branch) == (str(tree), "SYM-001", BRANCH)


def test_a_link_to_the_worktree_is_the_worktree(tree: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tree)
    assert verify_worktree(str(link), str(tree), "SYM-001", "iss-1").path == str(tree)
    assert verify_worktree(str(tree), str(link / "src"), "SYM-001", "iss-1").path == str(tree)


def test_a_plain_text_marker_is_understood_and_the_branch_is_read_from_git(tree: Path) -> None:
    (tree / MARKER).write_text("sym-1 made by hand\n")
    assert verify_worktree(str(tree), None, "SYM-001", "iss-1").branch == BRANCH
    git(tree, "checkout", "-q", "--detach")
    assert verify_worktree(str(tree), None, "SYM-001", "iss-1").branch == ""


def test_the_marker_is_never_added_and_never_listed_twice(tree: Path, repository: Path) -> None:
    write_marker(str(tree), Marker("SYM-001", "iss-1", BRANCH))
    assert (repository / ".git/info/exclude").read_text().count(MARKER) == 1
    git(tree, "add", "-A")
    assert MARKER not in git(tree, "status", "--porcelain", "--ignored=no")
    assert sorted(path.name for path in tree.iterdir()) == [".git", MARKER, "README.md", "src"]


def test_writing_the_marker_follows_no_link(tree: Path, repository: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("kept")
    (tree / MARKER).unlink()
    (tree / MARKER).symlink_to(secret)
    write_marker(str(tree), Marker("SYM-001", "iss-1", BRANCH))
    exclude = repository / ".git/info/exclude"
    exclude.unlink()
    exclude.symlink_to(secret)
    with pytest.raises(OSError, match="symbolic links"):
        write_marker(str(tree), Marker("SYM-001", "iss-1", BRANCH))
    assert secret.read_text() == "kept"
    assert not (tree / MARKER).is_symlink()


@pytest.mark.parametrize(
    "base", ["nope", "", "--help", "-x", "main~1", "main^{/x}", "main:README.md", "main@{0}", "a..b", "x" * 300, "@"]
)
def test_a_base_must_be_a_branch_that_exists(tree: Path, base: str) -> None:
    functions: list[Callable[[str, str], object]] = [commits_ahead, diff_against, changed_source_lines]
    for function in functions:
        with pytest.raises(ValidationFailed):
            function(str(tree), base)


def test_a_folder_without_a_repository_of_its_own_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "lying").mkdir()
    (tmp_path / "lying/.git").write_text("gitdir: /nowhere\n")
    (tmp_path / "silly").mkdir()
    (tmp_path / "silly/.git").write_text("hello\n")
    for folder in (tmp_path, tree / "src", tmp_path / "lying", tmp_path / "silly", tmp_path / "gone"):
        with pytest.raises(ValidationFailed):
            head_of(str(folder))


def test_a_repository_without_commits_is_refused_with_a_hint(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    assert branch_of(str(tmp_path)) == "main"
    for function in (head_of, is_clean):
        with pytest.raises(ValidationFailed, match="no commit yet"):
            function(str(tmp_path))


def test_branches_without_a_common_commit_cannot_be_compared(tree: Path) -> None:
    git(tree, "checkout", "-q", "--orphan", "other")
    commit(tree, "another beginning")
    with pytest.raises(ValidationFailed, match="no commit in common with main"):
        diff_against(str(tree), "main")


def test_head_branch_and_distance_are_those_of_git(tree: Path, repository: Path) -> None:
    assert commits_ahead(str(tree), "main") == 0
    put(tree, "src/app.py", "one\n")
    commit(tree)
    assert head_of(str(tree)) == git(tree, "rev-parse", "HEAD").strip()
    assert (branch_of(str(tree)), branch_of(str(repository))) == (BRANCH, "main")
    assert commits_ahead(str(tree), "main") == commits_ahead(str(tree), head_of(str(repository))) == 1
    git(tree, "checkout", "-q", "--detach")
    assert branch_of(str(tree)) is None
    assert same_repository(str(tree), str(repository))


def test_the_diff_is_of_what_the_branch_committed_and_not_of_what_main_did_since(tree: Path, repository: Path) -> None:
    put(tree, "src/new name.py", "ä\n")
    (tree / "README.md").rename(tree / "READ.md")
    commit(tree)
    put(tree, "src/app.py", "not committed\n")
    put(repository, "later.py", "main goes on\n")
    commit(repository)
    diff = diff_against(str(tree), "main")
    assert "rename from README.md\nrename to READ.md\n" in diff
    assert "+ä\n" in diff
    assert "not committed" not in diff
    assert "main goes on" not in diff


def test_settings_of_the_repository_do_not_change_how_a_diff_looks(tree: Path, repository: Path) -> None:
    put(tree, "src/app.py", "one\n2\nthree\n")
    commit(tree)
    plain = diff_against(str(tree), "main")
    odd = {"diff.noprefix": "true", "color.ui": "always", "diff.context": "0", "diff.orderFile": "/nowhere"}
    for name, value in odd.items():
        git(repository, "config", name, value)
    assert diff_against(str(tree), "main") == plain
    assert "--- a/src/app.py\n+++ b/src/app.py\n@@ -1,3 +1,3 @@\n" in plain


def test_a_diff_of_more_than_five_megabytes_is_refused(tree: Path) -> None:
    put(tree, "src/big.txt", "0123456789abcdef\n" * 320_000)
    commit(tree)
    with pytest.raises(ValidationFailed, match="larger than 5,000,000 bytes"):
        diff_against(str(tree), "main")
    assert commits_ahead(str(tree), "main") == 1


def test_a_diff_has_no_character_that_a_database_refuses(tree: Path) -> None:
    put(tree, "data.txt", "a\n" * 5000 + "nul \0 here\n")
    commit(tree)
    assert "nul \ufffd here" in diff_against(str(tree), "main")


def test_only_lines_of_code_are_counted(tree: Path) -> None:
    put(tree, "src/app.py", "one\n2\nthree\n")
    put(tree, "src/test_app.py", "a\nb\nc\n")
    put(tree, "tests/deep/helper.py", "a\n")
    put(tree, "uv.lock", "a\n" * 50)
    put(tree, "docs/page.md", "a\n" * 50)
    (tree / "src/image.bin").write_bytes(bytes(range(256)))
    commit(tree)
    assert changed_source_lines(str(tree), "main") == 2


def test_a_renamed_file_counts_its_changed_lines_once(tree: Path, repository: Path) -> None:
    put(repository, "src/old.py", "".join(f"line {n}\n" for n in range(20)))
    commit(repository)
    git(tree, "merge", "-q", "main")
    text = (tree / "src/old.py").read_text()
    (tree / "src/old.py").unlink()
    put(tree, "src/tab\there.py", text.replace("line 7\n", "seven\n"))
    commit(tree)
    assert changed_source_lines(str(tree), "main") == 2


def test_a_tree_is_clean_until_something_in_it_is_not_committed(tree: Path) -> None:
    assert is_clean(str(tree))
    put(tree, ".gitignore", "*.log\n")
    assert not is_clean(str(tree))
    commit(tree)
    put(tree, "x.log", "ignored")
    assert is_clean(str(tree))
    put(tree, "src/app.py", "changed\n")
    assert not is_clean(str(tree))
    git(tree, "add", "-A")
    assert not is_clean(str(tree))
    git(tree, "commit", "-q", "-m", "x")
    (tree / "src/app.py").unlink()
    assert not is_clean(str(tree))


def test_asking_whether_a_tree_is_clean_does_not_write_its_index(tree: Path, repository: Path) -> None:
    index = repository / ".git/worktrees/SYM-001/index"
    (tree / "src/app.py").touch()
    before = index.read_bytes()
    assert is_clean(str(tree))
    assert index.read_bytes() == before


def test_a_split_index_is_read_too(tree: Path) -> None:
    git(tree, "update-index", "--split-index")
    assert is_clean(str(tree))
    put(tree, "src/app.py", "changed\n")
    assert not is_clean(str(tree))


def test_nothing_that_an_agent_left_in_the_repository_is_run(tree: Path, repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho $0 >> {ran}\ncat\n")
    script.chmod(0o755)
    put(tree, ".gitattributes", "*.py filter=evil diff=evil\n*.md -diff\n")
    put(tree, "src/app.py", "one\n2\nthree\n")
    put(tree, "README.md", "# Hidden\n")
    commit(tree)
    hooks = repository / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"):
        (hooks / name).write_bytes(script.read_bytes())
        (hooks / name).chmod(0o755)
    names = "filter.evil.clean filter.evil.process diff.evil.textconv diff.evil.command diff.external core.pager"
    for name in (*names.split(), "core.fsmonitor", "core.sshCommand", "core.alternateRefsCommand", "gpg.program"):
        git(repository, "config", name, str(script))
    git(repository, "config", "log.showSignature", "true")
    (tree / "src/app.py").touch()
    assert commits_ahead(str(tree), "main") == 1
    assert "+# Hidden\n" in diff_against(str(tree), "main")
    assert changed_source_lines(str(tree), "main") == 4
    assert is_clean(str(tree))
    assert (head_of(str(tree)), branch_of(str(tree))) == (git(tree, "rev-parse", "HEAD").strip(), BRANCH)
    assert not ran.exists()


def test_replaced_objects_do_not_hide_a_change(tree: Path, repository: Path) -> None:
    put(tree, "src/app.py", "evil\n")
    commit(tree)
    git(tree, "replace", head_of(str(tree)), head_of(str(repository)))
    assert "+evil\n" in diff_against(str(tree), "main")
    assert commits_ahead(str(tree), "main") == 1


def test_variables_of_the_server_do_not_lead_git_elsewhere(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_PARAMETERS"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    assert branch_of(str(tree)) == BRANCH
    assert is_clean(str(tree))
    assert diff_against(str(tree), "main") == ""


def test_no_folder_of_ours_stays_behind(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "tmp"
    own.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    assert is_clean(str(tree))
    with pytest.raises(ValidationFailed):
        diff_against(str(tree), "nope")
    assert list(own.iterdir()) == []


def test_a_git_that_hangs_or_is_missing_is_told(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(ServiceUnavailable):
        head_of(str(tree))
    (programs / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setattr(asking, "TIMEOUT_S", 0.2)
    with pytest.raises(TimedOut):
        head_of(str(tree))
