"""An issue as a Markdown document. Pure: the records of `issue_view` in, text out.

What people and agents wrote stands in quotes or within a line, so every heading of the document is one of ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rookery.domains.tracker.markdown_text import at, blocks, bullets, code, labelled, line, quoted

Record = dict[str, Any]
SHOWN_FILES = 100
SHOWN_VALUE = 80
SHOWN_ERROR = 500
LINE_NOTES = 20_000
"""Characters of all that was said of lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueData:
    """What an issue's document is made of. `totals` counts what is shown in part."""

    identifier: str
    title: str
    project: str
    status: str
    phase: str
    priority: int
    size: str | None
    labels: Sequence[str]
    blocked_on: str | None
    rejections: int
    author: str
    created_ms: int
    updated_ms: int
    description: str
    parent: str | None
    subtasks: Sequence[Record]
    depends_on: Sequence[Record]
    claims: Sequence[Record]
    findings: Sequence[Record]
    learnings: Sequence[Record]
    comments: Sequence[Record]
    runs: Sequence[Record]
    pr: Record | None
    lease: Record | None
    test_health: Record | None
    history: Sequence[Record]
    totals: dict[str, int]


def issue_markdown(issue: IssueData, *, longest: int | None = None) -> str:
    """The whole issue. Of a text longer than `longest` the beginning is shown."""
    sections = {
        "Description": quoted(issue.description, longest) if issue.description.strip() else "None.",
        "Subtasks": _related(issue.subtasks),
        "Depends on": _related(issue.depends_on),
        "Claims and verdicts": _claims(issue, longest),
        "Pull request": _pull_request(issue.pr, longest),
        "Findings": _some(issue, "findings", [_finding(each, longest) for each in issue.findings]),
        "Learnings": _some(issue, "learnings", [_learning(each, longest) for each in issue.learnings]),
        "Comments": _some(issue, "comments", [_comment(each, longest) for each in issue.comments]),
        "Runs": "\n".join(_run(each) for each in issue.runs),
        "Test health": _test_health(issue.test_health),
        "History": "\n".join(_change(each) for each in issue.history),
    }
    shown = (f"## {title}\n\n{body}" for title, body in sections.items() if body)
    return blocks(f"# {issue.identifier}: {line(issue.title)}", _facts(issue), *shown) + "\n"


def _facts(issue: IssueData) -> str:
    status = issue.status if issue.blocked_on is None else f"{issue.status} (waits for {issue.blocked_on})"
    labels = ", ".join(code(label) for label in issue.labels if not label.startswith("phase:"))
    bloat = issue.test_health is not None and issue.test_health.get("bloat")
    facts = {
        "Project": line(issue.project),
        "Status": status,
        "Phase": issue.phase,
        "Priority": f"P{issue.priority}",
        "Size": line(issue.size) if issue.size else "",
        "Labels": labels,
        "Parent": issue.parent or "",
        "Held by": _lease(issue.lease),
        "Rejections of this phase": str(issue.rejections) if issue.rejections else "",
        "Created": f"{at(issue.created_ms)} by {line(issue.author)}",
        "Updated": at(issue.updated_ms),
        "Warning": "the project's tests outgrow its code, see Test health" if bloat else "",
    }
    return bullets(facts)


def _lease(lease: Record | None) -> str:
    return f"{line(lease['held_by'])} until {at(lease['until_ms'])}" if lease is not None else ""


def _related(found: Sequence[Record]) -> str:
    """Issues of a project without a role have no title here."""
    lines = (f"- {each['identifier']} · {each['status']} · {line(each.get('title', ''))}" for each in found)
    return "\n".join(each.rstrip(" ·") for each in lines)


def _some(issue: IssueData, kind: str, shown: Sequence[str]) -> str:
    total = issue.totals.get(kind, 0)
    note = f"The newest {len(shown)} of {total}." if shown and total > len(shown) else None
    return blocks(note, *shown)


def _claims(issue: IssueData, longest: int | None) -> str:
    if not issue.claims:
        return ""
    shown = [_verdict(each, longest) if "verdict" in each else _claim(each, longest) for each in issue.claims]
    where = f"What the latest claim of a phase delivered can be read at `issue://{issue.identifier}/artifacts/<phase>`."
    return blocks(where, _some(issue, "claims", shown))


def _claim(claim: Record, longest: int | None) -> str:
    return blocks(
        _record_heading(f"{claim['completed_phase']} claimed by {line(claim['author'])}", claim),
        bullets(claim_facts(claim)),
        quoted(claim["summary"], longest),
        labelled("Open questions:", map(line, claim.get("open_questions") or ())),
    )


def claim_facts(claim: Record) -> dict[str, str]:
    """What a claim says of its artifact, by name; empty where it says nothing."""
    path, digest = claim.get("artifact_path"), claim.get("artifact_hash")
    promoted = claim.get("promote_to")
    return {
        "Claim": f"{claim['id']}, {_processed(claim)}",
        "Artifact": code(path) if path else "",
        "SHA-256": code(digest) if digest else "",
        "Contract": f"version {claim.get('contract_version')}",
        "Confidence": line(claim.get("confidence") or ""),
        "Recommended next phase": line(claim.get("recommended_next_phase") or ""),
        "To be copied to": code(promoted) if promoted else "",
    }


def _verdict(verdict: Record, longest: int | None) -> str:
    facts = {"Verdict": f"{verdict['id']}, {_processed(verdict)}", "SHA-256": code(verdict["artifact_hash"])}
    return blocks(
        _record_heading(f"{verdict['phase']} {verdict['verdict']} by {line(verdict['author'])}", verdict),
        bullets(facts),
        reasons(verdict, longest),
    )


