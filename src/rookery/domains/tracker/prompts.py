"""Prompts with which agents start their work: one for each thing that a role does."""

import asyncio
from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import Field, StringConstraints

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.prompt import prompt
from rookery.core.tool import NoInput, ToolInput
from rookery.db.tx import Tx
from rookery.domains.tracker.brief_data import (
    phase_to_judge,
    phase_to_work_on,
    pull_request_to_review,
    read_coverage,
    read_delivered,
    read_known,
    read_review,
    read_work,
    refuse_contract,
)
from rookery.domains.tracker.briefs import intake_brief, scan_brief, work_brief
from rookery.domains.tracker.contract import Contract, Phase
from rookery.domains.tracker.inputs import Label
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.revalidation import project_contract
from rookery.domains.tracker.review_briefs import judge_brief, review_brief

T = TypeVar("T")
Request = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=50_000)]


class WorkOnPhase(ToolInput):
    phase: Phase | None = Field(None, description="The phase that you expect; absent: the one the issue is in.")


class ScanProject(ToolInput):
    concept: Label | None = Field(None, description="What to examine it for, such as error_handling.")


class TakeInRequests(ToolInput):
    request: Request = Field(description="What was asked for, in its own words.")


@prompt(title="Work on the issue's phase", right="complete_phase")
async def work_on_phase(ctx: Context, args: WorkOnPhase) -> str:
    """Tells an agent to work on the bound issue's phase: its role, the project's contract, the issue, and each step up
    to the claim."""
    settings, contract = await _contract(ctx, lambda tx: phase_to_work_on(tx, ctx.actor, args.phase))
    refuse_contract(contract, ctx.actor.profile)
    return await _told(ctx, read_work, work_brief, settings, contract)


@prompt(title="Judge the claimed phase", right="approve_phase")
async def judge_phase(ctx: Context, args: NoInput) -> str:
    """Tells a judge to decide on the artifact that was claimed for the bound issue: contract, artifact, earlier
    rejections, and how to approve or reject."""
    settings, contract = await _contract(ctx, lambda tx: phase_to_judge(tx, ctx.actor))
    return await _told(ctx, read_delivered, judge_brief, settings, contract)


@prompt(title="Review the pull request", right="approve_pr")
async def review_pr(ctx: Context, args: NoInput) -> str:
    """Tells a judge to decide on the bound issue's open pull request: its risk, its gates, its diff, and how to approve
    or reject."""
    settings, contract = await _contract(ctx, lambda tx: pull_request_to_review(tx, ctx.actor))
    return await _told(ctx, read_review, review_brief, settings, contract)


@prompt(title="Scan the project", right="record_coverage")
def scan_project(ctx: Context, args: ScanProject) -> str:
    """Tells a scanner to examine the bound project: what was examined already, and how to record what is next."""
    slug, seen = read_coverage(ctx.tx, ctx.actor, args.concept)
    return scan_brief(slug, args.concept, seen)


@prompt(title="Take in requests", right="create_issue")
def take_in_requests(ctx: Context, args: TakeInRequests) -> str:
    """Tells an agent to turn a raw request into issues of the bound project, without making any twice."""
    slug, known = read_known(ctx.tx, ctx.actor)
    return intake_brief(slug, args.request, known)


async def _contract(
    ctx: Context, look: Callable[[Tx], tuple[ProjectSettings, str]]
) -> tuple[ProjectSettings, Contract]:
    """The contract of the phase that `look` finds, as the project has it on its base branch."""
    settings, phase = await ctx.read(look)
    # It asks git, so no transaction is open meanwhile.
    return settings, await asyncio.to_thread(project_contract, settings, phase)


async def _told(
    ctx: Context,
    read: Callable[[Tx, Actor, ProjectSettings, Contract], T],
    brief: Callable[[T], str],
    settings: ProjectSettings,
    contract: Contract,
) -> str:
    found = await ctx.read(lambda tx: read(tx, ctx.actor, settings, contract))
    return await asyncio.to_thread(brief, found)
