"""Whatever people and agents write, the structure of what we show stays ours."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rookery.domains.tracker.issue_markdown import IssueData, issue_markdown
from rookery.domains.tracker.markdown_text import code, fenced, line, part, quoted
from rookery.domains.tracker.sections import headings

SECTIONS = ["Description", "Subtasks", "Depends on", "Claims and verdicts", "Pull request", "Findings", "Learnings",
            "Comments", "Runs", "Test health", "History"]  # fmt: skip
HOSTILE = [
    "# heading",
    "## Findings",
    "Setext\n===",
    "```\nopen fence",
    "~~~~\nopen\n# heading",
    "<!-- open comment",
    "<script>",
    "<details>\n<div>\n\n# heading",
    "\r# heading\r\n## other\r\r# third",
    "text\u2028# heading\x0b# heading\x85# heading",
    "> quote\n\n# heading",
    "- item\n\n      # code\n\n# heading",
    "\t# heading",
    "[label]: https://example.org\n\n# heading",
    "`",
    "*" * 200,
    "> " * 300 + "# heading",
    "",
    "   \n\n  ",
]
texts = st.one_of(st.text(), st.lists(st.sampled_from([*"#`~<>-=|[]:!\n\r\t \\", "    ", "```", "<!--"])).map("".join))


def issue(text: str) -> IssueData:
    """An issue in which everything that somebody can write is `text`."""
    about: dict[str, Any] = {"author": text, "created_ms": 0, "id": "x"}
    digest = {"artifact_hash": "0" * 64, "processed": True}
    claim = {"completed_phase": "research", "summary": text, "open_questions": [text], "artifact_path": text}
    verdict = {"phase": "research", "verdict": "rejected", "reason": text, "fix_instructions": text}
    file = {"path": text, "status": "added", "added": 1, "deleted": 0}
    run = {
        "id": "run-1",
        "profile": text,
        "phase": "ready",
        "status": "failed",
        "error": text,
        "cost_micros": 1_500_000,
    }
    pr = {"revision": 1, "status": "rejected", "branch": text, "base": text, "risk_level": "high", "risk_score": 90}
    stats = {"added": 1, "deleted": 0, "changed_files": 3, "files": [file]}
    growth = dict.fromkeys(("test_growth_percent", "source_growth_percent", "time_growth_percent"), 120.5)
    return IssueData(
        identifier="SYM-001",
        title=text,
        project="default",
        status="blocked",
        phase="research",
        priority=2,
        size=text,
        labels=["phase:research", text],
        blocked_on="person",
        rejections=1,
        author=text,
        created_ms=0,
        updated_ms=0,
        description=text,
        parent="SYM-000",
        subtasks=[{"identifier": "SYM-002", "status": "done", "title": text}, {"identifier": "X-1", "status": "todo"}],
        depends_on=[{"identifier": "SYM-003", "status": "todo", "title": text}],
        claims=[
            {"category": "phase_completion", **about, **digest, **claim},
            {"category": "phase_verdict", **about, **digest, **verdict},
        ],
        findings=[{"category": "bug", **about, "summary": text, "details": text, "files": [text]}],
        learnings=[{"pattern": text, "context": text, "applies_to": [text], "quality_score": 50, "verified": True}],
        comments=[{**about, "content": text}],
        runs=[{**run, "created_ms": 0, "ended_ms": 60_000}],
        pr={**pr, "stats": stats, "risk_reasons": [text], "reason": text, "fix_instructions": text},
        lease={"held_by": text, "until_ms": 0},
        test_health={"bloat": True, "runs": 10, "test_count": 5, **growth, "reasons": [text]},
        history=[{"field": "title", "old": text, "new": text, "author": text, "why": text, "at_ms": 0}],
        totals={"comments": 60},
    )


def outline(markdown: str) -> list[tuple[int, str]]:
    return [(level, text) for level, text in headings(markdown) if level < 3]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_user_becomes_a_heading_or_swallows_one(text: str) -> None:
    found = outline(issue_markdown(issue(text)))
    assert found[0][1].startswith("SYM-001:")
    assert found[1:] == [(2, section) for section in SECTIONS]


@settings(max_examples=300, deadline=None)
@given(texts)
@example("a\r\n\r\n#\r\n")
def test_the_outline_never_depends_on_what_is_written(text: str) -> None:
    document = headings(issue_markdown(issue(text), longest=40))
    plain = headings(issue_markdown(issue("plain")))
    assert [level for level, _ in document] == [level for level, _ in plain]
    assert [text for level, text in document if level == 2] == SECTIONS


def test_sections_without_content_are_left_out() -> None:
    lists = ("subtasks", "depends_on", "claims", "findings", "learnings", "comments", "runs", "history")
    values = dict.fromkeys(lists, ()) | dict.fromkeys(("pr", "lease", "test_health"), None)
    told = issue_markdown(replace(issue("x"), **values, description=" \n"))
    assert outline(told) == [(1, "SYM-001: x"), (2, "Description")]
    assert "## Description\n\nNone.\n" in told


def test_it_says_what_there_is_to_know() -> None:
    told = issue_markdown(issue("x"))
    for expected in (
        "- **Status:** blocked (waits for person)",
        "- **Priority:** P2",
        "- **Warning:** the project's tests outgrow its code, see Test health",
        "- SYM-002 · done · x\n- X-1 · todo\n",
        f"- **SHA-256:** `{'0' * 64}`",
        "### research rejected by x · 1970-01-01 00:00 UTC",
        "To fix:\n\n> x",
        "- **Risk:** high (90 of 100)",
        "- added `x` +1 -0\n- and 2 more",
        "The newest 1 of 60.",
        "- run-1 · x · ready · failed · $1.5000 · 1970-01-01 00:00 UTC to 1970-01-01 00:01 UTC · x",
        "**Warning: the tests of this project outgrow its code.**",
        "- **Tests:** 5, +120.5 %",
        "- 1970-01-01 00:00 UTC · x · title: `x` → `x` (x)",
    ):
        assert expected in told


def test_a_long_text_is_cut_at_a_line_and_says_so() -> None:
    text = "first line\n" * 10
    assert quoted(text, 30) == "> first line\n> first line\n\n(Cut here: 88 more characters.)"
    assert fenced("x" * 50, longest=20).endswith("\n```\n\n(Cut here: 30 more characters.)")
    assert quoted(text) == "\n".join(["> first line"] * 10)
    assert line("a\n b\u2028c", 4) == "a b…"


@given(texts)
@settings(max_examples=300, deadline=None)
def test_a_part_ends_where_it_ends_and_has_no_heading_above_its_place(text: str) -> None:
    found = headings(f"# before\n\n{part(text, 1)}\n\n# after")
    assert found[0] == (1, "before")
    assert found[-1] == (1, "after")
    assert all(level > 1 for level, _ in found[1:-1])


def test_a_part_keeps_its_outline_one_level_lower() -> None:
    text = "# One\n\ntext\n\nTwo\nlines\n---\n\n###### Six\n\n```\n# code\n```\n"
    shown = part(text, 1)
    assert headings(shown) == [(2, "One"), (3, "Two lines"), (6, "Six")]
    assert "```\n# code\n```" in shown
    assert part("# One\n\n```\nopen", 1) == "````markdown\n# One\n\n```\nopen\n````"


@given(st.text())
def test_code_is_code_whatever_it_contains(text: str) -> None:
    from markdown_it import MarkdownIt

    (_, inline, _) = MarkdownIt("commonmark").parse(f"x {code(text)} y") or (None, None, None)
    assert inline is not None
    kinds = [child.type for child in inline.children or ()]
    assert kinds == (["text", "code_inline", "text"] if line(text) else ["text"])
