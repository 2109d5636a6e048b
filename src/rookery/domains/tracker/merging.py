"""Merging an approved pull request: git first, then the record. What a crash cut off in between is recorded next time.

A project without a folder has no repository here; for it only the record is made.
"""

import os
from dataclasses import dataclass

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, ValidationFailed
from rookery.db.tx import Tx
from rookery.domains.tracker.branch_merge import Identity, Merged, Method, Stale, Wanted, merge_branch
from rookery.domains.tracker.pr_store import Row, Standing, decide_pr, latest_pr
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import issue_changes
from rookery.files.git import run_git
from rookery.identity.store import IdentityStore
from rookery.lifecycle.states import ISSUE, PR, Who

NO_MAIL = "rookery.invalid"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An approved pull request, where its repository is, and the name of whoever merges it."""

    issue: Row
    pr: Row
    folder: str | None
    name: str

    @property
    def standing(self) -> Standing | None:
        """What was approved; None if that is not known by commit."""
        pr = self.pr
        return Standing(pr.approved_head, pr.approved_diff) if pr.approved_head and pr.approved_diff else None


def candidate(tx: Tx, actor: Actor, ref: str, who: Who) -> Candidate:
    """The pull request of an issue of the bound project, if `who` may merge it as it is."""
    store = Issues(tx, actor)
    issue = store.ours(ref)
    ISSUE.check(issue.status, "done", who)
    pr = the_pr(tx, issue)
    PR.check(pr.status, "merged", who)
    name = IdentityStore(tx, actor.tenant).person(actor.subject).name if who == "human" else actor.subject
    return Candidate(issue, pr, Projects(tx, actor).settings().path, name)


def the_pr(tx: Tx, issue: Row) -> Row:
    """The newest revision; Conflict if there is none."""
    pr = latest_pr(tx, issue.id)
    if pr is None:
        raise Conflict(
            f"{issue.identifier} has no pull request",
            hint="one is opened when complete_phase claims that ready is done",
        )
    return pr


def bring_in(found: Candidate, method: Method, actor: Actor) -> Merged | Stale | None:
    """Let the base branch have the approved commit; None if there is no repository. Blocks."""
    if found.folder is None:
        return None
    if found.standing is None:
        raise Conflict(
            f"the diff of {found.issue.identifier} that was reviewed is not known to be that of a commit",
            hint="send it back with set_issue_status and let complete_phase claim it, or merge by hand and set it done",
        )
    issue, pr = found.issue, found.pr
    if found.standing != (pr.head, pr.diff_hash):
        return Stale("another commit than the revision's was approved")
    title = " ".join(issue.title.split())[:200]
    wanted = Wanted(
        folder=found.folder,
        base=pr.base,
        branch=pr.branch,
        standing=found.standing,
        method=method,
        message=f"Merge {issue.identifier}: {title}\n\nRevision {pr.revision}, branch {pr.branch}.\n",
        by=identity_of(actor, found.name),
    )
    return merge_branch(wanted)


def record_merge(
    tx: Tx, actor: Actor, found: Candidate, merged: Merged | None, who: Who, reason: str | None = None
) -> tuple[Row, Row]:
    """Record what git has: the issue, done, and the pull request, merged. It can be done once."""
    store = Issues(tx, actor)
    # The issue first, as everywhere: then no two transactions wait for each other.
    issue = store.ours(found.issue.id, lock=True)
    mine = who == "human" and merged is not None and not merged.already
    if mine and (recorded := _made_good(tx, issue, found)) is not None:
        return issue, recorded
    why = "its pull request was merged" if merged is None else f"its pull request is in {found.pr.base}"
    done = store.move(issue, "done", who, why=why)
    current = the_pr(tx, issue)
    if current.id != found.pr.id:
        raise Conflict(f"{issue.identifier} has a newer revision by now", hint="merge that one")
    standing = None if merged is None else found.standing
    commit = None if merged is None else merged.commit
    pr = decide_pr(tx, actor, issue, current, "merged", who, reason=reason, found=standing, merged_in=commit)
    if told := _told(pr, merged, reason):
        store.comment(issue, told)
    return done, pr


def _made_good(tx: Tx, issue: Row, found: Candidate) -> Row | None:
    """The pull request, if the orchestrator has found the merge in git and was faster to write it down."""
    if issue.status != "done":
        return None
    current = the_pr(tx, issue)
    moves = sa.select(issue_changes.c.subject).where(
        issue_changes.c.issue_id == issue.id, issue_changes.c.field == "status"
    )
    by = tx.scalar(moves.order_by(issue_changes.c.seq.desc()).limit(1))
    return current if by == "orchestrator" and current.id == found.pr.id and current.status == "merged" else None


def _told(pr: Row, merged: Merged | None, reason: str | None) -> str | None:
    because = f": {reason}" if reason else ""
    if merged is None:
        return f"**Merged** (revision {pr.revision}){because}" if reason else None
    if merged.already:
        return f"**Merged** (revision {pr.revision}): it was found in {pr.base} ({merged.commit[:12]}){because}"
    return f"**Merged** (revision {pr.revision}) into {pr.base} as {merged.commit[:12]}{because}"


def void(tx: Tx, actor: Actor, found: Candidate, stale: Stale) -> bool:
    """Close a pull request that is not what its branch has; the issue goes back to todo. False if it is closed."""
    store = Issues(tx, actor)
    issue = store.ours(found.issue.id, lock=True)
    current = the_pr(tx, issue)
    if current.id != found.pr.id or "closed" not in PR.legal(current.status):
        return False
    word = "The approval" if current.status == "approved" else "The review"
    decide_pr(tx, actor, issue, current, "closed", "orchestrator", reason=stale.why)
    store.comment(issue, f"{word} of revision {current.revision} is void: {stale.why}. It has to be claimed again.")
    if issue.status == "review":
        store.move(issue, "todo", "orchestrator", why=stale.why)
    return True


def identity_of(actor: Actor, name: str) -> Identity:
    """How a commit of theirs is signed: the owner as in the git settings of the machine, others by their name here.

    Settings of the repository do not count, since agents can write them.
    """
    own = _settings_of_the_user() if actor.kind == "human" and actor.role == "owner" else None
    letters = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower())
    return own or Identity(name, f"{letters.strip('-') or 'person'}@{NO_MAIL}")


def _settings_of_the_user() -> Identity | None:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    for file in (os.path.expanduser("~/.gitconfig"), os.path.join(home, "git", "config")):
        name, email = (_setting(file, f"user.{what}") for what in ("name", "email"))
        if name and email:
            return Identity(name, email)
    return None


def _setting(file: str, name: str) -> str:
    if not os.path.isfile(file):
        return ""
    try:
        answer = run_git(("config", "--file", file, "--includes", "--get", name), {}, os.path.sep, accept=(0, 1))
    except ValidationFailed:
        return ""
    return answer.decode(errors="replace").strip()
