"""The history of the rows that matter: every change that was committed, in order, whoever made it."""

import sqlite3
from collections.abc import Mapping

_WATCHED: Mapping[str, tuple[str, ...]] = {
    "agent_runs": ("id", "issue_id", "phase", "status", "key"),
    "dispatches": ("id", "issue_id", "work", "phase", "state", "outcome"),
    "issues": ("id", "phase", "status", "project_id", "identifier"),
    "finding_processing": ("finding_id", "issue_id", "outcome", "processed_ms"),
    "findings": ("id", "issue_id", "run_id", "category"),
    "prs": ("id", "issue_id", "revision", "status"),
    "workspaces": ("issue_id", "path", "kept", "removed_ms"),
}
"""What is noted of each table. An update is noted if one of these changes, with the old values as well."""


def watch_rows(driver: sqlite3.Connection) -> None:
    """Have `simulation_note(table, old or null, new)` called, both as JSON, for each such change."""
    for table, columns in _WATCHED.items():
        old, new = (_json(prefix, columns) for prefix in ("OLD", "NEW"))
        note = f"SELECT simulation_note('{table}', {{old}}, {new})"
        driver.execute(
            f"CREATE TEMP TRIGGER noted_new_{table} AFTER INSERT ON main.{table} BEGIN {note.format(old='NULL')}; END"
        )
        differs = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in columns)
        driver.execute(
            f"CREATE TEMP TRIGGER noted_{table} AFTER UPDATE ON main.{table} WHEN {differs} "
            f"BEGIN {note.format(old=old)}; END"
        )


def _json(prefix: str, columns: tuple[str, ...]) -> str:
    pairs = (f"'{name}', {prefix}.{name}" for name in columns)
    return f"json_object({', '.join(pairs)})"
