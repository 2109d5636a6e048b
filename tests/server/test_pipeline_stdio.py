"""The whole way of an issue, as agents and a person go it: real stdio connections, a real server, a real repository."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from rookery.core.tool import PROFILES
from rookery.domains.tracker.contract import packaged_contract
from rookery.domains.tracker.worktree import Marker, write_marker
from tests.core.seed_names import MATRIX
from tests.domains.tracker.desk import git
from tests.server.conftest import Place
from tests.server.processes import Client, error_code
from tests.warm import run

BEYOND = {"list_ready_issues": "WRJSAPI", "claim_issue": "WRAP", "release_issue": "WRAP"}
BUILT = {**MATRIX, **BEYOND}


class Office:
    """A home with a server, a project with a repository, and an issue with a worktree."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.repository = folder / "repo"
        self.repository.mkdir()
        git(self.repository, "init", "-q", "-b", "main")
        (self.repository / "README.md").write_text("# A project\n", encoding="utf-8")
        git(self.repository, "add", "-A")
        git(self.repository, "commit", "-q", "-m", "first")
        place.session("--as-owner").call("create_project", slug="repo", path=str(self.repository))
        self.owner = place.session("--as-owner", "--project-slug", "repo")
        self.issue = self.owner.call("create_issue", title="Log in", labels=["phase:research"])["identifier"]
        self.worktree = folder / "tree"
        branch = f"symphony/{self.issue}"
        git(self.repository, "worktree", "add", "-q", "-b", branch, str(self.worktree), "main")
        write_marker(str(self.worktree), Marker(issue=self.issue, branch=branch))

    def agent(self, profile: str, *flags: str, direct: bool = False) -> Client:
        """A session of that profile on the issue, started in its worktree."""
        bound = ("--agent-type", profile, "--issue-id", self.issue, "--worktree-path", str(self.worktree))
        return self.place.session(*bound, *flags, cwd=self.worktree, direct=direct)

    def advance(self) -> str:
        """What the orchestrator does on its tick, here from another process."""
        command = [sys.executable, "-m", "rookery.entry", "issues", "advance", "--project", "repo"]
        done = run(command, env=self.place.environment(), limit_s=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write_artifact(self, phase: str) -> tuple[str, str]:
        contract = packaged_contract(phase)
        assert contract.artifact is not None
        sections = "".join(f"## {name}\n\nWhat there is to say.\n\n" for name in contract.required_sections)
        path = f"docs/tickets/{self.issue}/{contract.artifact}"
        file = self.worktree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {phase}\n\n{sections}", encoding="utf-8")
        return path, hashlib.sha256(file.read_bytes()).hexdigest()

    def state(self) -> tuple[str, str]:
        told = self.owner.call("get_issue_status", issue_id=self.issue)
        return told["status"], told["labels"][0]


@pytest.fixture
def office(place: Place, tmp_path: Path, database_url: str) -> Office:
    if database_url.startswith("postgresql"):
        place.env["ROOKERY_DATABASE"] = database_url
    # Here the steps are taken by hand, one at a time.
    place.env["ROOKERY_ORCHESTRATOR"] = "false"
    place.server()
    return Office(place, tmp_path)


def complete(office: Office, session: Client, phase: str, **changes: Any) -> dict[str, Any]:
    path, digest = office.write_artifact(phase)
    claim = {
        "completed_phase": phase,
        "contract_version": 1,
        "artifact_path": path,
        "artifact_hash": digest,
        "summary": f"{phase} is done",
        "recommended_next_phase": "ready",
        "project_path": str(office.worktree),
    }
    return session.call("complete_phase", **{**claim, **changes})


def test_an_issue_goes_from_research_to_a_merged_pull_request(office: Office) -> None:
    judge = office.agent("judge")
    steps = (("research", "researcher"), ("architecture", "architect"), ("grooming", "planner"))
    for phase, profile in steps:
        session = office.agent(profile)
        assert session.call("claim_issue")["fence"] >= 1
        assert office.state() == ("in_progress", f"phase:{phase}")
        assert session.call("verify_workspace")["valid"] is True
        assert error_code(session.call("approve_phase", phase=phase, artifact_hash="0" * 64)) == "PERMISSION_DENIED"
        refused = complete(office, session, phase, artifact_hash="0" * 64)
        assert error_code(refused) == "VALIDATION_ERROR"
        assert "id" in complete(office, session, phase)
        assert "awaiting_verdict" in office.advance()
        assert office.state() == ("review", f"phase:{phase}")
        stale = judge.call("approve_phase", phase=phase, artifact_hash="f" * 64)
        assert error_code(stale) == "CONFLICT"
        _, digest = office.write_artifact(phase)
        assert "id" in judge.call("approve_phase", phase=phase, artifact_hash=digest, reason="complete")
        assert "approved" in office.advance()
        assert office.state()[0] == "todo"
        session.end()
    assert office.state() == ("todo", "phase:ready")
    work_and_merge(office, judge)


def work_and_merge(office: Office, judge: Client) -> None:
    worker = office.agent("worker")
    worker.call("claim_issue")
    (office.worktree / "login.py").write_text("def login() -> bool:\n    return True\n", encoding="utf-8")
    (office.worktree / "test_login.py").write_text("def test_login() -> None: ...\n", encoding="utf-8")
    git(office.worktree, "add", "-A")
    git(office.worktree, "commit", "-q", "-m", "log in")
    ready = {"completed_phase": "ready", "summary": "logs in", "project_path": str(office.worktree)}
    assert "id" in worker.call("complete_phase", **ready)
    assert "pr_opened" in office.advance()
    assert office.state() == ("review", "phase:ready")
    assert error_code(worker.call("approve_pr")) == "PERMISSION_DENIED"
    assert judge.call("approve_pr", reason="fine")["pr_status"] == "approved"
    assert office.state()[0] == "review"
    assert office.owner.call("merge_pr", issue_id=office.issue)["pr_status"] == "merged"
    assert office.state()[0] == "done"
    told = office.owner.call("get_issue", issue_id=office.issue, include_history=True)
    phases = [each["new"] for each in told["history"] if each["field"] == "phase"]
    assert phases == ["architecture", "grooming", "ready"]
    assert all(each["processed"] for each in told["findings"])
    assert office.owner.call("verify_audit")["intact"] is True


@pytest.mark.parametrize("direct", [False, True])
def test_each_profile_has_its_tools_and_is_refused_the_others(place: Place, tmp_path: Path, direct: bool) -> None:
    place.server()
    office = Office(place, tmp_path)
    for letter, profile in PROFILES.items():
        session = office.agent(profile, direct=direct)
        mine = {name for name, letters in BUILT.items() if letter in letters}
        assert session.tool_names() & set(BUILT) == mine, profile
        for name in sorted(set(BUILT) - mine):
            assert error_code(session.call(name)) == "PERMISSION_DENIED", (profile, name)
        session.end()


def test_a_session_on_an_issue_that_is_not_there_does_not_start(office: Office) -> None:
    for name in ("REP-999", "iss-nothing", "nonsense"):
        client = office.place.client("--agent-type", "worker", "--issue-id", name)
        code, _, errors = client.end()
        assert code != 0
        assert f"there is no issue {name}" in errors
