"""The names that the seed documents fix. Tests compare the registry with them; nothing is derived from them."""

from rookery.domains.code.grammars import installed

DEFAULT_SET = frozenset({
    "send_message", "save_memory", "recall_memory", "list_agents", "extend_timeout", "check_credits",
    "create_work_task", "manage_schedule", "manage_workflow", "web_search", "deep_research", "discover_agent",
    "invoke_remote_agent", "notify_owner", "ask_owner", "configure_notifications", "check_reputation",
    "check_health_trends", "publish_attestation", "verify_agent_reputation", "code_symbols", "find_references",
    "github_star_repo", "github_unstar_repo", "github_fork_repo", "github_list_prs", "github_create_pr",
    "github_review_pr", "github_create_issue", "github_list_issues", "github_repo_info", "github_get_pr_diff",
    "github_comment_on_pr", "github_follow_user",
})  # fmt: skip
PRIVILEGED = frozenset({"grant_credits", "credit_config"})
# What the product keeps as close: the commands of a project's gates are run on the owner's machine.
ALSO_PRIVILEGED = frozenset({"configure_project"})
SCHEDULER_BLOCKED = frozenset({
    "send_message", "grant_credits", "credit_config", "github_fork_repo", "github_create_pr",
    "github_create_issue", "github_comment_on_pr", "ask_owner",
})  # fmt: skip
CONDITIONAL = {"create_work_task": "work_tasks", "code_symbols": "code_index", "find_references": "code_index"}
# Those whose service is missing here: an installation without the extra `code` has no parser.
UNSERVED = {name: service for name, service in CONDITIONAL.items() if service == "code_index" and not installed()}

# What the product adds to the default set beyond the seeds.
ADDITIONS = frozenset({
    "ping", "get_server_info", "get_session_count", "forget_memory", "promote_memory", "check_answer",
    "get_work_task", "list_work_tasks", "cancel_work_task", "get_costs", "read_inbox", "acknowledge_message",
    "record_health_snapshot", "collect_health",
})  # fmt: skip

# Which profile has which tool, by the profiles' letters.
MATRIX = {
    "get_issue": "WRJSAPI",
    "get_issue_status": "WRJAP",
    "update_issue_status": "WRAP",
    "add_finding": "WRJSAP",
    "add_learning": "WRJAP",
    "add_comment": "WRJSAPI",
    "create_issue": "WRSAPI",
    "create_subtask": "WAP",
    "list_issues": "WRJSAPI",
    "search_learnings": "WRJSAPI",
    "create_pr": "W",
    "approve_pr": "J",
    "reject_pr": "J",
    "configure_project": "",
    "complete_phase": "WRAP",
    "approve_phase": "J",
    "reject_phase": "J",
    "record_coverage": "S",
    "move_issue": "P",
    "verify_workspace": "WRAP",
    "record_test_health": "W",
    "search_knowledge": "WRJSAPI",
    "vault_retrieve": "WRJSAPI",
    "vault_update": "WR",
    "vault_delete": "W",
    "query_run_events": "RJA",
    "update_memory": "WRJSAPI",
}
# Without these a profile cannot do its work.
CRITICAL = {
    "worker": {"complete_phase", "get_issue", "verify_workspace"},
    "researcher": {"complete_phase", "get_issue"},
    "architect": {"complete_phase", "get_issue"},
    "planner": {"complete_phase", "get_issue"},
    "judge": {"approve_phase", "reject_phase", "approve_pr", "reject_pr", "get_issue"},
    "scanner": {"record_coverage", "create_issue"},
    "intake": {"create_issue", "list_issues"},
}
