"""Puts a backup back into PostgreSQL, in one transaction."""

import os
import subprocess
from typing import NoReturn

import sqlalchemy as sa

from rookery.core.errors import ConfigurationError, Conflict, DatabaseError, InvalidParams
from rookery.db.database import open_database
from rookery.db.migrate import Plan, migrate
from rookery.db.postgres import find_program
from rookery.db.restore import Restored, epochs_of, outdate_caches, refuse_newer

# pg_restore --clean would drop what the backup holds and leave what came later, on which the next migration fails.
EMPTY_THE_SCHEMA = """
DO $$ DECLARE found record; BEGIN
  FOR found IN SELECT format('%I.%I', schemaname, viewname) AS name FROM pg_views
    WHERE schemaname = current_schema() AND viewowner = current_user
  LOOP EXECUTE 'DROP VIEW IF EXISTS ' || found.name || ' CASCADE'; END LOOP;
  FOR found IN SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
    WHERE schemaname = current_schema() AND tableowner = current_user
  LOOP EXECUTE 'DROP TABLE IF EXISTS ' || found.name || ' CASCADE'; END LOOP;
  FOR found IN SELECT p.oid::regprocedure AS name FROM pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace AND pg_get_userbyid(p.proowner) = current_user
      AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
  LOOP EXECUTE 'DROP ROUTINE IF EXISTS ' || found.name || ' CASCADE'; END LOOP;
END $$;
"""
OTHERS = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def restore_postgres(url: str, file: str, plan: Plan, backups: str, workshop: str) -> Restored:
    """Replace everything in the database's schema by the backup. Refused while anybody else is connected."""
    programs = {name: _program(name) for name in ("pg_restore", "psql")}
    refuse_newer(file, _applied_steps(programs["pg_restore"], file), plan)
    database = open_database(url)
    try:
        others = database.direct(lambda tx: tx.scalar(OTHERS))
        if others:
            raise Conflict(
                f"the database has {others} other connections", hint="stop every server and worker that uses it"
            )
        before = database.direct(epochs_of)
        kept = database.backup(backups, "before-restore")
    finally:
        database.close()
    _replace(programs, url, file, workshop, kept)
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


def _replace(programs: dict[str, str], url: str, file: str, workshop: str, kept: str | None) -> None:
    script, emptying = os.path.join(workshop, "restore.sql"), os.path.join(workshop, "empty.sql")
    with open(emptying, "w", encoding="utf-8") as out:
        out.write(EMPTY_THE_SCHEMA)
    # A script in a file rather than a pipe: a pipe that breaks would look like the end of a shorter backup.
    written = _run([programs["pg_restore"], "--no-owner", "--no-privileges", "--file", script, file])
    if written.returncode != 0:
        _fail(f"{file} cannot be read: {written.stderr.strip()}", "use another backup")
    address = sa.make_url(url).set(drivername="postgresql")
    environ = dict(os.environ)
    if address.password:
        # On the command line every user of the machine could read it.
        environ["PGPASSWORD"] = str(address.password)
        address = address.set(password=None)
    command = [programs["psql"], "--no-psqlrc", "--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1"]
    command += ["--dbname", address.render_as_string(hide_password=False), "--output", os.devnull]
    done = _run([*command, "--file", emptying, "--file", script], environ)
    if done.returncode != 0:
        where = f"; a copy of it is {kept}" if kept else ""
        _fail(f"psql failed: {done.stderr.strip()}", f"the database is as it was{where}")


def _fail(message: str, hint: str) -> NoReturn:
    raise DatabaseError(message.replace("\n", "; "), hint=hint)


def _applied_steps(program: str, file: str) -> dict[str, int]:
    """The newest step of each domain in a dump, read from the dump itself."""
    done = _run([program, "--data-only", "--table=schema_migrations", "--file=-", file])
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
