"""What has to hold after every commit, checked from the changes that the commit made."""

import json
from collections.abc import Callable
from typing import Any

from rookery.engine.tables import ENDED
from rookery.lifecycle.states import PHASES
from tests.engine.simulation.disk import Disk
from tests.engine.simulation.rows import watch_rows
from tests.engine.simulation.truth import BAD, Truth

LIVE = ("queued", "running")
PEOPLE = "people"
Change = tuple[str, dict[str, Any] | None, dict[str, Any]]


class Watch:
    """Follows a history. `violations` are sentences; none of them should ever be there."""

    def __init__(self, disk: Disk, truth: Truth, leads: Callable[[str], str | None]) -> None:
        self.violations: list[str] = []
        self.counts: dict[str, int] = {}
        self._disk = disk
        self._truth = truth
        self._leads = leads
        self._live_runs: dict[str, dict[str, Any]] = {}
        self._live_dispatches: dict[str, dict[str, Any]] = {}
        self._issues: dict[str, dict[str, Any]] = {}
        self._processed: set[str] = set()
        self.commit_number = 0
        watch_rows(disk.driver)
        disk.on_commit.append(self._committed)

    def wrong(self, sentence: str) -> None:
        at = self._disk.loop.now_s
        self.violations.append(f"{sentence} (at {at:.3f}, commit {self.commit_number})")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _committed(self, who: str, noted: list[tuple[Any, ...]]) -> None:
        self.commit_number += 1
        if not noted:
            return
        changes: list[Change] = [
            (table, None if old is None else json.loads(old), json.loads(new)) for table, old, new in noted
        ]
        self._findings_of_given_up(changes)
        for table, old, new in changes:
            self._tell(who, table, old, new)
            if table == "agent_runs":
                self._keep(self._live_runs, new, live=new["status"] in LIVE)
            elif table == "dispatches":
                self._keep(self._live_dispatches, new, live=new["state"] != ENDED)
                if old is None:
                    self._only_a_leader_dispatches(who, new)
            elif table == "finding_processing":
                self._once(old, new)
        self._one_at_a_time("runs", self._live_runs)
        self._one_at_a_time("dispatches", self._live_dispatches)
        for table, old, new in changes:
            if table == "issues":
                self._issues[new["id"]] = new
                if old is not None and old["phase"] != new["phase"]:
                    self._no_phase_skipped(who, old, new, changes)
            elif table == "finding_processing" and old is not None and new["outcome"] == "approved":
                self._right_artifact(new, changes)
            elif table == "prs" and old is not None and old["status"] != new["status"]:
                self._right_change(who, new)

    def _tell(self, who: str, table: str, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        self._count(table)
        shown = {name: value for name, value in new.items() if old is None or old[name] != value}
        name = new.get("identifier") or new.get("id") or new.get("finding_id") or new.get("issue_id")
        self._disk.log(who, f"    {table} {'+' if old is None else '~'} {name} {shown}")

    def _keep(self, living: dict[str, dict[str, Any]], new: dict[str, Any], *, live: bool) -> None:
        if live:
            living[new["id"]] = new
        else:
            living.pop(new["id"], None)

    def _one_at_a_time(self, what: str, living: dict[str, dict[str, Any]]) -> None:
        seen: dict[str, str] = {}
        for each in living.values():
            issue: str | None = each["issue_id"]
            if issue is None:
                continue
            if issue in seen:
                self.wrong(f"two {what} of one issue live at once: {seen[issue]} and {each['id']}")
            seen[issue] = each["id"]

    def _only_a_leader_dispatches(self, who: str, new: dict[str, Any]) -> None:
        holder = self._disk.driver.execute("SELECT holder FROM orchestrator_leaders").fetchone()
        if holder is None or holder[0] != self._leads(who):
            self.wrong(f"{who} has dispatched {new['id']} without leading")

    def _once(self, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        finding = new["finding_id"]
        if finding in self._processed:
            self.wrong(f"the finding {finding} was processed twice")
        if new["processed_ms"] is not None:
            self._processed.add(finding)
            self._count(f"finding {new['outcome']}")

    def _findings_of_given_up(self, changes: list[Change]) -> None:
        """Looked at before the changes of the commit itself count: nothing ends with the claim that it makes.

        One that succeeded was not given up: a claim repeated while its agent ended is a later one of the same work.
        """
        for table, old, new in changes:
            if table == "findings" and old is None and new["category"] == "phase_completion" and new["run_id"]:
                dispatch = self._disk.driver.execute(
                    "SELECT id, outcome FROM dispatches WHERE run_id = ?", (new["run_id"],)
                ).fetchone()
                if dispatch is None or dispatch[1] == "succeeded" or dispatch[0] in self._live_dispatches:
                    continue
                self.wrong(f"the claim {new['id']} came from {dispatch[0]}, which was given up before")

    def _no_phase_skipped(self, who: str, old: dict[str, Any], new: dict[str, Any], changes: list[Change]) -> None:
        if who == PEOPLE:
            self._truth.by_person.add((new["id"], new["phase"]))
            return
        labels = {row[0] for row in self._rows("SELECT label FROM issue_labels WHERE issue_id = ?", new["id"])}
        pipeline = self._pipeline(new["project_id"])
        first, last = PHASES.index(old["phase"]), PHASES.index(new["phase"])
        if last <= first:
            self.wrong(f"{new['identifier']} went back from {old['phase']} to {new['phase']} by itself")
        for phase in PHASES[first + 1 : last]:
            if phase in pipeline and f"skip:{phase}" not in labels:
                self.wrong(f"{new['identifier']} skipped {phase} without its label")
        claimed = [
            each["finding_id"]
            for table, _, each in changes
            if table == "finding_processing" and each["issue_id"] == new["id"] and each["outcome"] == "approved"
        ]
        phases = {self._value("SELECT phase FROM phase_claims WHERE finding_id = ?", claim) for claim in claimed}
        skipped = f"skip:{old['phase']}" in labels or old["phase"] not in pipeline
        if old["phase"] not in phases and not skipped:
            self.wrong(f"{new['identifier']} left {old['phase']} without a claim, and without its label")

    def _right_artifact(self, new: dict[str, Any], changes: list[Change]) -> None:
        """An approved claim: by a verdict about the same text, or one that nobody has to judge."""
        claim = self._rows(
            "SELECT phase, artifact_hash, issue_id FROM phase_claims WHERE finding_id = ?", new["finding_id"]
        )
        if not claim:
            return
        phase, digest, issue_id = claim[0]
        verdicts = [
            each["finding_id"]
            for table, _, each in changes
            if table == "finding_processing"
            and each["finding_id"] != new["finding_id"]
            and each["issue_id"] == issue_id
        ]
        if not verdicts:
            if phase not in self._unjudged(issue_id):
                self.wrong(f"the {phase} of {issue_id} was approved by nobody")
            return
        for verdict in verdicts:
            payload = json.loads(self._value("SELECT payload FROM findings WHERE id = ?", verdict))
            if payload["artifact_hash"] != digest or payload["phase"] != phase:
                self.wrong(f"the verdict {verdict} was applied to {phase} {digest[:12]}, not to what it is about")
            if payload["verdict"] != "approved":
                self.wrong(f"the verdict {verdict} rejects, and {phase} was approved")
        if digest not in self._truth.good_artifacts:
            self.wrong(f"the {phase} artifact {digest[:12]} was approved, which no judge has approved")

    def _right_change(self, who: str, new: dict[str, Any]) -> None:
        if new["status"] not in ("approved", "merged"):
            return
        self._count(f"pr {new['status']}")
        diff, head = self._rows("SELECT diff, head FROM prs WHERE id = ?", new["id"])[0]
        if f"+{BAD}" in diff:
            self.wrong(f"revision {new['revision']} of {new['issue_id']} is bad and was {new['status']} by {who}")
        if new["status"] == "merged" and head in self._truth.left_behind:
            self.wrong(f"revision {new['revision']} of {new['issue_id']} was merged, which its branch had left behind")

    def _pipeline(self, project_id: str) -> tuple[str, ...]:
        settings = self._value("SELECT settings FROM tracker_projects WHERE project_id = ?", project_id)
        return tuple(json.loads(settings or "{}").get("pipeline", PHASES))

    def _unjudged(self, issue_id: str) -> tuple[str, ...]:
        project = self._value("SELECT project_id FROM issues WHERE id = ?", issue_id)
        settings = self._value("SELECT settings FROM tracker_projects WHERE project_id = ?", project)
        return tuple(json.loads(settings or "{}").get("unjudged", ()))

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._disk.driver.execute(query, values).fetchall()

    def _value(self, query: str, *values: Any) -> Any:
        row = self._disk.driver.execute(query, values).fetchone()
        return None if row is None else row[0]
