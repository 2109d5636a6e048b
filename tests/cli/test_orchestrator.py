"""The commands with which the owner lets agents work by themselves, and sees what they do."""

from pathlib import Path

import pytest

from rookery.db.database import open_database
from rookery.db.tx import Tx
from rookery.engine.dispatches import Dispatches, NewDispatch
from rookery.engine.leading import Leadership
from rookery.identity.store import DEFAULT_TENANT, IdentityStore
from tests.cli.terminal import Terminal

ON = ("--project", "shop")
SET = ("orchestrator", "configure", *ON)

REFUSED: tuple[tuple[tuple[str, str], str], ...] = (
    (("--max-agents", "-1"), "max_agents cannot be -1"),
    (("--max-agents", "1001"), "between 0 and 1000"),
    (("--role-cap", "cook=1"), "there is no role cook"),
    (("--role-cap", "worker=-2"), "role_caps.worker cannot be -2"),
    (("--agent", "cook=default"), "there is no role cook"),
    (("--agent", "worker=eve"), "there is no agent eve"),
    (("--model", "cook=opus"), "known: judge, worker, planner"),
    (("--prompt", "memries=5"), "there is no part of the prompt memries"),
    (("--prompt", "memories=-5"), "prompt.memories cannot be -5"),
    (("--hook-limit-s", "0"), "hooks.limit_s cannot be 0"),
    (("--max-retries", "21"), "max_retries cannot be 21"),
    (("--run-limit-s", "0"), "run_limit_s cannot be 0"),
    (("--max-turns", "0"), "max_turns cannot be 0"),
    (("--gate-limit-s", "86401"), "gate_limit_s cannot be 86401"),
    (("--daily-budget", "-1"), "daily_budget_usd cannot be -1"),
    (("--issue-budget", "nan"), "issue_budget_usd cannot be nan"),
    (("--run-budget", "1e9"), "run_budget_usd cannot be"),
    (("--scan-batch", "0"), "scan_batch cannot be 0"),
    (("--scan-every-s", "0"), "scan_every_s cannot be 0"),
    (("--intake-batch", "101"), "intake_batch cannot be 101"),
)


@pytest.fixture
def shop(terminal_on: Terminal, tmp_path: Path) -> Terminal:
    """A terminal whose home has a project with a folder."""
    (tmp_path / "shop").mkdir()
    terminal_on.ok("projects", "create", "shop", "--path", str(tmp_path / "shop"))
    return terminal_on


def test_what_cannot_be_set_is_refused_with_what_could_be(shop: Terminal) -> None:
    before = shop.json(*SET, "--json")
    for words, says in REFUSED:
        assert says in shop.fails(*SET, *words)
    assert shop.json(*SET, "--json") == before


def test_what_is_no_number_no_pair_or_both_is_refused_at_once(terminal: Terminal) -> None:
    for words, says in (
        (("--daily-budget", "soon"), "'soon' is no number"),
        (("--role-cap", "worker=two"), "'two' is no number"),
        (("--role-cap", "worker"), "'worker' is no pair"),
        (("--agent", "worker="), "is no pair"),
        (("--agent", "worker=ada", "--agent", "worker=eve"), "worker is given twice"),
        (("--scan", "errors", "--no-scan"), "--scan or --no-scan"),
        (("--merge", "rebase"), "'rebase' is not one of"),
    ):
        assert says in terminal.fails("orchestrator", "configure", *words, code=2)


def test_what_is_not_there_ends_in_one_sentence(shop: Terminal) -> None:
    assert "there is no project no" in shop.fails("orchestrator", "status", "--project", "no")
    assert "there is no project no" in shop.fails("orchestrator", "enable", "--project", "no")
    assert "there is no issue SHO-9" in shop.fails("orchestrator", "why", "SHO-9")
    assert "there is no issue SHO-9" in shop.fails("orchestrator", "dispatches", "--issue", "SHO-9")
    relative = shop.fails("orchestrator", "configure", "--intake-folder", "inbox")
    assert "the project default has no folder in which inbox could be" in relative


