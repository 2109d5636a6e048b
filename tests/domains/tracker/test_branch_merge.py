"""Merging in real repositories, without a database: what is refused, what stays, and what a crash leaves."""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rookery.core.errors import ConfigurationError, Conflict, ServiceUnavailable, ValidationFailed
from rookery.domains.tracker import branch_merge
from rookery.domains.tracker.branch_merge import Identity, Merged, Method, Stale, Wanted, merge_branch
from rookery.domains.tracker.branch_sight import see
from rookery.domains.tracker.pr_store import Standing, hash_of
from rookery.domains.tracker.worktree import diff_against
from tests.domains.tracker.desk import git

BOB = Identity("Bob Zürn", "bob@example.org")
LINES = "".join(f"line {number}\n" for number in range(1, 30))


@dataclass
class Ground:
    """A repository with `main` checked out, and a worktree with the reviewed branch `work`."""

    main: Path
    work: Path

    def write(self, where: Path, name: str, text: str) -> None:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(text, encoding="utf-8")

    def commit(self, where: Path, name: str, text: str) -> str:
        self.write(where, name, text)
        git(where, "add", "-A")
        git(where, "commit", "-q", "-m", f"change {name}")
        return self.at(where)

    def at(self, where: Path, name: str = "HEAD") -> str:
        return git(where, "rev-parse", name).strip()

    def wanted(self, method: Method = "merge") -> Wanted:
        """What is on the branch now, as if it had just been reviewed."""
        standing = Standing(self.at(self.work), hash_of(diff_against(str(self.work), "main")))
        return Wanted(
            folder=str(self.main), base="main", branch="work", standing=standing, method=method,
            message="Merge REP-1: log in\n", by=BOB,
        )  # fmt: skip

    def merge(self, wanted: Wanted | None = None) -> str:
        done = merge_branch(wanted or self.wanted())
        assert isinstance(done, Merged)
        assert done.commit == self.at(self.main, "main")
        return done.commit

    def refused(self, wanted: Wanted, kind: type[Exception] = Conflict) -> str:
        """What it is refused with; the base branch, its files and those of the worktree stay as they are."""
        before = [self.at(self.main, "main"), git(self.main, "status", "--porcelain"), self.at(self.work)]
        with pytest.raises(kind) as caught:
            merge_branch(wanted)
        assert [self.at(self.main, "main"), git(self.main, "status", "--porcelain"), self.at(self.work)] == before
        return str(caught.value)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    main = tmp_path / "repo"
    main.mkdir()
    git(main, "init", "-q", "-b", "main")
    made = Ground(main, tmp_path / "tree")
    made.commit(main, "README.md", LINES)
    git(main, "worktree", "add", "-q", "-b", "work", str(made.work))
    made.commit(made.work, "login.py", "def log_in() -> bool:\n    return True\n")
    return made


def test_a_folder_that_is_no_repository_or_lacks_the_base_branch_is_refused(ground: Ground, tmp_path: Path) -> None:
    with pytest.raises(ValidationFailed, match="not the root of a git working tree"):
        merge_branch(replace(ground.wanted(), folder=str(tmp_path)))
    assert "no branch trunk" in ground.refused(replace(ground.wanted(), base="trunk"))


