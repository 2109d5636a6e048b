"""Stand-ins for tools of the seeds whose domains are not built yet, so that the permission rules can be tried on them.

A stand-in goes when its domain comes: two tools of one name stop the start.
"""

from rookery.core.context import Context
from rookery.core.tool import NoInput, Tool, ToolOutput, tool


class Did(ToolOutput):
    did: str


def _stand_in(name: str, **how: object) -> Tool:
    def handler(ctx: Context, args: NoInput) -> Did:
        return Did(did=name)

    handler.__name__ = name
    handler.__doc__ = f"Stands in for {name}. Use it in tests. Returns its name. Does nothing else."
    declared: dict[str, object] = {
        "title": name,
        "effect": "read",
        "action": "seed:use",
        "tier": "act",
        "group": "Write",
        "profiles": "",
        "default": True,
        "inline": True,
    }
    return tool(**{**declared, **how})(handler)  # pyright: ignore[reportArgumentType]


discover_agent = _stand_in("discover_agent", networking=True, bundles=("preset-communicator",), tier="observe")
invoke_remote_agent = _stand_in("invoke_remote_agent", networking=True, bundles=("preset-communicator",))
web_search = _stand_in("web_search", bundles=("preset-researcher", "preset-full-stack", "preset-memory-manager"))
deep_research = _stand_in("deep_research", bundles=("preset-researcher", "preset-memory-manager"))
check_reputation = _stand_in("check_reputation", tier="observe", bundles=("preset-analyst",))
check_health_trends = _stand_in("check_health_trends", tier="observe", bundles=("preset-analyst",))
publish_attestation = _stand_in("publish_attestation")
verify_agent_reputation = _stand_in("verify_agent_reputation", tier="observe")
code_symbols = _stand_in("code_symbols", requires="code_index", tier="observe")
find_references = _stand_in("find_references", requires="code_index", tier="observe")
github_star_repo = _stand_in("github_star_repo")
github_unstar_repo = _stand_in("github_unstar_repo")
github_follow_user = _stand_in("github_follow_user")
github_fork_repo = _stand_in("github_fork_repo", scheduler_blocked=True, bundles=("preset-devops",))
github_create_pr = _stand_in("github_create_pr", scheduler_blocked=True, bundles=("preset-devops", "preset-github-ops"))
github_create_issue = _stand_in("github_create_issue", scheduler_blocked=True, bundles=("preset-github-ops",))
github_comment_on_pr = _stand_in(
    "github_comment_on_pr", scheduler_blocked=True, bundles=("preset-code-reviewer", "preset-github-ops")
)
github_list_prs = _stand_in("github_list_prs", tier="observe", bundles=("preset-code-reviewer", "preset-github-ops"))
github_review_pr = _stand_in("github_review_pr", bundles=("preset-code-reviewer", "preset-github-ops"))
github_get_pr_diff = _stand_in(
    "github_get_pr_diff", tier="observe", bundles=("preset-code-reviewer", "preset-github-ops")
)
github_list_issues = _stand_in("github_list_issues", tier="observe", bundles=("preset-analyst", "preset-github-ops"))
github_repo_info = _stand_in("github_repo_info", tier="observe", bundles=("preset-analyst", "preset-github-ops"))
delete_everything = _stand_in("delete_everything", default=False, profiles="W", tier="destructive")
