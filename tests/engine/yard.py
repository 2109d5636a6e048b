"""A repository that workspaces are made from, and what tests do to it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rookery.engine.project_settings import Hooks
from rookery.engine.workspace_names import Site
from tests.domains.work.workshop import git, make_repository

ISSUE, IDENTIFIER = "iss_1", "SHO-1"


def row_of(path: str, branch: str, issue_id: str = ISSUE) -> Any:
    """What the database keeps of a workspace, as far as removing it needs it."""
    return SimpleNamespace(path=path, branch=branch, issue_id=issue_id)


def make_site(folder: Path, **values: Any) -> Site:
    """A site on a fresh repository with one commit on main, or on the one that is given."""
    repository = values.pop("repository", None) or make_repository(folder / "code" / "shop")
    hooks = Hooks(**{name: values.pop(name) for name in tuple(values) if name in Hooks.model_fields})
    given: dict[str, Any] = {
        "project_id": "prj_1",
        "slug": "shop",
        "base_branch": "main",
        "root": str((folder / "trees").resolve()),
        **values,
    }
    return Site(repository=str(Path(repository).resolve()), hooks=hooks, **given)


def commit(folder: Path | str, name: str, text: str = "text\n") -> str:
    """Commit a file; the hash."""
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    git(folder, "add", "--", name)
    git(folder, "commit", "-q", "-m", f"add {name}")
    return git(folder, "rev-parse", "HEAD")


def state_of(repository: str) -> tuple[str, str, str]:
    """What must not change in a checkout: what is checked out, its files, and its index."""
    return (
        git(repository, "rev-parse", "--symbolic-full-name", "HEAD"),
        git(repository, "status", "--porcelain", "--ignored"),
        git(repository, "ls-files", "--stage"),
    )
