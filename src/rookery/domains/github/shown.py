"""What agents are shown of GitHub's long answers."""

from typing import Any

from rookery.domains.github.answers import Json, entries, inside, line, number

MAX_TOPICS = 20


def short_pull(pull: Json) -> dict[str, Any]:
    """A pull request in a list. How much it changes is only in its own answer."""
    return {
        "number": number(pull.get("number")),
        "title": line(pull.get("title")),
        "url": line(pull.get("html_url")),
        "author": line(inside(pull, "user", "login")),
        "state": "merged" if pull.get("merged_at") else line(pull.get("state")),
        "draft": pull.get("draft") is True,
        "head": line(inside(pull, "head", "ref")),
        "base": line(inside(pull, "base", "ref")),
        "created_at": line(pull.get("created_at")),
    }


def sizes(pull: Json) -> dict[str, int]:
    """How much a pull request changes, as far as it says."""
    found = {name: number(pull.get(name)) for name in ("additions", "deletions", "changed_files")}
    return {name: value for name, value in found.items() if value is not None}


def short_issue(issue: Json) -> dict[str, Any]:
    labels = entries(issue.get("labels"))
    named = [each if isinstance(each, str) else inside(each, "name") for each in labels]
    return {
        "number": number(issue.get("number")),
        "title": line(issue.get("title")),
        "url": line(issue.get("html_url")),
        "state": line(issue.get("state")),
        "author": line(inside(issue, "user", "login")),
        "labels": [line(name) for name in named if name],
        "created_at": line(issue.get("created_at")),
    }


def repository(repo: Json) -> dict[str, Any]:
    return {
        "name": line(repo.get("name")),
        "owner": line(inside(repo, "owner", "login")),
        "description": line(repo.get("description"), 1000),
        "url": line(repo.get("html_url")),
        "stars": number(repo.get("stargazers_count")),
        "forks": number(repo.get("forks_count")),
        "open_issues": number(repo.get("open_issues_count")),
        "archived": repo.get("archived") is True,
        "private": repo.get("private") is True,
        "fork": repo.get("fork") is True,
        "default_branch": line(repo.get("default_branch")),
        "language": line(repo.get("language")) or None,
        "license": line(inside(repo, "license", "spdx_id")) or None,
        "topics": [line(each) for each in entries(repo.get("topics"))[:MAX_TOPICS]],
        "pushed_at": line(repo.get("pushed_at")) or None,
    }


def pull_lines(pulls: list[dict[str, Any]]) -> str:
    """A list of pull requests as text: two lines each."""
    return "\n".join(_pull_line(pull) for pull in pulls) or "no pull requests"


def _pull_line(pull: dict[str, Any]) -> str:
    size = f", +{pull['additions']}/-{pull['deletions']}" if {"additions", "deletions"} <= pull.keys() else ""
    files = f", {pull['changed_files']} files" if "changed_files" in pull else ""
    state = f"{'draft, ' if pull['draft'] else ''}{pull['state']}, {pull['head']} -> {pull['base']}"
    return (
        f"#{pull['number']} {pull['title']} (by {pull['author']}{size}{files}) [{state}, {pull['created_at']}]\n"
        f"{pull['url']}"
    )


def issue_lines(issues: list[dict[str, Any]]) -> str:
    """A list of issues as text: two lines each."""
    return "\n".join(_issue_line(issue) for issue in issues) or "no issues"


def _issue_line(issue: dict[str, Any]) -> str:
    labels = f" [{', '.join(issue['labels'])}]" if issue["labels"] else ""
    rest = f"({issue['state']}, by {issue['author']}, {issue['created_at']})"
    return f"#{issue['number']} {issue['title']}{labels} {rest}\n{issue['url']}"
