"""Taking an issue to work on it, and giving it back. Every refusal says who has it, or what it waits for."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams, NotFound
from rookery.db.tx import Tx
from rookery.domains.tracker.lease_store import NEEDS_PLANNING, Leases
from rookery.domains.tracker.store import Issues, author
from rookery.identity.store import begin_change
from rookery.lifecycle.states import ISSUE, PHASE_PROFILES, Who

Row = sa.Row[Any]
FREE = "list_ready_issues shows what is free"


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease that the actor now has on the issue; `renewed` if it had it before."""

    issue: Row
    renewed: bool


def own_phases(actor: Actor) -> list[str]:
    """The phases that the actor's profile works in; empty if it has none of its own."""
    return [phase for phase, profiles in PHASE_PROFILES.items() if actor.profile in profiles]


class LeaseMoves:
    """Claims and releases issues of the actor's project."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor
        self.issues = Issues(tx, actor)
        self.leases = Leases(tx, actor)

    @property
    def _who(self) -> Who:
        return "human" if self.actor.kind == "human" else "agent"

    @property
    def _name(self) -> str:
        actor = self.actor
        return f"{actor.agent_name} ({actor.profile})" if actor.agent_name and actor.profile else author(actor)

    def claim(self, text: str | None, minutes: int, fence: int | None = None) -> Claim:
        """Take a lease on the named, bound or first ready issue. Of any number who try at once one gets it.

        Whoever holds it already keeps the number and gets a later end. The claim binds the session to the issue.
        """
        own = self.leases.own()
        if own is not None and self.actor.shared_session and fence != own.fence:
            raise Conflict(
                f"{own.identifier} is held through the same token until {_at(own.lease_until_ms)}",
                hint="if it is yours, give its number as fence; agents that work at once need a token each",
            )
        issue = self._wanted(text, own, fence)
        if own is not None and own.id != issue.id:
            raise Conflict(
                f"this session holds {own.identifier} until {_at(own.lease_until_ms)}", hint="release_issue first"
            )
        _check_fence(issue, fence)
        kept = self.leases.renew(issue, minutes, self._name, any_session=fence is not None)
        taken = kept or self.leases.take(issue, minutes, self._name)
        if taken is None:
            raise self._refusal(issue)
        if kept is None:
            self._note(issue, taken)
        if own is None and self.actor.issue is None:
            begin_change(self.tx)
        return Claim(taken, renewed=kept is not None)

    def release(self, text: str | None, fence: int | None = None, reason: str | None = None) -> Row:
        """End the lease of the named, bound or held issue, which others can claim then. For its holder, or a person."""
        found = self.issues.ours(text) if text is not None else self._own_issue()
        issue = self.leases.look(found)
        _check_fence(issue, fence)
        if not self._may_end(issue, fence):
            raise Conflict(f"{issue.identifier} is not yours to release: {_state(issue)}", hint=FREE)
        moved = self.issues.move(issue, "todo", self._who, why=reason)
        if reason:
            self.issues.comment(issue, f"**released**: {reason}")
        return moved

    def _wanted(self, text: str | None, own: Row | None, fence: int | None) -> Row:
        bound = self.actor.issue
        if text is not None:
            issue = self.issues.ours(text)
            if bound not in (None, issue.id) and own is None:
                raise NotFound(f"there is no issue {text}", hint="list_issues shows those of this project")
            return issue
        if bound is not None:
            return self.issues.bound()
        if own is not None:
            return own
        if fence is not None:
            raise InvalidParams("the number is that of an issue, and none is named", hint="give issue_id too")
        ready = self.leases.first_ready(own_phases(self.actor))
        if ready is None:
            whom = f" for a {self.actor.profile}" if self.actor.profile else ""
            raise NotFound(f"no issue is ready{whom}", hint="list_issues shows what is open; try again later")
        return ready

    def _own_issue(self) -> Row:
        if self.actor.issue is not None:
            return self.issues.bound()
        own = self.leases.own()
        if own is None:
            raise Conflict("this session holds no issue", hint="give issue_id and the number from claim_issue")
        return own

    def _may_end(self, issue: Row, fence: int | None) -> bool:
        if self.actor.kind == "human":
            return issue.status == "in_progress" and issue.lease_until_ms is not None
        same_session = issue.lease_session == self.actor.session and not self.actor.shared_session
        same = same_session or fence is not None
        return bool(issue.live) and issue.lease_subject == self.actor.subject and same

    def _note(self, old: Row, new: Row) -> None:
        if old.status == new.status:
            self.issues.note(old, "held_by", old.lease_name, new.lease_name, "claimed: the lease before had run out")
            return
        ISSUE.check(old.status, new.status, self._who)
        self.issues.note(old, "status", old.status, new.status, f"claimed by {new.lease_name}")

    def _refusal(self, seen: Row) -> Conflict:
        issue = self.leases.look(seen)
        name = issue.identifier
        if issue.live or issue.status not in ("todo", "in_progress"):
            return Conflict(f"{name} cannot be claimed: {_state(issue)}", hint=FREE)
        waits = ", ".join(f"{each.identifier} ({each.status})" for each in self.leases.waits_for(issue))
        if waits:
            return Conflict(f"{name} waits for {waits}", hint=f"it can be claimed when these are done; {FREE}")
        if self.actor.profile == "worker" and NEEDS_PLANNING in self.issues.labels([issue])[issue.id]:
            return Conflict(f"{name} is labelled {NEEDS_PLANNING}, so it waits for a planner", hint=FREE)
        if issue.status == "in_progress" and issue.lease_until_ms is None:
            return Conflict(f"{name} cannot be claimed: {_state(issue)}", hint=FREE)
        return Conflict(f"{name} has just been changed by another", hint="get_issue_status, then again")


def _check_fence(issue: Row, fence: int | None) -> None:
    if fence is not None and fence != issue.fence:
        raise Conflict(
            f"{issue.identifier} was claimed again since: its number is {issue.fence}, not {fence}",
            hint="stop working on it; claim_issue without a number asks for it anew",
        )


def _state(issue: Row) -> str:
    """Why nobody else can have it now."""
    if issue.live:
        return f"{issue.lease_name} holds it until {_at(issue.lease_until_ms)}"
    if issue.status == "blocked":
        return f"it is blocked and waits for {'its subtasks' if issue.blocked_on == 'subtasks' else 'a person'}"
    if issue.status == "in_progress" and issue.lease_until_ms is not None:
        return f"the lease of {issue.lease_name} ran out at {_at(issue.lease_until_ms)}"
    if issue.status == "in_progress":
        return "it is in progress without a lease, with whom it was given to"
    return f"it is {issue.status} and nobody holds it"


def _at(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