def test_a_git_that_is_too_old_is_refused_before_anything_happens(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ground.wanted()
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.37.7\n", encoding="utf-8")
    old.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{old.parent}{os.pathsep}{os.environ['PATH']}")
        with pytest.raises(ConfigurationError, match=r"needs git 2\.38 or newer, and here is git version 2\.37\.7"):
            merge_branch(wanted)
    assert ground.merge(wanted)


@pytest.mark.parametrize("method", ["ff", "merge"])
def test_a_commit_after_the_review_makes_it_stale(ground: Ground, method: Method) -> None:
    wanted, before = ground.wanted(method), ground.at(ground.main)
    ground.commit(ground.work, "more.py", "x = 1\n")
    found = merge_branch(wanted)
    assert isinstance(found, Stale)
    assert "was reviewed" in found.why
    assert ground.at(ground.main) == before


def test_an_amended_commit_makes_it_stale_though_its_diff_is_the_same(ground: Ground) -> None:
    wanted = ground.wanted()
    git(ground.work, "commit", "-q", "--amend", "-m", "another message")
    assert isinstance(merge_branch(wanted), Stale)


def test_a_branch_that_is_gone_makes_it_stale(ground: Ground) -> None:
    wanted = ground.wanted()
    git(ground.main, "worktree", "remove", "--force", str(ground.work))
    git(ground.main, "branch", "-D", "work")
    found = merge_branch(wanted)
    assert isinstance(found, Stale)
    assert "is gone" in found.why


def test_a_base_branch_that_was_taken_back_makes_it_stale_since_more_would_come_with_it(ground: Ground) -> None:
    ground.commit(ground.main, "second.md", "second\n")
    git(ground.work, "reset", "-q", "--hard", "main")
    ground.commit(ground.work, "login.py", "x = 1\n")
    wanted = ground.wanted()
    git(ground.main, "reset", "-q", "--hard", "HEAD~1")
    found = merge_branch(wanted)
    assert isinstance(found, Stale)
    assert "taken back" in found.why


def test_a_base_branch_that_only_moved_on_changes_nothing_of_what_was_reviewed(ground: Ground) -> None:
    wanted = ground.wanted()
    moved = ground.commit(ground.main, "other.md", "other\n")
    merged = ground.merge(wanted)
    assert git(ground.main, "rev-parse", f"{merged}^1", f"{merged}^2").split() == [moved, wanted.standing.head]
    assert (ground.main / "other.md").exists()
    assert (ground.main / "login.py").exists()


def test_conflicts_are_reported_by_file(ground: Ground) -> None:
    ground.commit(ground.work, "README.md", LINES.replace("line 3\n", "line three\n"))
    ground.commit(ground.work, "docs/ä b.md", "mine\n")
    wanted = ground.wanted()
    ground.commit(ground.main, "README.md", LINES.replace("line 3\n", "line III\n"))
    ground.commit(ground.main, "docs/ä b.md", "theirs\n")
    said = ground.refused(wanted)
    assert "README.md, docs/ä b.md" in said
    assert "login.py" not in said


def test_a_fast_forward_is_refused_when_the_base_branch_moved_on(ground: Ground) -> None:
    wanted = ground.wanted("ff")
    ground.commit(ground.main, "other.md", "other\n")
    assert "cannot be fast-forwarded" in ground.refused(wanted)


def test_a_fast_forward_makes_no_commit(ground: Ground) -> None:
    wanted = ground.wanted("ff")
    assert ground.merge(wanted) == wanted.standing.head
    assert (ground.main / "login.py").exists()
    assert git(ground.main, "status", "--porcelain") == ""


def test_a_merge_commit_is_signed_by_the_person_and_keeps_the_author_of_the_work(ground: Ground) -> None:
    merged = ground.merge()
    told = git(ground.main, "log", "-1", "--format=%an <%ae>|%cn <%ce>|%s", merged).strip()
    assert told == "Bob Zürn <bob@example.org>|Bob Zürn <bob@example.org>|Merge REP-1: log in"
    assert git(ground.main, "log", "-1", "--format=%an", f"{merged}^2").strip() == "Ada"
    assert git(ground.main, "status", "--porcelain") == ""


def test_changes_in_other_files_of_the_main_checkout_stay(ground: Ground) -> None:
    ground.commit(ground.main, "kept.md", "committed\n")
    ground.write(ground.main, "kept.md", "edited\n")
    ground.write(ground.main, "README.md", LINES + "staged\n")
    git(ground.main, "add", "README.md")
    ground.write(ground.main, "new.md", "untracked\n")
    before = git(ground.main, "status", "--porcelain")
    ground.merge()
    assert git(ground.main, "status", "--porcelain") == before
    assert (ground.main / "kept.md").read_text(encoding="utf-8") == "edited\n"
    assert (ground.main / "login.py").exists()


def test_changes_in_the_same_files_are_named_and_nothing_is_touched(ground: Ground) -> None:
    ground.commit(ground.work, "README.md", LINES + "from the branch\n")
    ground.write(ground.main, "README.md", LINES + "by hand\n")
    said = ground.refused(ground.wanted())
    assert "README.md" in said
    assert "login.py" not in said
    assert (ground.main / "README.md").read_text(encoding="utf-8").endswith("by hand\n")


def test_a_file_that_git_does_not_know_is_not_overwritten(ground: Ground) -> None:
    ground.write(ground.main, "login.py", "mine\n")
    assert "login.py" in ground.refused(ground.wanted())
    assert (ground.main / "login.py").read_text(encoding="utf-8") == "mine\n"


def test_a_base_branch_that_is_not_checked_out_moves_and_no_working_tree_does(ground: Ground) -> None:
    git(ground.main, "checkout", "-q", "-b", "elsewhere")
    ground.write(ground.main, "README.md", "by hand\n")
    ground.merge()
    assert git(ground.main, "symbolic-ref", "--short", "HEAD").strip() == "elsewhere"
    assert not (ground.main / "login.py").exists()
    assert git(ground.main, "status", "--porcelain") == " M README.md\n"


def test_a_base_branch_that_is_checked_out_elsewhere_is_moved_there(ground: Ground, tmp_path: Path) -> None:
    git(ground.main, "checkout", "-q", "--detach")
    git(ground.main, "worktree", "add", "-q", str(tmp_path / "second"), "main")
    ground.merge()
    assert (tmp_path / "second" / "login.py").exists()
    assert git(tmp_path / "second", "status", "--porcelain") == ""
    assert not (ground.main / "login.py").exists()


@pytest.mark.parametrize(
    ("lock", "checked_out"), [("index.lock", True), ("refs/heads/main.lock", True), ("refs/heads/main.lock", False)]
)
def test_a_busy_repository_is_left_alone_and_it_is_said_so(
    ground: Ground, lock: str, checked_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_merge, "BUSY_S", 0.0)
    wanted, held = ground.wanted(), ground.main / ".git" / lock
    before = ground.at(ground.main, "main")
    if not checked_out:
        git(ground.main, "checkout", "-q", "--detach")
    held.touch()
    with pytest.raises(ServiceUnavailable, match="another process is at work"):
        merge_branch(wanted)
    held.unlink()
    assert ground.at(ground.main, "main") == before
    assert git(ground.main, "status", "--porcelain") == ""
    ground.merge(wanted)


def test_a_lock_that_goes_away_is_waited_for(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    held = ground.main / ".git" / "index.lock"
    held.touch()
    monkeypatch.setattr(branch_merge.time, "sleep", lambda _: held.unlink(missing_ok=True))
    ground.merge()


def test_a_base_branch_that_moves_at_the_last_moment_is_merged_again(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, moves = branch_merge._prepare, iter(range(2))  # pyright: ignore[reportPrivateUsage]

    def late(*arguments: object) -> str:
        made = prepare(*arguments)  # type: ignore[arg-type]
        for number in moves:
            ground.commit(ground.main, f"late{number}.md", "late\n")
            break
        return made

    monkeypatch.setattr(branch_merge, "_prepare", late)
    ground.merge()
    assert {"late0.md", "late1.md", "login.py"} <= set(os.listdir(ground.main))


def test_a_base_branch_that_never_rests_is_given_up(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = branch_merge._prepare  # pyright: ignore[reportPrivateUsage]

    def late(*arguments: object) -> str:
        made = prepare(*arguments)  # type: ignore[arg-type]
        ground.commit(ground.main, "late.md", os.urandom(8).hex())
        return made

    monkeypatch.setattr(branch_merge, "_prepare", late)
    with pytest.raises(Conflict, match="moved by others each time"):
        merge_branch(ground.wanted())
    assert not (ground.main / "login.py").exists()


def test_what_is_merged_already_is_found_and_not_merged_twice(ground: Ground) -> None:
    wanted = ground.wanted()
    first = ground.merge(wanted)
    git(ground.main, "worktree", "remove", "--force", str(ground.work))
    git(ground.main, "branch", "-D", "work")
    assert merge_branch(wanted) == Merged(first, already=True)
    later = ground.commit(ground.main, "later.md", "later\n")
    assert merge_branch(wanted) == Merged(later, already=True)
    assert git(ground.main, "rev-list", "--merges", "--count", "main").strip() == "1"


def test_a_merge_of_their_own_in_the_main_checkout_is_not_disturbed(ground: Ground) -> None:
    git(ground.main, "checkout", "-q", "-b", "side")
    ground.commit(ground.main, "README.md", "side\n")
    git(ground.main, "checkout", "-q", "main")
    ground.commit(ground.main, "README.md", "main\n")
    wanted = ground.wanted()
    with pytest.raises(subprocess.CalledProcessError):
        git(ground.main, "merge", "-q", "side")
    assert "was not moved" in ground.refused(wanted) or "README.md" in ground.refused(wanted)
    assert (ground.main / ".git" / "MERGE_HEAD").exists()


def test_hooks_and_programs_that_an_agent_put_into_the_repository_do_not_run(ground: Ground, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    for name in ("post-merge", "reference-transaction", "post-checkout", "pre-merge-commit"):
        hook = ground.main / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
        hook.chmod(0o755)
    ground.commit(ground.work, ".gitattributes", "*.py filter=evil\n*.md merge=evil\n")
    for setting in ("core.fsmonitor", "merge.evil.driver", "filter.evil.smudge", "filter.evil.process"):
        git(ground.work, "config", setting, f"touch {ran}")
    git(ground.work, "config", "core.worktree", str(tmp_path))
    wanted = ground.wanted()
    ran.unlink(missing_ok=True)
    merge_branch(wanted)
    assert not ran.exists()
    assert (ground.main / "login.py").exists()


def test_a_process_that_dies_while_it_merges_leaves_nothing_half_done(ground: Ground) -> None:
    """Killed once in each step after the commit is prepared; the next call brings it to its end, once."""
    wanted = ground.wanted()
    program = (
        "import os, signal, sys\n"
        "from rookery.domains.tracker import branch_merge as b\n"
        "from rookery.domains.tracker.pr_store import Standing\n"
        "def die(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        "step, folder, head, diff = sys.argv[1:]\n"
        "if step == 'prepared': b._move = die\n"
        "else:\n"
        "    move = b._move\n"
        "    b._move = lambda *a: (move(*a), die())\n"
        "b.merge_branch(b.Wanted(folder=folder, base='main', branch='work', standing=Standing(head, diff),\n"
        "    method='merge', message='m', by=b.Identity('Bob', 'bob@example.org')))\n"
    )
    for step in ("prepared", "moved"):
        done = subprocess.run(
            [sys.executable, "-c", program, step, wanted.folder, *wanted.standing], check=False, timeout=60
        )
        assert done.returncode == -9
        assert git(ground.main, "status", "--porcelain") == ""
    found = merge_branch(wanted)
    assert isinstance(found, Merged)
    assert found.already
    assert git(ground.main, "rev-list", "--merges", "--count", "main").strip() == "1"


def test_all_branches_of_a_project_are_seen_at_once(ground: Ground) -> None:
    head, first = ground.at(ground.work), ground.at(ground.main)
    sight = see(str(ground.main), "main", {"work": head, "gone": first, "wor": head, "lost": "0" * 40})
    assert sight.tips == {"work": head}
    assert (sight.has(head), sight.has(first), sight.has("0" * 40)) == (False, True, False)
    git(ground.main, "merge", "-q", "--ff-only", "work")
    assert see(str(ground.main), "main", {"work": head}).has(head)
    with pytest.raises(ValidationFailed, match="no branch trunk"):
        see(str(ground.main), "trunk", {})
