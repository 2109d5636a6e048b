"""The doctor's checks of what is stored: the plugins that bring tables, the database, the tokens in it."""

import time
from dataclasses import replace

import sqlalchemy as sa

from rookery.cli.failure import known_error
from rookery.cli.machine import Finding, Machine, sentence_of
from rookery.cli.stored import open_stored
from rookery.core.errors import ConfigurationError, NotFound, RookeryError
from rookery.db.migrate import Plan, pending
from rookery.db.tx import Tx
from rookery.identity.tables import tokens
from rookery.settings import Settings

PATIENCE_S = 5
SOON_MS = 7 * 24 * 3600 * 1000


def _plan(machine: Machine) -> Plan:
    from rookery.app import load_domains

    return load_domains(plugins=machine.settings.plugins).migrations


def check_plugins(machine: Machine) -> Finding:
    try:
        _plan(machine)
    except RookeryError as error:
        return Finding("plugins", "problem", sentence_of(error.message), error.hint or "mend or uninstall it")
    told = "Every domain and plugin loads." if machine.settings.plugins else "Plugins are switched off."
    return Finding("plugins", "ok", told)


def check_database(machine: Machine) -> Finding:
    try:
        plan = _plan(machine)
    except RookeryError:
        return Finding("database", "note", "Not looked at, since the domains do not load.", "mend the plugins first")
    try:
        with open_stored(_impatient(machine.settings)) as database:
            missing = database.direct(lambda tx: pending(tx, plan))
    except NotFound as error:
        return Finding("database", "note", sentence_of(error.message), "rookery up creates it")
    except ConfigurationError as error:
        return Finding("database", "problem", sentence_of(error.message), error.hint or "check the setting `database`")
    except Exception as error:
        known = known_error(error)
        if known is None:
            raise
        reason = known.message.removeprefix("the database failed: ")
        return Finding("database", "problem", f"The database is out of reach: {reason}.", _way_back(machine))
    if missing:
        sentence = f"{len(missing)} migration steps are missing."
        return Finding("database", "note", sentence, "rookery migrate, or the next rookery up, applies them")
    return Finding("database", "ok", "The database can be reached and its schema is current.")


def _impatient(settings: Settings) -> Settings:
    """The same database, but a server that does not answer is given up after a few seconds."""
    url = sa.make_url(settings.database_url)
    if url.get_backend_name() == "sqlite" or "connect_timeout" in url.query:
        return settings
    limited = url.update_query_dict({"connect_timeout": str(PATIENCE_S)})
    return replace(settings, database=limited.render_as_string(hide_password=False))


def _way_back(machine: Machine) -> str:
    if machine.settings.database_url.startswith("sqlite"):
        return "check the file's permissions; if it is damaged: rookery restore a file of backups/"
    return "check that PostgreSQL runs and that the address in rookery.toml is right"


def check_tokens(machine: Machine) -> Finding:
    try:
        with open_stored(_impatient(machine.settings)) as database:
            ends = database.direct(_ends)
    except Exception as error:
        if known_error(error) is None:
            raise
        return Finding("tokens", "ok", "Not looked at, since there is no database to read.")
    now_ms = time.time_ns() // 1_000_000
    over = [name for name, end in ends if end is not None and end <= now_ms]
    soon = [name for name, end in ends if end is not None and now_ms < end <= now_ms + SOON_MS]
    if over:
        sentence = f"Over, and refused from now on: {', '.join(over)}."
        return Finding(
            "tokens", "note", sentence, "rookery token create makes a new one, rookery token revoke tidies up"
        )
    if soon:
        return Finding(
            "tokens", "note", f"Over within a week: {', '.join(soon)}.", "rookery token create makes a new one"
        )
    return Finding("tokens", "ok", f"{len(ends)} tokens, none of them about to end.")


def _ends(tx: Tx) -> list[tuple[str, int | None]]:
    """The name and end of every token that was not revoked."""
    live = sa.select(tokens.c.name, tokens.c.expires_ms).where(tokens.c.revoked_ms.is_(None)).order_by(tokens.c.id)
    return [(row.name, row.expires_ms) for row in tx.all(live)]
