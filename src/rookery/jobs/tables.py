"""The table of deferred work. Its rows are the queue, the leases, the fences and the record of what was done."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import flag, json_text, metadata, serial, text, whole

STATES = ("waiting", "running", "done", "failed", "cancelled")
OVER = ("done", "failed", "cancelled")

jobs = sa.Table(
    "jobs",
    metadata,
    serial(),
    text("tenant"),
    text("kind"),
    text("queue"),
    json_text("args"),
    text("key", null=True),
    text("lock_key", null=True),
    text("state"),
    whole("due_ms"),
    whole("attempt"),
    whole("failures"),
    whole("losses"),
    whole("attempts"),
    whole("backoff_ms"),
    text("worker", null=True),
    whole("lease_ms", null=True),
    flag("cancel"),
    json_text("progress", null=True),
    text("error", null=True),
    whole("created_ms"),
    whole("started_ms", null=True),
    whole("ended_ms", null=True),
    text("waits_for", null=True),
    sa.UniqueConstraint("tenant", "key"),
)
"""`waits_for` is the name by which a postponed job is released before it is due."""


def _index(name: str, *columns: sa.Column[object], where: str, unique: bool = False) -> None:
    sa.Index(name, *columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


_index("jobs_due", jobs.c.due_ms, jobs.c.id, where="state = 'waiting'")
_index("jobs_leases", jobs.c.lease_ms, where="state = 'running'")
_index("jobs_locked", jobs.c.tenant, jobs.c.lock_key, jobs.c.due_ms, jobs.c.id, where="lock_key IS NOT NULL")
_index("jobs_locks", jobs.c.tenant, jobs.c.lock_key, where="lock_key IS NOT NULL AND state = 'running'", unique=True)
_index("jobs_ended", jobs.c.ended_ms, where="ended_ms IS NOT NULL")
_index("jobs_postponed", jobs.c.tenant, jobs.c.waits_for, where="waits_for IS NOT NULL")
sa.Index("jobs_tenant", jobs.c.tenant, jobs.c.id)

MIGRATIONS = (
    Migration(
        1,
        "jobs",
        [
            "CREATE TABLE jobs (id {serial}, tenant TEXT NOT NULL, kind TEXT NOT NULL, queue TEXT NOT NULL, "
            "args {json} NOT NULL, key TEXT, lock_key TEXT, state TEXT NOT NULL, due_ms BIGINT NOT NULL, "
            "attempt BIGINT NOT NULL, failures BIGINT NOT NULL, losses BIGINT NOT NULL, attempts BIGINT NOT NULL, "
            "backoff_ms BIGINT NOT NULL, worker TEXT, lease_ms BIGINT, cancel BOOLEAN NOT NULL, progress {json}, "
            "error TEXT, created_ms BIGINT NOT NULL, started_ms BIGINT, ended_ms BIGINT, UNIQUE (tenant, key))",
            "CREATE INDEX jobs_due ON jobs (due_ms, id) WHERE state = 'waiting'",
            "CREATE INDEX jobs_leases ON jobs (lease_ms) WHERE state = 'running'",
            "CREATE INDEX jobs_locked ON jobs (tenant, lock_key, due_ms, id) WHERE lock_key IS NOT NULL",
            "CREATE UNIQUE INDEX jobs_locks ON jobs (tenant, lock_key) "
            "WHERE lock_key IS NOT NULL AND state = 'running'",
            "CREATE INDEX jobs_ended ON jobs (ended_ms) WHERE ended_ms IS NOT NULL",
            "CREATE INDEX jobs_tenant ON jobs (tenant, id)",
        ],
    ),
    Migration(
        2,
        "postponed jobs",
        [
            "ALTER TABLE jobs ADD COLUMN waits_for TEXT",
            "CREATE INDEX jobs_postponed ON jobs (tenant, waits_for) WHERE waits_for IS NOT NULL",
        ],
    ),
)
