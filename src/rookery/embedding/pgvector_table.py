"""Makes and fills the table that pgvector searches. Whatever stops it, the next process goes on from there.

Any number of processes may do this at once, while others write rows and search.
"""

import contextlib
import logging
import threading

import sqlalchemy as sa
from sqlalchemy import exc

from rookery.db.database import Database, open_database
from rookery.db.outside import run_outside
from rookery.db.tx import Tx
from rookery.embedding.pgvector import COMPLETE, EXACT_ROWS, FILLING, beside, extension, index_of, state_of, told_of

BATCH = 500
PATIENCE = "10s"
"""How long to wait for a writer, while every other writer waits behind us."""
LOCK = 0x524F4F4C  # the next after that of migrations
LEAST_FOR_INDEX = (0, 8)
"""The first version whose index goes on looking if most of what it found belongs to other projects."""
MOST_DIMS = 4000
"""Longer vectors pgvector cannot index; it still compares them."""
log = logging.getLogger("rookery.embedding")

# No type of pgvector is in what a backup has of this: a function's body is looked at when it runs.
_FLOATS = """
CREATE OR REPLACE FUNCTION half_floats(halves bytea) RETURNS real[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg((CASE WHEN half >= 32768 THEN -1 ELSE 1 END * CASE (half >> 10) & 31
      WHEN 0 THEN (half & 1023) * power(2::float8, -24)
      ELSE (1024 + (half & 1023)) * power(2::float8, ((half >> 10) & 31) - 25) END)::real ORDER BY place)
  FROM (SELECT place, get_byte(halves, 2 * place) | (get_byte(halves, 2 * place + 1) << 8) AS half
    FROM generate_series(0, length(halves) / 2 - 1) place) numbers
$$"""
_FOLLOW = """
CREATE OR REPLACE FUNCTION {beside}_follow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF to_regclass('{beside}') IS NULL OR to_regtype('halfvec') IS NULL THEN RETURN NULL; END IF;
  IF NEW.vector IS NULL OR NEW.embedder IS NULL THEN
    DELETE FROM {beside} WHERE seq = NEW.seq;
  ELSE
    INSERT INTO {beside} (seq, project_id, embedder, vector)
      VALUES (NEW.seq, NEW.project_id, NEW.embedder, half_floats(NEW.vector)::halfvec)
      ON CONFLICT (seq) DO UPDATE
      SET project_id = excluded.project_id, embedder = excluded.embedder, vector = excluded.vector;
  END IF;
  RETURN NULL;
END $$"""
_TABLE = (
    "DROP TABLE IF EXISTS {beside}",
    "CREATE TABLE {beside} (seq BIGINT NOT NULL PRIMARY KEY REFERENCES {table} (seq) ON DELETE CASCADE, "
    "project_id TEXT NOT NULL, embedder TEXT NOT NULL, vector halfvec NOT NULL)",
    "CREATE INDEX {beside}_place ON {beside} (project_id, embedder)",
    _FLOATS,
    _FOLLOW,
    "DROP TRIGGER IF EXISTS {beside}_follow ON {table}",
    "CREATE TRIGGER {beside}_follow AFTER INSERT OR UPDATE OF project_id, embedder, vector ON {table} "
    "FOR EACH ROW EXECUTE FUNCTION {beside}_follow()",
    f"COMMENT ON COLUMN {{beside}}.vector IS '{FILLING}'",
)
_MISSING = (
    "FROM {table} t WHERE t.seq > :after AND t.vector IS NOT NULL AND t.embedder IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM {beside} b WHERE b.seq = t.seq)"
)
_FILL = (
    "INSERT INTO {beside} (seq, project_id, embedder, vector) "
    f"SELECT t.seq, t.project_id, t.embedder, half_floats(t.vector)::halfvec {_MISSING} "
    "ORDER BY t.seq LIMIT :batch FOR KEY SHARE OF t ON CONFLICT (seq) DO NOTHING RETURNING seq"
)


def prepare_soon(url: str, table: str) -> threading.Thread:
    """Do in the background what `prepare` does, by connections of its own; a failure is logged and the matter ends."""

    def work() -> None:
        try:
            with contextlib.closing(open_database(url)) as database:
                prepare(database, table)
        except Exception as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()
            log.warning("pgvector is not ready for %s: %s", table, reason[0] if reason else type(error).__name__)

    thread = threading.Thread(target=work, name="rookery-pgvector", daemon=True)
    thread.start()
    return thread