def reasons(verdict: Record, longest: int | None = None) -> str:
    """Why a claim or a pull request was judged as it was, what is to be changed, and what was said of lines."""
    fix = verdict.get("fix_instructions")
    reason = verdict.get("reason")
    return blocks(
        quoted(reason, longest) if reason else None,
        f"To fix:\n\n{quoted(fix, longest)}" if fix else None,
        line_notes(verdict, longest),
    )


def _processed(finding: Record) -> str:
    return "processed" if finding.get("processed") else "not processed yet"


def _record_heading(what: str, record: Record) -> str:
    return f"### {what} · {at(record['created_ms'])}"


def _finding(finding: Record, longest: int | None) -> str:
    files = [code(each) for each in finding.get("files") or ()]
    details = finding.get("details")
    return blocks(
        _record_heading(f"{finding['category']} · {line(finding['author'])}", finding),
        quoted(str(finding.get("summary") or ""), longest),
        f"Details:\n\n{quoted(details, longest)}" if details else None,
        f"Files: {', '.join(files[:SHOWN_FILES])}" if files else None,
    )


def _learning(learning: Record, longest: int | None) -> str:
    verified = ", verified" if learning.get("verified") else ""
    applies = ", ".join(code(each) for each in learning.get("applies_to") or ())
    context = learning.get("context")
    return blocks(
        f"### {learning.get('learning_type') or 'learning'} · quality {learning['quality_score']}{verified}",
        quoted(learning["pattern"], longest),
        f"Context:\n\n{quoted(context, longest)}" if context else None,
        f"Applies to: {applies}" if applies else None,
    )


def _comment(comment: Record, longest: int | None) -> str:
    return blocks(_record_heading(line(comment["author"]), comment), quoted(comment["content"], longest))


def _run(run: Record) -> str:
    ended = f" to {at(run['ended_ms'])}" if run.get("ended_ms") else ""
    facts = (
        run["id"],
        line(run.get("profile") or ""),
        run.get("phase"),
        run["status"],
        f"${run['cost_micros'] / 1_000_000:.4f}",
        f"{at(run['created_ms'])}{ended}",
        line(run.get("error") or "", SHOWN_ERROR),
    )
    return "- " + " · ".join(fact for fact in facts if fact)


def _pull_request(pr: Record | None, longest: int | None) -> str:
    return blocks(pr_summary(pr), reasons(pr, longest)) if pr is not None else ""


def line_notes(pr: Record, longest: int | None = None) -> str:
    """What was said of lines of a pull request, file by file, as far as it fits."""
    notes: Sequence[Record] = pr.get("line_comments") or ()
    shown, left = list[str](), LINE_NOTES
    for note in notes:
        text = _line_note(note, longest)
        left -= len(text)
        if left < 0 and shown:
            shown.append(f"And {len(notes) - len(shown)} more, which `get_issue` shows.")
            break
        shown.append(text)
    return blocks("Said of single lines:", *shown) if shown else ""


def _line_note(note: Record, longest: int | None) -> str:
    before = " before the change" if note["side"] == "old" else ""
    stood = f": {code(note['code'].strip())}" if note["code"].strip() else ""
    return blocks(f"{code(note['path'])}, line {note['line']}{before}{stood}", quoted(note["content"], longest))


def pr_summary(pr: Record) -> str:
    """State, risk with its reasons, and changed files of a pull request."""
    stats: Record = pr["stats"]
    files: list[Record] = stats.get("files", [])
    count = stats.get("changed_files", len(files))
    facts = {
        "Revision": f"{pr['revision']}, {pr['status']}",
        "Branch": f"{code(pr['branch'])} onto {code(pr['base'])}",
        "Risk": f"{pr['risk_level']} ({pr['risk_score']} of 100)",
        "Changes": f"{count} files, +{stats.get('added', 0)} -{stats.get('deleted', 0)}",
    }
    more = count - min(len(files), SHOWN_FILES)
    changed = [f"{each['status']} {code(each['path'])} +{each['added']} -{each['deleted']}" for each in files]
    shown = [*changed[:SHOWN_FILES], *([f"and {more} more"] if more > 0 else [])]
    return blocks(
        bullets(facts), labelled("Why this risk:", map(line, pr["risk_reasons"])), labelled("Changed files:", shown)
    )


def _test_health(health: Record | None) -> str:
    if health is None:
        return ""
    warning = "**Warning: the tests of this project outgrow its code.** Merge or remove tests before you add more."
    why = map(line, health.get("reasons") or ())
    facts = {
        "Test runs looked at": str(health["runs"]),
        "Tests": f"{health['test_count']}{_growth(health['test_growth_percent'])}",
        "Changed source lines": _growth(health["source_growth_percent"]).strip(" ,"),
        "Time per run": _growth(health["time_growth_percent"]).strip(" ,"),
    }
    return blocks(warning if health.get("bloat") else None, bullets(facts), labelled("Why:", why))


def _growth(percent: float | None) -> str:
    return "" if percent is None else f", {percent:+g} %"


def _change(change: Record) -> str:
    why = f" ({line(change['why'], SHOWN_ERROR)})" if change.get("why") else ""
    old, new = (_value(change[name]) for name in ("old", "new"))
    return f"- {at(change['at_ms'])} · {line(change['author'])} · {line(change['field'])}: {old} → {new}{why}"


def _value(value: Any) -> str:
    return "nothing" if value in (None, "", []) else code(line(value, SHOWN_VALUE))
