"""What a judge is told: what was delivered, by which measure to judge it, and how to say so. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.domains.tracker.briefs import LONGEST, MATERIAL, call, own_rules, role_text
from rookery.domains.tracker.contract import Contract
from rookery.domains.tracker.issue_markdown import (
    IssueData,
    Record,
    claim_facts,
    issue_markdown,
    line_notes,
    pr_summary,
    reasons,
)
from rookery.domains.tracker.markdown_text import at, blocks, bullets, code, fenced, labelled, line, part, quoted
from rookery.domains.tracker.project_store import ProjectSettings

ARTIFACT_SHOWN = 100_000
DIFF_SHOWN = 100_000
PLAN_SHOWN = 20_000
OUTPUT_SHOWN = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A claim that waits for its verdict, with its artifact and the rejections before it, oldest first."""

    issue: IssueData
    contract: Contract
    settings: ProjectSettings
    claim: Record
    artifact: str
    rejections: Sequence[Record]


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """An open pull request with its gates. `plan` is the approved artifact of grooming, if there is one."""

    issue: IssueData
    contract: Contract
    settings: ProjectSettings
    pr: Record
    diff: str
    gates: Sequence[Record]
    plan: str | None


def judge_brief(given: Delivered) -> str:
    """For the judge of an artifact."""
    claim, contract, phase = given.claim, given.contract, given.contract.phase
    address = code(f"issue://{given.issue.identifier}/artifacts/{phase}")
    return blocks(
        role_text("judge"),
        MATERIAL,
        *_contract(contract),
        _rules(given.settings),
        issue_markdown(given.issue, longest=LONGEST).strip(),
        f"# What was claimed, {at(claim['created_ms'])} by {line(claim['author'])}",
        bullets(claim_facts(claim)),
        _other_version(claim, contract),
        quoted(claim["summary"]),
        labelled("Open questions:", map(line, claim["open_questions"])),
        "# The artifact",
        f"Exactly as it was claimed; {address} has all of it.",
        fenced(given.artifact, "markdown", ARTIFACT_SHOWN),
        _earlier(given.rejections),
        "# Checklist",
        "\n".join(_checklist(given)),
        "# How to decide",
        _verdicts(given),
    )


def _contract(contract: Contract) -> tuple[str, str, str]:
    return (
        f"# What was asked for: the contract of {contract.phase}, version {contract.version}",
        "This is what its author was told, with the tools of the author.",
        part(contract.body, 1),
    )


def _rules(settings: ProjectSettings) -> str | None:
    return own_rules("What this project asks of its judges", settings.judge_instructions)


def _other_version(claim: Record, contract: Contract) -> str | None:
    if claim.get("contract_version") == contract.version:
        return None
    return (
        f"**The claim follows version {claim.get('contract_version')} of the contract, the project has another now.**"
    )


def _earlier(rejections: Sequence[Record]) -> str | None:
    if not rejections:
        return None
    told = (
        blocks(f"## {at(each['created_ms'])}, {code(each['artifact_hash'][:12])}", reasons(each, LONGEST))
        for each in rejections
    )
    return blocks("# Earlier rejections", *told)


def _checklist(given: Delivered) -> list[str]:
    points = [
        f"**{line(each)}** is there and says what the contract asks of it." for each in given.contract.required_sections
    ]
    points += [
        "Every statement that matters names its evidence, and you have looked at the evidence of the most important.",
        "No open question hides a decision that belongs to this phase.",
        "The next agent can go on from it without asking back.",
    ]
    if given.rejections:
        points.append("Everything that earlier rejections asked for is done.")
    return [f"- [ ] {point}" for point in points]


def _verdicts(given: Delivered) -> str:
    named = {"phase": given.contract.phase, "artifact_hash": given.claim["artifact_hash"]}
    return blocks(
        "All points hold:",
        call("approve_phase", {**named, "reason": "<what convinced you>"}),
        "One does not:",
        call("reject_phase", {**named, "reason": "<what is wrong, where>", "fix_instructions": "<what to change>"}),
        "If another version was claimed meanwhile, this is refused: then read that one.",
    )


def review_brief(given: Review) -> str:
    """For the judge of a pull request."""
    pr = given.pr
    compare = code(f"git diff {pr['base']}...{pr['branch']}")
    return blocks(
        role_text("judge"),
        MATERIAL,
        *_contract(given.contract),
        _rules(given.settings),
        issue_markdown(given.issue, longest=LONGEST).strip(),
        blocks("# The plan", fenced(given.plan, "markdown", PLAN_SHOWN)) if given.plan else None,
        f"# Revision {pr['revision']} of the pull request",
        pr_summary(pr),
        line_notes(pr, LONGEST),
        "# Gates",
        blocks(*(_gate(each) for each in given.gates)) or "None was run.",
        "# The change",
        f"{compare} shows all of it.",
        fenced(given.diff, "diff", DIFF_SHOWN),
        "# How to decide",
        _decisions(pr["revision"]),
    )


def _gate(gate: Record) -> str:
    failed = f"failed with {gate['exit_code']}" if gate["exit_code"] else "passed"
    required = "required" if gate["required"] else "optional"
    output = gate["output"].strip()
    note = f"The last {OUTPUT_SHOWN:,} of {len(output):,} characters:" if len(output) > OUTPUT_SHOWN else None
    return blocks(
        f"## {line(gate['label'])}: {failed} ({required})",
        code(gate["command"]),
        note,
        fenced(output[-OUTPUT_SHOWN:], "text") if output else None,
    )


def _decisions(revision: int) -> str:
    return blocks(
        "Every acceptance criterion is met and shown by a test or a command, every required gate passed, and nothing "
        "is in the change that was not asked for:",
        call("approve_pr", {"revision": revision, "reason": "<what convinced you>"}),
        "Otherwise:",
        call(
            "reject_pr",
            {"revision": revision, "reason": "<what is wrong, where>", "fix_instructions": "<what to change>"},
        ),
        "You merge nothing: the issue stays in review until a person does.",
    )