def prepare(database: Database, table: str, *, index_rows: int = EXACT_ROWS) -> None:
    """See to it that pgvector can search the vectors of a table on PostgreSQL; without the extension, change nothing.

    Blocks: about 25 s for 100,000 vectors that were there before, and twice that if they need an index.
    """
    if database.direct(lambda tx: _made(tx, table), write=True):
        _fill(database, table)
        for embedder, dims in database.direct(lambda tx: _large(tx, table, index_rows)):
            _index(database, table, embedder, dims)
    log.info("%s: %s", table, database.direct(lambda tx: told_of(tx, table)))


def _made(tx: Tx, table: str) -> bool:
    """Whether the table beside is there, made now if it had to be."""
    _one_at_a_time(tx)
    if not extension(tx).usable and not _created(tx):
        return False
    state = state_of(tx, table)
    if state is None or state.state not in (FILLING, COMPLETE):
        tx.run(sa.text(f"SET LOCAL lock_timeout = '{PATIENCE}'"))
        for statement in _TABLE:
            tx.connection.exec_driver_sql(_named(statement, table))
    return True


def _created(tx: Tx) -> bool:
    """Whether the extension could be created, in a version that has what we need."""
    found = extension(tx)
    if found.version is not None or not found.available:
        return False
    try:
        with tx.savepoint():
            tx.run(sa.text("CREATE EXTENSION vector"))
    except exc.DBAPIError as error:
        log.info("pgvector cannot be turned on: %s", str(error.orig).strip().splitlines()[0])
        return False
    return extension(tx).usable


def _fill(database: Database, table: str) -> None:
    """Copy what was there before the trigger was. No row can be written without it any more."""
    after = 0
    while True:
        last = database.direct(lambda tx, after=after: _batch(tx, table, after), write=True)
        if last is None and database.direct(lambda tx: _completed(tx, table), write=True):
            return
        after = last or 0


def _batch(tx: Tx, table: str, after: int) -> int | None:
    """The number of the last row that was copied, if any was left."""
    _one_at_a_time(tx)
    rows = tx.all(sa.text(_named(_FILL, table)), {"after": after, "batch": BATCH})
    return max((int(row.seq) for row in rows), default=None)


def _completed(tx: Tx, table: str) -> bool:
    _one_at_a_time(tx)
    if tx.one(sa.text(_named(f"SELECT 1 {_MISSING} LIMIT 1", table)), {"after": 0}) is not None:
        return False
    state = state_of(tx, table)
    if state is None or state.state != COMPLETE:
        tx.run(sa.text(f"ANALYZE {beside(table)}"))
        tx.run(sa.text(f"COMMENT ON COLUMN {beside(table)}.vector IS '{COMPLETE}'"))
    return True


def _large(tx: Tx, table: str, index_rows: int) -> list[tuple[str, int]]:
    """The embedders with so many vectors that they need an index and have none, and how long their vectors are."""
    version = tuple(int(part) for part in str(extension(tx).version).split(".")[:2])
    if version < LEAST_FOR_INDEX:
        return []
    counted = sa.text(
        f"SELECT embedder, max(vector_dims(vector)) AS dims FROM {beside(table)} GROUP BY embedder "
        "HAVING count(*) > :rows"
    )
    found = [row for row in tx.all(counted, {"rows": index_rows}) if row.dims <= MOST_DIMS]
    return [(row.embedder, row.dims) for row in found if not _is_indexed(tx, table, row.embedder)]


def _is_indexed(tx: Tx, table: str, embedder: str) -> bool:
    state = state_of(tx, table, embedder)
    return state is not None and state.indexed


def _index(database: Database, table: str, embedder: str, dims: int) -> None:
    """Build the index while others read and write, unless another process is at it."""
    name, whose = index_of(table, embedder), embedder.replace("'", "''")
    building = (
        # With the usual 64 MB it would take several times as long.
        "SET maintenance_work_mem = '512MB'",
        # One that was stopped half-way is there, and of no use.
        f"DROP INDEX IF EXISTS {name}",
        f"CREATE INDEX CONCURRENTLY {name} ON {beside(table)} "
        f"USING hnsw ((vector::halfvec({dims})) halfvec_ip_ops) WHERE embedder = '{whose}'",
    )

    def work(tx: Tx) -> None:
        if not tx.scalar(sa.text(f"SELECT pg_try_advisory_lock({LOCK + 1})")):
            return
        try:
            if not _is_indexed(tx, table, embedder):
                run_outside(tx, *building)
        finally:
            run_outside(tx, "RESET maintenance_work_mem", f"SELECT pg_advisory_unlock({LOCK + 1})")

    database.direct(work)


def _one_at_a_time(tx: Tx) -> None:
    tx.run(sa.text(f"SELECT pg_advisory_xact_lock({LOCK})"))


def _named(statement: str, table: str) -> str:
    return statement.replace("{beside}", beside(table)).replace("{table}", table)
