"""The rows of recorded test runs. They stand here, below the domains, because more than one domain reads them."""

import sqlalchemy as sa

from rookery.db.schema import metadata, serial, text, whole

test_health = sa.Table(
    "test_health",
    metadata,
    serial("seq"),
    text("tenant"),
    text("project_id"),
    text("issue_id"),
    text("run_id", null=True),
    whole("test_count"),
    whole("test_files_changed", null=True),
    whole("tests_added", null=True),
    whole("tests_removed", null=True),
    whole("execution_time_ms", null=True),
    whole("source_lines", null=True),
    text("author"),
    whole("at_ms"),
)
"""One row for each run of a whole suite that a worker reported. The tracker writes them; its migration made them."""
sa.Index("test_health_project", test_health.c.project_id, test_health.c.seq)