def test_an_agent_without_a_role_in_the_project_cannot_work_there(shop: Terminal) -> None:
    shop.ok("agents", "create", "ada")
    shop.ok("projects", "members", "shop", "default")
    assert "ada cannot be the judge of shop" in shop.fails(*SET, "--agent", "judge=ada")


def test_every_setting_is_set_kept_and_taken_back(shop: Terminal) -> None:
    shop.ok("agents", "create", "Ada")
    words = ["--max-agents", "2", "--role-cap", "worker=1", "--agent", "judge=ada", "--model", "worker=opus"]
    words += ["--before-run", "make deps", "--hook-limit-s", "30", "--prompt", "memories=100", "--max-retries", "1"]
    words += ["--run-limit-s", "600", "--max-turns", "20", "--gate-limit-s", "60", "--run-budget", "1.5"]
    words += ["--issue-budget", "5", "--daily-budget", "20", "--merge", "ff", "--auto-merge", "--scan", "errors"]
    words += ["--scan", "naming", "--scan-path", "src/**", "--scan-batch", "3", "--scan-every-s", "60"]
    words += ["--intake-batch", "2", "--intake-folder", "inbox"]
    shop.ok(*SET, *words)
    told = shop.json(*SET, "--role-cap", "judge=2", "--json")
    assert told["enabled"] is False
    assert told["settings"] == {
        "max_agents": 2,
        "role_caps": {"worker": 1, "judge": 2},
        "agents": {"judge": "Ada"},
        "models": {"worker": "opus"},
        "hooks": {"after_create": "", "before_run": "make deps", "after_run": "", "before_remove": "", "limit_s": 30},
        "prompt": {"issue": 6000, "memories": 100, "conventions": 1000, "learnings": 1500, "rejections": 1500},
        "max_retries": 1,
        "run_limit_s": 600,
        "max_turns": 20,
        "gate_limit_s": 60,
        "run_budget_usd": 1.5,
        "issue_budget_usd": 5.0,
        "daily_budget_usd": 20.0,
        "merge": "ff",
        "auto_merge": True,
        "scan_concepts": ["errors", "naming"],
        "scan_paths": ["src/**"],
        "scan_batch": 3,
        "scan_every_s": 60,
        "intake_batch": 2,
        "intake_folder": "inbox",
    }
    less = ["--role-cap", "worker=none", "--agent", "judge=none", "--model", "worker=none", "--before-run", ""]
    less += ["--prompt", "memories=none", "--max-turns", "none", "--run-budget", "none", "--issue-budget", "none"]
    less += ["--daily-budget", "none", "--no-auto-merge", "--no-scan", "--intake-folder", ""]
    after = shop.json(*SET, *less, "--json")["settings"]
    assert (after["role_caps"], after["agents"], after["models"]) == ({"judge": 2}, {}, {})
    assert (after["hooks"]["before_run"], after["prompt"]["memories"]) == ("", 2000)
    limits = ("max_turns", "run_budget_usd", "issue_budget_usd", "daily_budget_usd")
    assert [after[name] for name in limits] == [None, None, None, None]
    assert (after["auto_merge"], after["scan_concepts"], after["intake_folder"]) == (False, [], "")
    assert (after["max_agents"], after["scan_batch"]) == (2, 3)
    assert "role caps         judge=2" in shop.ok(*SET)


def test_a_project_is_enabled_and_disabled_and_told_what_it_lacks(shop: Terminal) -> None:
    assert "no project is worked on" in shop.ok("orchestrator", "status")
    result = shop.run("orchestrator", "enable")
    assert result.exit_code == 0
    assert "nothing begins yet: the setting runtime is none" in result.stderr
    assert "nothing begins yet: the project default has no folder" in result.stderr
    shop.environ["ROOKERY_RUNTIME"] = "scripted"
    assert shop.json("orchestrator", "enable", *ON, "--json")["warnings"] == []
    shown = shop.json("orchestrator", "status", "--json")["projects"]
    assert [each["project"] for each in shown] == ["default", "shop"]
    assert shop.json("orchestrator", "disable", "--json")["enabled"] is False
    assert [each["project"] for each in shop.json("orchestrator", "status", "--json")["projects"]] == ["shop"]


