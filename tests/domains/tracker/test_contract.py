import contextlib
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.core.errors import ConfigurationError, ValidationFailed
from rookery.domains.tracker.contract import (
    MAX_CONTRACT,
    Contract,
    contract_in,
    contract_on_branch,
    packaged_contract,
    parse_contract,
)
from rookery.domains.tracker.sections import slug
from rookery.lifecycle.states import PHASE_PROFILES, PHASES
from rookery.plugins import load_domains
from tests.domains.tracker.desk import git

FIELDS = {
    "phase": "research",
    "version": "2",
    "profiles": "[researcher]",
    "artifact": "research.md",
    "min_chars": "200",
    "required_sections": "[Problem, 'Who cares?']",
    "requires_judge": "true",
    "next": "grooming",
    "allowed_writes": "['docs/tickets/{issue}/**']",
    "forbidden_writes": "[]",
}


def contract_text(body: str | None = "Do it.", **changes: str | None) -> str:
    """A contract that is right but for the changes; None leaves a field out."""
    fields = {name: value for name, value in {**FIELDS, **changes}.items() if value is not None}
    return "---\n" + "".join(f"{name}: {value}\n" for name, value in fields.items()) + f"---\n{body}\n"


def wrong(text: str | bytes) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_contract(text, "here.md")
    assert "here.md" in caught.value.message
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_that_is_missing_is_named(name: str) -> None:
    assert f"{name}: field required" in wrong(contract_text(**{name: None}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("phase", "[research]"),
        ("phase", "review"),
        ("version", "'1'"),
        ("version", "1.0"),
        ("version", "true"),
        ("version", "0"),
        ("version", "9" * 5000),
        ("version", "2024-13-45"),
        ("profiles", "researcher"),
        ("profiles", "[]"),
        ("profiles", "[worker]"),
        ("profiles", "[1]"),
        ("artifact", "null"),
        ("artifact", "../research.md"),
        ("artifact", "research.txt"),
        ("min_chars", "-1"),
        ("min_chars", "many"),
        ("required_sections", "Problem"),
        ("required_sections", "[Problem, null]"),
        ("required_sections", "[Problem, '**problem**']"),
        ("required_sections", "['***']"),
        ("requires_judge", "1"),
        ("requires_judge", "'yes'"),
        ("next", "null"),
        ("next", "research"),
        ("next", "merged"),
        ("allowed_writes", "null"),
        ("forbidden_writes", "{}"),
        ("author", "somebody"),
    ],
)
def test_a_field_that_is_wrong_is_named(name: str, value: str) -> None:
    told = wrong(contract_text(**{name: value}))
    assert name in told or name == "version"


def test_every_fault_is_told_at_once() -> None:
    told = wrong(contract_text(version="no", min_chars="no", colour="red"))
    assert all(name in told for name in ("version", "min_chars", "colour"))


def test_ready_has_neither_artifact_nor_sections_nor_a_next_phase() -> None:
    told = wrong(contract_text(phase="ready", profiles="[worker]"))
    assert all(name in told for name in ("artifact", "required_sections", "next"))
    free = {"artifact": "null", "required_sections": "[]", "next": "null"}
    assert parse_contract(contract_text(phase="ready", profiles="[worker]", **free), "here.md").next is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Research\n",
        "---\n",
        "---\nphase: research\n",
        "\n" + contract_text(),
        "--- \nphase: research\n# no end\n",
        "---\n---\nBody.\n",
        "---\n- a\n- b\n---\nBody.\n",
        "---\njust words\n---\nBody.\n",
        "---\nphase: [research\n---\nBody.\n",
        "---\nphase: !!python/object/apply:os.getcwd []\n---\nBody.\n",
        "---\n? [a, b]\n: c\n---\nBody.\n",
        "---\na: \0\n---\nBody.\n",
        "---\n" + "[" * 10_000 + "\n---\nBody.\n",
        "---\na: " + "x" * 20_000 + "\n---\nBody.\n",
        contract_text(body="  \n"),
    ],
)
def test_what_is_no_contract_is_refused(text: str) -> None:
    wrong(text)


def test_the_line_of_bad_yaml_is_the_one_that_an_editor_shows() -> None:
    assert "line 3, column 10" in wrong("---\nphase: research\nversion: [1\nprofiles: {\n---\nBody.\n")


