"""Issues, what was claimed for them, and boards, to be read by address."""

from collections.abc import Mapping

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.resource import Entry, resource
from rookery.core.tool import ToolInput
from rookery.domains.tracker.board import board_markdown, read_board
from rookery.domains.tracker.contract import Phase
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.issue_data import claimed_artifact, issue_data
from rookery.domains.tracker.issue_markdown import issue_markdown
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.store import Issues
from rookery.domains.tracker.tables import artifacts, phase_claims
from rookery.identity.tables import projects
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import OPEN, PHASES

MARKDOWN = "text/markdown"
LISTED = 100
LISTED_PROJECTS = 1000


class IssueAddress(ToolInput):
    identifier: Ref = Field(description="Identifier or id of the issue.")


class ArtifactAddress(ToolInput):
    identifier: Ref = Field(description="Identifier or id of the issue.")
    phase: Phase = Field(description="The phase that delivered it.")


class BoardAddress(ToolInput):
    slug: Ref = Field(description="Slug or id of the project.")


def _open_issues(ctx: Context) -> list[Entry]:
    mine = (issues.c.project_id == ctx.actor.project, issues.c.status.in_(OPEN))
    # Not by number: the index of numbers would lead through all finished issues.
    newest = sa.select(issues).where(*mine).order_by(issues.c.created_ms.desc(), issues.c.id.desc())
    return [
        Entry(
            f"issue://{row.identifier}",
            name=row.identifier,
            title=row.title,
            description=f"{row.status}, phase:{row.phase}, P{row.priority}",
            mime_type=MARKDOWN,
        )
        for row in ctx.tx.all(newest.limit(LISTED))
    ]


def _identifiers(ctx: Context, typed: str, others: Mapping[str, str]) -> list[str]:
    begins = issues.c.identifier.startswith(typed.strip().upper(), autoescape=True)
    mine = sa.select(issues.c.identifier).where(issues.c.project_id == ctx.actor.project, begins)
    return [row.identifier for row in ctx.tx.all(mine.order_by(issues.c.number.desc()).limit(LISTED))]


@resource(
    "issue://{identifier}", title="Issue", right="get_issue", mime_type=MARKDOWN, entries=_open_issues,
    complete={"identifier": _identifiers},
)  # fmt: skip
def issue(ctx: Context, args: IssueAddress) -> str:
    """The whole issue as Markdown, with the newest 50 of each kind of record. What others wrote stands in quotes."""
    found = Issues(ctx.tx, ctx.actor).find(args.identifier)
    return issue_markdown(issue_data(ctx.tx, ctx.actor, found))


def _bound_artifacts(ctx: Context) -> list[Entry]:
    """Those of the bound issue."""
    if ctx.actor.issue is None:
        return []
    bound = Issues(ctx.tx, ctx.actor).bound()
    kept = sa.and_(artifacts.c.issue_id == phase_claims.c.issue_id, artifacts.c.hash == phase_claims.c.artifact_hash)
    claimed = sa.select(phase_claims.c.phase).join(artifacts, kept).where(phase_claims.c.issue_id == bound.id)
    found = {row.phase for row in ctx.tx.all(claimed.distinct())}
    return [
        Entry(
            f"issue://{bound.identifier}/artifacts/{phase}",
            name=f"{bound.identifier} {phase}",
            title=f"{phase} of {bound.identifier}, as claimed",
            mime_type=MARKDOWN,
        )
        for phase in PHASES
        if phase in found
    ]


@resource(
    "issue://{identifier}/artifacts/{phase}", title="Claimed artifact", right="get_issue", mime_type=MARKDOWN,
    entries=_bound_artifacts, complete={"identifier": _identifiers},
)  # fmt: skip
def issue_artifact(ctx: Context, args: ArtifactAddress) -> str:
    """What the latest claim of a phase delivered, exactly as it was claimed, also when its worktree is gone."""
    found = Issues(ctx.tx, ctx.actor).find(args.identifier)
    return claimed_artifact(ctx.tx, ctx.actor, found, args.phase)


def _visible_slugs(ctx: Context) -> list[str]:
    seen = (projects.c.tenant == ctx.actor.tenant, projects.c.id.not_in(sorted(ctx.actor.closed)))
    wanted = sa.select(projects.c.slug).where(*seen).order_by(projects.c.slug).limit(LISTED_PROJECTS)
    return [row.slug for row in ctx.tx.all(wanted)]


def _boards(ctx: Context) -> list[Entry]:
    return [
        Entry(f"project://{slug}/board", name=slug, title=f"Board of {slug}", mime_type=MARKDOWN)
        for slug in _visible_slugs(ctx)
    ]


def _slugs(ctx: Context, typed: str, others: Mapping[str, str]) -> list[str]:
    return [slug for slug in _visible_slugs(ctx) if slug.casefold().startswith(typed.strip().casefold())]


@resource(
    "project://{slug}/board", title="Board", right="list_issues", mime_type=MARKDOWN, entries=_boards,
    complete={"slug": _slugs},
)  # fmt: skip
def project_board(ctx: Context, args: BoardAddress) -> str:
    """The issues of a project by status, as Markdown: at most 50 of each, of finished ones the last 10."""
    project = Projects(ctx.tx, ctx.actor).find(args.slug)
    return board_markdown(project.slug, read_board(ctx.tx, project.project_id))
