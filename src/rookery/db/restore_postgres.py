"""Puts a backup back into PostgreSQL, in one transaction."""

import os
import subprocess
from typing import NoReturn

import sqlalchemy as sa

from rookery.core.errors import ConfigurationError, Conflict, DatabaseError, InvalidParams
from rookery.db.database import open_database
from rookery.db.migrate import Plan, migrate
from rookery.db.postgres import find_program
from rookery.db.restore import Restored, epochs_of, label, outdate_caches, refuse_newer

# pg_restore --clean would drop what the backup holds and leave what came later, on which the next migration fails.
# No CASCADE: what another schema built upon ours is not ours to drop, so then the whole restore is refused.
EMPTY_THE_SCHEMA = """
DO $$ DECLARE names text; BEGIN
  SELECT string_agg(format('%I.%I', schemaname, viewname), ', ') INTO names
    FROM pg_views WHERE schemaname = current_schema() AND viewowner = current_user;
  IF names IS NOT NULL THEN EXECUTE 'DROP VIEW ' || names; END IF;
  SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') INTO names
    FROM pg_tables WHERE schemaname = current_schema() AND tableowner = current_user;
  IF names IS NOT NULL THEN EXECUTE 'DROP TABLE ' || names; END IF;
  SELECT string_agg(p.oid::regprocedure::text, ', ') INTO names FROM pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace AND pg_get_userbyid(p.proowner) = current_user
      AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e');
  IF names IS NOT NULL THEN EXECUTE 'DROP ROUTINE ' || names; END IF;
END $$;
"""
OTHERS = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def restore_postgres(url: str, file: str, plan: Plan, backups: str, workshop: str) -> Restored:
    """Replace everything in the database's schema by the backup. Refused while anybody else is connected."""
    programs = {name: _program(name) for name in ("pg_restore", "psql")}
    database = open_database(url)
    try:
        schema: str = database.direct(lambda tx: tx.scalar(sa.text("SELECT current_schema()")))
        reading = [programs["pg_restore"], f"--schema={schema}"]
        refuse_newer(file, _applied_steps(reading, file), plan)
        others = database.direct(lambda tx: tx.scalar(OTHERS))
        if others:
            raise Conflict(
                f"the database has {others} other connections", hint="stop every server and worker that uses it"
            )
        before = database.direct(epochs_of)
        kept = database.backup(backups, label())
    finally:
        database.close()
    script = _script(reading, file, workshop)
    _carry_out(programs["psql"], script, url, kept)
    database = open_database(url)
    try:
        applied = migrate(database, plan, None).applied
        outdate_caches(database, before)
    finally:
        database.close()
    return Restored(kept, applied)


def _program(name: str) -> str:
    found = find_program(name)
    if found is None:
        raise ConfigurationError(f"{name} is not installed", hint="install postgresql-client")
    return found


def _script(reading: list[str], file: str, workshop: str) -> list[str]:
    """Files of SQL that put the backup in place of what is there."""
    filling, emptying = os.path.join(workshop, "fill.sql"), os.path.join(workshop, "empty.sql")
    with open(emptying, "w", encoding="utf-8") as out:
        out.write(EMPTY_THE_SCHEMA)
    # A file rather than a pipe: a pipe that breaks would look like the end of a shorter backup.
    written = _run([*reading, "--no-owner", "--no-privileges", "--file", filling, file])
    if written.returncode != 0:
        _fail(f"{file} cannot be read: {written.stderr.strip()}", "use another backup")
    return [emptying, filling]


def _carry_out(program: str, script: list[str], url: str, kept: str | None) -> None:
    address = sa.make_url(url).set(drivername="postgresql")
    environ = dict(os.environ)
    if address.password:
        # On the command line every user of the machine could read it.
        environ["PGPASSWORD"] = str(address.password)
        address = address._replace(password=None)  # set() would leave it there
    command = [program, "--no-psqlrc", "--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1"]
    command += ["--dbname", address.render_as_string(hide_password=False), "--output", os.devnull]
    done = _run([*command, *(f"--file={part}" for part in script)], environ)
    if done.returncode != 0:
        where = f"; a copy of it is {kept}" if kept else ""
        _fail(f"psql failed: {done.stderr.strip()}", f"the database is as it was{where}")


def _fail(message: str, hint: str) -> NoReturn:
    raise DatabaseError(message.replace("\n", "; "), hint=hint)


def _applied_steps(reading: list[str], file: str) -> dict[str, int]:
    """The newest step of each domain in a dump, read from the dump itself."""
    done = _run([*reading, "--data-only", "--table=schema_migrations", "--file=-", file])
    if done.returncode != 0:
        raise InvalidParams(f"{file} cannot be read: {done.stderr.strip()}", hint="use another backup")
    steps: dict[str, int] = {}
    columns: list[str] = []
    for line in done.stdout.splitlines():
        if line.startswith("COPY ") and "schema_migrations (" in line:
            columns = [name.strip() for name in line.partition("(")[2].partition(")")[0].split(",")]
        elif line == "\\.":
            columns = []
        elif columns:
            row = dict(zip(columns, line.split("\t"), strict=True))
            steps[row["domain"]] = max(steps.get(row["domain"], 0), int(row["number"]))
    return steps


def _run(command: list[str], environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