def test_a_field_that_is_given_twice_is_named() -> None:
    assert "version: given twice" in wrong(contract_text().replace("---\n", "---\nversion: 1\n", 1))


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    layers = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert "aliases" in wrong(f"---\na0: &a0 [x]\n{layers}---\nBody.\n")
    assert "aliases" in wrong(contract_text(allowed_writes="[*star]"))


def test_bytes_that_are_no_text_or_too_many_are_refused() -> None:
    assert "not UTF-8" in wrong(contract_text().encode() + b"\xff")
    exact = contract_text(body="x" * (MAX_CONTRACT - len(contract_text(body=""))))
    assert len(exact) == MAX_CONTRACT
    parse_contract(exact, "here.md")
    assert str(MAX_CONTRACT) in wrong(exact + "x")
    assert str(MAX_CONTRACT) in wrong(contract_text(body="é" * (MAX_CONTRACT // 2)))


@given(text=st.one_of(st.text(), st.text().map(lambda front: f"---\n{front}\n---\nBody."), st.binary()))
@settings(deadline=None, max_examples=300)
def test_any_text_is_a_contract_or_refused(text: str | bytes) -> None:
    with contextlib.suppress(ConfigurationError):
        assert isinstance(parse_contract(text, "here.md"), Contract)


@pytest.mark.parametrize(("start", "end"), [("", "\n"), ("\ufeff", "\r\n")], ids=["plain", "from Windows"])
def test_a_contract_is_read_with_all_its_fields(start: str, end: str) -> None:
    text = start + contract_text(body="# Do\n\n---\n\nit.").replace("\n", end)
    assert parse_contract(text, "here.md") == Contract(
        phase="research",
        version=2,
        profiles=("researcher",),
        artifact="research.md",
        min_chars=200,
        required_sections=("Problem", "Who cares?"),
        requires_judge=True,
        next="grooming",
        allowed_writes=("docs/tickets/{issue}/**",),
        forbidden_writes=(),
        body="# Do\n\n---\n\nit.",
    )


def test_a_phase_that_there_is_not_has_no_contract() -> None:
    for phase in ("", "review", "../ready", "Ready"):
        with pytest.raises(ConfigurationError):
            packaged_contract(phase)


NEXT: dict[str, str | None] = {"ready": None, **dict(pairwise(PHASES))}
SHIPPED = {
    "research": (
        "research.md",
        "Problem, Current State, Findings, Options, Risks, Recommendation, Open Questions, Sources",
    ),
    "architecture": (
        "design.md",
        "Context, Goals and Non-Goals, Design, Data Model, Interfaces, Alternatives, Risks, Rollout, Testing, "
        "Recommendation",
    ),
    "grooming": (
        "grooming.md",
        "Summary, Scope, Acceptance Criteria, Tasks, Dependencies, Test Plan, Estimate, Risks",
    ),
    "ready": (None, ""),
}


@pytest.mark.parametrize("phase", PHASES)
def test_the_shipped_contracts_ask_for_what_was_agreed(phase: str) -> None:
    contract = packaged_contract(phase)
    artifact, sections = SHIPPED[phase]
    assert (contract.phase, contract.version, contract.artifact) == (phase, 1, artifact)
    assert ", ".join(contract.required_sections) == sections
    assert set(contract.profiles) == PHASE_PROFILES[phase]
    assert contract.min_chars == (0 if phase == "ready" else 100)
    assert contract.requires_judge == (phase != "ready")
    assert contract.next == NEXT[phase]
    assert packaged_contract(phase) is contract


@pytest.mark.parametrize("phase", PHASES)
def test_a_shipped_prompt_explains_every_section_and_names_tools_that_its_readers_have(phase: str) -> None:
    contract = packaged_contract(phase)
    explained = {slug(name) for name in re.findall(r"^- \*\*(.+?)\*\*:", contract.body, re.MULTILINE)}
    assert {slug(section) for section in contract.required_sections} <= explained
    tools = {tool.name: tool for tool in load_domains(plugins=False).registry}
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", contract.body)) - set(tools["complete_phase"].input.model_fields)
    words = {"open_questions", "depends_on", "code_pattern", "test_result"}
    assert named - words <= set(tools)
    for profile in contract.profiles:
        assert [name for name in named - words if profile not in tools[name].profiles] == []
    assert {"complete_phase", "verify_workspace", "get_issue", "update_issue_status"} <= named
    assert ("sha256sum" in contract.body) == (phase != "ready")


def test_a_folder_may_have_contracts_of_its_own(tmp_path: Path) -> None:
    assert contract_in(tmp_path, "research") is None
    assert contract_in(tmp_path / "none", "research") is None
    (tmp_path / "research.md").write_text(contract_text())
    found = contract_in(tmp_path, "research")
    assert found is not None
    assert found.version == 2
    assert contract_in(tmp_path, "grooming") is None


def test_a_contract_of_a_folder_must_be_a_plain_file_for_its_phase(tmp_path: Path) -> None:
    (tmp_path / "grooming.md").write_text(contract_text())
    (tmp_path / "ready.md").mkdir()
    os.mkfifo(tmp_path / "architecture.md")
    (tmp_path / "real.md").write_text(contract_text())
    (tmp_path / "research.md").symlink_to("real.md")
    for phase in PHASES:
        with pytest.raises(ConfigurationError) as caught:
            contract_in(tmp_path, phase)
        assert phase in caught.value.message
    (tmp_path / "research.md").unlink()
    (tmp_path / "research.md").write_bytes(b"x" * (MAX_CONTRACT + 1))
    with pytest.raises(ConfigurationError):
        contract_in(tmp_path, "research")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a contract on the branch main, and another text in its working tree."""
    folder = tmp_path / "repository"
    (folder / "rules").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "rules" / "research.md").write_text(contract_text())
    (folder / "rules" / "grooming.md").symlink_to("research.md")
    (folder / "rules" / "architecture.md").write_text(contract_text(body="x" * 2_000_000))
    (folder / "rules" / "ready.md").mkdir()
    (folder / "rules" / "ready.md" / "x").write_text("x")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "rules")
    (folder / "rules" / "research.md").write_text("changed, but not committed")
    return folder


def test_a_contract_is_read_from_a_branch_and_not_from_the_working_tree(repository: Path) -> None:
    found = contract_on_branch(repository, "main", "rules/", "research")
    assert found is not None
    assert found.version == 2
    assert contract_on_branch(repository, "main", "other", "research") is None
    assert contract_on_branch(repository, "main", "rules/research.md", "research") is None
    git(repository, "checkout", "-q", "-f", "-b", "later")
    (repository / "rules" / "research.md").write_text(contract_text(version="3"))
    git(repository, "commit", "-q", "-a", "-m", "later")
    versions = [contract_on_branch(repository, branch, "./rules", "research") for branch in ("main", "later")]
    assert [version and version.version for version in versions] == [2, 3]


def test_what_is_no_plain_file_on_the_branch_is_refused(repository: Path) -> None:
    for phase in ("grooming", "architecture", "ready"):
        with pytest.raises(ConfigurationError) as caught:
            contract_on_branch(repository, "main", "rules", phase)
        assert f"rules/{phase}.md on main" in caught.value.message


@pytest.mark.parametrize(
    "arguments",
    [
        {"branch": "--help"},
        {"branch": "-x"},
        {"branch": "nope"},
        {"branch": "main:rules/research.md"},
        {"branch": "main~0"},
        {"branch": ""},
        {"folder": "../repository/rules"},
        {"folder": "/etc"},
        {"folder": ""},
        {"folder": "rules\n"},
        {"repo": "no such folder"},
    ],
)
def test_a_branch_or_folder_that_there_is_not_is_refused_and_never_an_option(
    repository: Path, arguments: dict[str, Any]
) -> None:
    given_arguments: dict[str, Any] = {"repo": repository, "branch": "main", "folder": "rules", "phase": "research"}
    with pytest.raises(ValidationFailed) as caught:
        contract_on_branch(**{**given_arguments, **arguments})
    assert caught.value.hint


def test_a_folder_whose_name_looks_like_an_option_is_a_folder(repository: Path) -> None:
    assert contract_on_branch(repository, "main", "--output=x", "research") is None
    assert contract_on_branch(repository, "main", "*", "research") is None
    assert contract_on_branch(repository, "main", ":(glob)**", "research") is None
    assert not (repository / "x").exists()
