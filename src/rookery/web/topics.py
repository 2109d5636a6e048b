"""What pages can listen to: for each topic the question whose answer changes when the topic does.

Each must be answered from indexes or from few rows: it is asked every second while a page with the topic is open.
"""

_OURS = "project_id IN (SELECT id FROM projects WHERE tenant = :tenant)"
TOPICS: dict[str, str] = {
    "waiting": "SELECT (SELECT count(*) FROM asks WHERE tenant = :tenant AND status = 'open'), "
    "(SELECT max(created_ms) FROM asks WHERE tenant = :tenant), "
    f"(SELECT count(*) FROM issues WHERE {_OURS} AND status IN ('review', 'blocked')), "
    f"(SELECT count(*) FROM prs WHERE {_OURS} AND status = 'open'), "
    f"(SELECT count(*) FROM prs WHERE {_OURS} AND status = 'approved'), "
    f"(SELECT max(seq) FROM finding_processing WHERE {_OURS} AND processed_ms IS NULL), "
    "(SELECT count(*) FROM schedules WHERE tenant = :tenant AND status = 'paused'), "
    "(SELECT count(*) FROM pauses WHERE tenant = :tenant), (SELECT max(at_ms) FROM pauses WHERE tenant = :tenant)",
    "orchestrator": "SELECT (SELECT max(ticked_ms) FROM orchestrator_leaders), (SELECT max(updated_ms) "
    "FROM orchestrator_projects WHERE tenant = :tenant), (SELECT count(*) FROM dispatches "
    "WHERE tenant = :tenant AND state != 'ended')",
    "issues": "SELECT (SELECT max(seq) FROM issue_changes), (SELECT max(seq) FROM comments), (SELECT max(seq) "
    "FROM findings), (SELECT max(seq) FROM line_comments), "
    "(SELECT sum(next_number) FROM tracker_projects WHERE tenant = :tenant)",
    "connections": "SELECT count(*), max(first_ms) FROM agent_sightings WHERE tenant = :tenant",
    "asks": "SELECT (SELECT count(*) FROM asks WHERE tenant = :tenant AND status = 'open'), "
    "(SELECT max(created_ms) FROM asks WHERE tenant = :tenant), "
    "(SELECT max(later_ms) FROM asks WHERE tenant = :tenant AND status = 'open')",
    "sessions": "SELECT max(active_ms), count(*), sum(turns), sum(CASE state WHEN 'waiting' THEN 1 ELSE 0 END), "
    "sum(CASE state WHEN 'running' THEN 1 ELSE 0 END) FROM agent_sessions WHERE tenant = :tenant "
    "AND active_ms > (SELECT max(active_ms) - 86400000 FROM agent_sessions WHERE tenant = :tenant)",
    "runs": "SELECT count(*), sum(event_count), max(updated_ms), "
    "(SELECT max(created_ms) FROM agent_runs WHERE tenant = :tenant) "
    "FROM agent_runs WHERE tenant = :tenant AND status IN ('queued', 'running')",
    "automation": "SELECT (SELECT count(*) FROM schedules WHERE tenant = :tenant), "
    "(SELECT max(updated_ms) FROM schedules WHERE tenant = :tenant), "
    "(SELECT sum(execution_count) FROM schedules WHERE tenant = :tenant), "
    "(SELECT count(*) FROM schedule_executions WHERE tenant = :tenant AND status = 'running'), "
    "(SELECT count(*) FROM schedule_executions WHERE tenant = :tenant AND status = 'approved'), "
    "(SELECT count(*) FROM schedule_executions WHERE tenant = :tenant AND status = 'awaiting_approval'), "
    "(SELECT max(updated_ms) FROM workflows WHERE tenant = :tenant), (SELECT max(id) FROM workflow_runs), "
    "(SELECT count(*) FROM workflow_runs WHERE tenant = :tenant AND ended_ms IS NULL AND status = 'running'), "
    "(SELECT count(*) FROM workflow_runs WHERE tenant = :tenant AND ended_ms IS NULL), "
    "(SELECT sum(CASE nodes.status WHEN 'pending' THEN 1 WHEN 'running' THEN 1000 WHEN 'waiting' THEN 1000000 "
    "ELSE 0 END) FROM workflow_node_runs AS nodes JOIN workflow_runs AS runs ON runs.id = nodes.run_id "
    "WHERE runs.tenant = :tenant AND runs.ended_ms IS NULL)",
    "jobs": "SELECT (SELECT max(id) FROM jobs WHERE tenant = :tenant), "
    "(SELECT count(*) FROM jobs WHERE tenant = :tenant AND state = 'waiting'), "
    "(SELECT sum(attempt) FROM jobs WHERE tenant = :tenant AND state = 'running'), "
    "(SELECT max(lease_ms) FROM jobs WHERE tenant = :tenant AND state = 'running')",
    "knowledge": "SELECT (SELECT count(*) FROM knowledge_documents WHERE tenant = :tenant), "
    "(SELECT max(indexed_ms) FROM knowledge_documents WHERE tenant = :tenant), "
    "(SELECT max(seq) FROM learnings WHERE tenant = :tenant), "
    "(SELECT sum(memories) FROM memory_owners WHERE tenant = :tenant)",
    "health": "SELECT (SELECT seq FROM health_snapshots WHERE tenant = :tenant ORDER BY seq DESC LIMIT 1), "
    "(SELECT seq FROM test_health WHERE tenant = :tenant ORDER BY seq DESC LIMIT 1)",
    "agents": "SELECT (SELECT value FROM epochs WHERE name = 'identity'), count(*) FROM agents WHERE tenant = :tenant",
    # Of all tenants: the log has no index but its number. On PostgreSQL a record gets its place a moment later.
    "audit": "SELECT (SELECT max(id) FROM audit_log), "
    "(SELECT position FROM audit_log WHERE position IS NOT NULL ORDER BY id DESC LIMIT 1)",
    "people": "SELECT (SELECT value FROM epochs WHERE name = 'identity'), count(*), max(seen_ms), count(ended_ms) "
    "FROM web_sessions WHERE tenant = :tenant",
}