def test_the_status_shows_what_goes_on_and_what_waits_for_what(shop: Terminal) -> None:
    shop.environ["ROOKERY_RUNTIME"] = "scripted"
    shop.ok("orchestrator", "enable", *ON)
    shop.ok(*SET, "--max-agents", "2", "--role-cap", "worker=2", "--daily-budget", "5")
    made = [shop.json("issues", "create", f"issue {number}", *ON, "--json") for number in range(4)]
    shop.ok("issues", "create", "later", "--depends-on", made[0]["id"], *ON)

    def arrange(tx: Tx) -> None:
        project = IdentityStore(tx, DEFAULT_TENANT).project("shop").id
        agent = IdentityStore(tx, DEFAULT_TENANT).agent("default").id
        store = Dispatches(tx, DEFAULT_TENANT)
        new = {"project_id": project, "work": "phase", "role": "worker", "agent": agent, "phase": "ready"}
        running = store.queue(NewDispatch(issue_id=made[0]["id"], **new))
        failed = store.queue(NewDispatch(issue_id=made[1]["id"], **new))
        assert running is not None
        assert failed is not None
        store.begin(running)
        store.end(failed.id, "failed", "it broke")
        Leadership().claim(
            tx, {"ticked_ms": 1, "report": {"failures": [["default", "shop: no branch main"], ["other", "theirs"]]}}
        )

    database = open_database(shop.environ["ROOKERY_DATABASE"])
    database.direct(arrange, write=True)
    database.close()
    told = shop.json("orchestrator", "status", "--json")
    assert told["leader"]["alive"] is True
    assert (told["at_work"], told["max_agents"], told["runtime"]) == (1, 10, True)
    (project,) = told["projects"]
    assert (project["at_work"], project["max_agents"], project["role_caps"]) == (1, 2, {"worker": 2})
    assert [(each["issue"], each["agent"], each["state"]) for each in told["running"]] == [
        ("SHO-001", "default", "running")
    ]
    assert [each["issue"] for each in told["retries"]] == ["SHO-002"]
    assert told["retries"][0]["until_ms"] > told["now_ms"]
    assert [(each["issue"], each["role"]) for each in told["next"]] == [("SHO-003", "worker")]
    assert told["waits"] == {"running": 1, "retry": 1, "cap_project": 1, "dependency": 1}
    text = shop.ok("orchestrator", "status", *ON)
    for line in ("the last tick failed in part: shop: no branch main", "1 of 2", "running\n", "retries\n", "next\n"):
        assert line in text
    assert "SHO-005  dependency" in text
    assert shop.json("orchestrator", "status", "--project", "default", "--json")["running"] == []
    attempts = shop.json("orchestrator", "dispatches", "--json")
    assert [(each["issue"], each["outcome"], each["error"]) for each in attempts] == [
        ("SHO-002", "failed", "it broke"),
        ("SHO-001", None, None),
    ]
    assert [each["issue"] for each in shop.json("orchestrator", "dispatches", "--state", "live", "--json")] == [
        "SHO-001"
    ]
    assert "it broke" in shop.ok("orchestrator", "dispatches", "--issue", "SHO-002", *ON)
    assert shop.json("orchestrator", "dispatches", "--project", "default", "--json") == []
    why = shop.ok("orchestrator", "why", "SHO-005")
    assert why == "SHO-005 (dependency): it waits for SHO-001 (todo)\n"
    assert shop.json("orchestrator", "why", "SHO-003", "--json")["code"] == "next"
    assert "the last attempt, by the worker, ended as failed: it broke\n" in shop.ok("orchestrator", "why", "SHO-002")


def test_without_a_server_an_issue_waits_for_one(shop: Terminal) -> None:
    shop.ok("orchestrator", "enable", *ON)
    issue = shop.json("issues", "create", "it fails", *ON, "--json")
    assert "rookery up starts one" in shop.ok("orchestrator", "why", issue["identifier"])
    assert "nothing was dispatched yet" in shop.ok("orchestrator", "dispatches")
    assert "leader       none" in shop.ok("orchestrator", "status")
