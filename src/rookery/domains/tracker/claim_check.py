"""What an agent says when it claims a phase, and whether the files say so too. Reads files and git; blocks."""

import os
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, PermissionDenied, ValidationFailed
from rookery.domains.tracker.artifact import (
    artifact_place,
    artifact_text,
    check_artifact,
    check_hash,
    check_name,
    promotion_target,
    read_artifact,
)
from rookery.domains.tracker.claim_store import NewClaim, Row
from rookery.domains.tracker.contract import Contract, Phase, contract_in, packaged_contract
from rookery.domains.tracker.inputs import OnIssue
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.revalidation import DEFAULT_CONTRACTS
from rookery.domains.tracker.worktree import branch_of, commits_ahead, head_of, is_clean, verify_worktree
from rookery.files.tree_files import inside, path_parts

Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
Summary = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class CompletePhase(OnIssue):
    completed_phase: Phase = Field(description="The issue's phase.")
    summary: Summary = Field(description="Of the result.")
    project_path: str = Field(min_length=1, max_length=4096, description="Root of the worktree.")
    contract_version: int | None = Field(None, description="Of the contract, now 1; needed unless ready.")
    artifact_path: str | None = Field(None, max_length=1000, description="In docs/tickets/; needed unless ready.")
    artifact_hash: str | None = Field(None, max_length=80, description="SHA-256; needed unless ready.")
    recommended_next_phase: Phase | None = Field(None, description="Needed unless ready.")
    open_questions: list[Question] = Field([], max_length=50, description="Unresolved.")
    confidence: Literal["high", "medium", "low"] = Field("medium", description="How sure.")
    promote_to: str | None = Field(None, max_length=1000, description="Once approved, copy to this .md in docs/.")
    contracts_dir: str | None = Field(None, max_length=4096, description="Instead of prompts/phases/.")


def checked_claim(
    actor: Actor, issue: Row, settings: ProjectSettings, args: CompletePhase
) -> tuple[NewClaim, Contract]:
    """The claim as it is to be recorded, and the contract that it follows. The first thing that is wrong is raised."""
    root = _root(actor, issue, settings, args.project_path)
    if args.artifact_path is not None:
        artifact_place(root, args.artifact_path)
    promote_to = None if args.promote_to is None else promotion_target(root, args.promote_to)
    contract = _contract(root, settings, args)
    _refuse_contract(contract, actor.profile, args.contract_version)
    worktree = os.path.realpath(actor.worktree or root)
    delivered = (
        _commit(worktree, settings.base_branch) if args.completed_phase == "ready" else _artifact(root, contract, args)
    )
    claim = NewClaim(
        phase=args.completed_phase,
        contract_version=contract.version,
        summary=args.summary,
        open_questions=args.open_questions,
        confidence=args.confidence,
        promote_to=promote_to,
        recommended_next_phase=args.recommended_next_phase,
        worktree=worktree,
        **delivered,
    )
    return claim, contract


def _root(actor: Actor, issue: Row, settings: ProjectSettings, given: str) -> str:
    """The tree that the claim is about. A bound worktree must be marked as the issue's, wherever the path leads."""
    if actor.worktree is not None:
        verify_worktree(actor.worktree, actor.cwd, issue.identifier, issue.id)
    roots = [os.path.realpath(root) for root in (actor.worktree, settings.path) if root]
    if not roots:
        raise Conflict("no worktree is bound and the project has no folder", hint="start with --worktree-path")
    real = os.path.realpath(given)
    if not os.path.isabs(given) or real not in roots or not os.path.isdir(real):
        raise ValidationFailed(
            f"project_path {given} is neither the bound worktree nor the project's root", hint=f"give {roots[0]}"
        )
    return real


def _contract(root: str, settings: ProjectSettings, args: CompletePhase) -> Contract:
    """The tree's own contract, else the one that the package brings. Only a folder that was asked for must be there."""
    phase, asked = args.completed_phase, args.contracts_dir
    wanted = asked if asked is not None else settings.contracts_dir or DEFAULT_CONTRACTS
    if os.path.isabs(wanted):
        wanted = os.path.relpath(os.path.realpath(wanted), root)
    folder = inside(root, path_parts(wanted, "contracts_dir"), (), "contracts_dir")
    if not os.path.isdir(folder):
        if asked is not None:
            raise ValidationFailed(f"contracts_dir {asked} is not a folder there", hint="leave it out")
        return packaged_contract(phase)
    return contract_in(folder, phase) or packaged_contract(phase)


def _refuse_contract(contract: Contract, profile: str | None, version: int | None) -> None:
    if profile is not None and profile not in contract.profiles:
        raise PermissionDenied(
            f"the contract of {contract.phase} is for {' or '.join(contract.profiles)}, not for a {profile}",
            hint="leave this phase to them",
            layer="phase",
        )
    if version is not None and version != contract.version:
        raise ValidationFailed(
            f"contract_version is {version}, but the contract of {contract.phase} has version {contract.version}",
            hint="read the contract as it is now, mend the artifact if it asks for more, and give its version",
        )


def _artifact(root: str, contract: Contract, args: CompletePhase) -> dict[str, str]:
    """The artifact as it lies there now, if it is the one that was claimed and has what the contract asks for."""
    assert args.artifact_path is not None
    assert args.artifact_hash is not None
    artifact = read_artifact(root, args.artifact_path)
    check_name(artifact.path, contract)
    check_hash(artifact, args.artifact_hash)
    content = artifact_text(artifact)
    check_artifact(content, contract)
    return {"artifact_path": artifact.path, "artifact_hash": artifact.sha256, "content": content}


def _commit(worktree: str, base: str) -> dict[str, str | None]:
    if commits_ahead(worktree, base) == 0:
        raise ValidationFailed(f"nothing is committed beyond {base}", hint="git commit the work, then claim again")
    if not is_clean(worktree):
        raise ValidationFailed(
            "the worktree has changes that are not committed", hint="git status shows them: commit or ignore them"
        )
    return {"branch": branch_of(worktree), "head": head_of(worktree)}
