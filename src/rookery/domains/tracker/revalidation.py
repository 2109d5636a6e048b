"""Checks claims a second time, against what the project itself says on its base branch. Reads files and git; blocks."""

import os
import re
from dataclasses import dataclass

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.artifact import check_artifact, check_name
from rookery.domains.tracker.contract import Contract, contract_on_branch, packaged_contract
from rookery.domains.tracker.diff import DiffStats, parse_diff
from rookery.domains.tracker.pipeline import Claim
from rookery.domains.tracker.pr_store import Standing, hash_of
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.worktree import branch_of, commits_ahead, diff_against, head_of, same_repository

DEFAULT_CONTRACTS = "prompts/phases"
_INDEX = re.compile(r"^index [0-9a-f]+\.\.[0-9a-f]+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Work:
    """Committed work of a ready claim: where it is and how it differs from the base branch."""

    worktree: str
    branch: str
    diff: str
    stats: DiffStats
    head: str


def project_contract(settings: ProjectSettings, phase: str) -> Contract:
    """The contract as it is committed on the project's base branch, else the one that the package brings."""
    if settings.path is None or not os.path.lexists(os.path.join(settings.path, ".git")):
        return packaged_contract(phase)
    folder = settings.contracts_dir or DEFAULT_CONTRACTS
    return contract_on_branch(settings.path, settings.base_branch, folder, phase) or packaged_contract(phase)


def checked_artifact(settings: ProjectSettings, claim: Claim, content: str | None) -> tuple[str | None, bool]:
    """What is wrong with a claimed artifact, or None; and whether a judge has to see it."""
    contract = project_contract(settings, claim.phase)
    judged = contract.requires_judge and claim.phase not in settings.unjudged
    version = claim.payload.get("contract_version")
    if content is None:
        return "its artifact was not kept. Claim again.", judged
    if version != contract.version:
        return f"it follows version {version} of the contract, the project has version {contract.version}.", judged
    try:
        check_name(str(claim.payload.get("artifact_path")), contract)
        check_artifact(content, contract)
    except ValidationFailed as error:
        return f"{error.message}. {error.hint}.", judged
    return None, judged


def standing_of(folder: str, branch: str, base: str, diff: str) -> Standing | None:
    """The commit in a worktree, if the branch has it checked out and `diff` is what git says of it; else None."""
    try:
        head = head_of(folder)
        own = diff_against(folder, base)
        if branch_of(folder) != branch or head_of(folder) != head or _bare(own) != _bare(diff):
            return None
    except ValidationFailed:
        return None
    return Standing(head, hash_of(own))


def _bare(diff: str) -> str:
    """A diff without the names of its blobs, which everybody shortens as they like."""
    return _INDEX.sub("", diff).strip()


def checked_work(settings: ProjectSettings, claim: Claim) -> Work | str:
    """The committed work of a ready claim, or what is wrong with it."""
    folder = claim.worktree
    if folder is None or not os.path.isdir(folder):
        return "its worktree does not exist any more."
    try:
        if settings.path is not None and not same_repository(settings.path, folder):
            return "its worktree is not one of the project's repository."
        head = head_of(folder)
        if head != claim.head:
            return "the worktree has moved on since. Claim again."
        branch = branch_of(folder)
        if branch is None:
            return "its commit is on no branch. Put it on the issue's branch and claim again."
        if commits_ahead(folder, settings.base_branch) == 0:
            return f"nothing is committed beyond {settings.base_branch}."
        diff = diff_against(folder, settings.base_branch)
        return Work(folder, branch, diff, parse_diff(diff), head)
    except ValidationFailed as error:
        return f"{error.message}."
