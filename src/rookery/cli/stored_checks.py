"""The doctor's checks of what is stored: the plugins that bring tables, the database, the tokens and seals in it."""

import time
from dataclasses import replace

import sqlalchemy as sa

from rookery.cli.failure import known_error
from rookery.cli.machine import Finding, Machine, sentence_of
from rookery.cli.stored import open_stored
from rookery.core.errors import ConfigurationError, NotFound, RookeryError
from rookery.db.migrate import Plan, pending
from rookery.db.schema import metadata
from rookery.db.tx import Tx
from rookery.embedding.pgvector import told_of
from rookery.identity.tables import tokens
from rookery.lifecycle.pauses import Pauses, pauses
from rookery.sealing.key_table import key_versions
from rookery.sealing.keyring import load_keyring
from rookery.settings import Settings

PATIENCE_S = 5
SOON_MS = 7 * 24 * 3600 * 1000
RESEAL = "rookery memory rotate-key"
VECTORS = "knowledge_chunks"


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
            missing, vectors = database.direct(lambda tx: (pending(tx, plan), _vectors(tx)))
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
    return Finding("database", "ok", f"The database can be reached and its schema is current.{vectors}")


def _vectors(tx: Tx) -> str:
    """On PostgreSQL, whether its extension for vectors is used; SQLite has none."""
    return f" {told_of(tx, VECTORS)}" if tx.dialect == "postgresql" else ""


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


def check_pauses(machine: Machine) -> Finding:
    try:
        with open_stored(_impatient(machine.settings)) as database:
            found = database.direct(_pauses)
    except Exception as error:
        if known_error(error) is None:
            raise
        return Finding("pauses", "ok", "Not looked at, since there is no database to read.")
    if not found:
        return Finding("pauses", "ok", "No agent is paused.")
    told = "; ".join(sentence_of(said).removesuffix(".") for said in found)
    return Finding("pauses", "note", f"{told}.", "rookery pause --list shows all, rookery resume takes one back")


def _pauses(tx: Tx) -> list[str]:
    """A sentence for each pause of every tenant; none in a database that is older than pauses."""
    if "pauses" not in sa.inspect(tx.connection).get_table_names():
        return []
    tenants = [row.tenant for row in tx.all(sa.select(pauses.c.tenant).distinct().order_by(pauses.c.tenant))]
    return [pause.said for tenant in tenants for pause in Pauses(tx, tenant).all()]


def check_sealing(machine: Machine) -> Finding:
    """Whether what is stored goes with the key that is set: nothing in plain beside a key, nothing of another key."""
    try:
        keyring = load_keyring(machine.settings)
        _plan(machine)
        with open_stored(_impatient(machine.settings)) as database:
            stored = database.direct(_sealed_rows)
    except Exception as error:
        if known_error(error) is None:
            raise
        return Finding("sealing", "ok", "Not looked at, since there is no key or no database to read.")
    plain = stored.pop(None, 0)
    own = stored.pop(keyring.fingerprint, 0) if keyring else 0
    foreign, others = sum(stored.values()), ", ".join(sorted(str(name) for name in stored))
    if foreign and keyring is None:
        sentence = f"{foreign} memories are sealed with the key {others} and no key is set, so they cannot be read."
        return Finding("sealing", "problem", sentence, "set the mnemonic or the key_file that sealed them")
    if foreign and not own:
        sentence = f"The key is the wrong one: {foreign} memories are sealed with {others} and none with this key."
        return Finding("sealing", "problem", sentence, "set the mnemonic or the key_file that sealed them")
    if foreign:
        sentence = f"{foreign} memories are still sealed with {others}, an older or a wrong key, and cannot be read."
        return Finding("sealing", "problem", sentence, f"{RESEAL} goes on where it stopped")
    if plain and keyring:
        sentence = f"{plain} memories are in plain text, from before there was a key."
        return Finding("sealing", "note", sentence, f"{RESEAL} seals them")
    return Finding("sealing", "ok", f"{own} memories are sealed, {plain} are in plain text.")


def _sealed_rows(tx: Tx) -> dict[str | None, int]:
    """How many rows each key has sealed, by its fingerprint; those in plain text by None.

    Tables tell by their column `key_version`. Where it is never NULL rows keep the key that they were written with.
    """
    here = set(sa.inspect(tx.connection).get_table_names())
    names = key_versions(tx) if "seal_keys" in here else {}
    found: dict[str | None, int] = {}
    for table in metadata.tables.values():
        if table.name not in here or "key_version" not in table.c or not table.c.key_version.nullable:
            continue
        version = table.c.key_version
        for row in tx.all(sa.select(version, sa.func.count().label("rows")).group_by(version)):
            name = None if row.key_version is None else names.get(row.key_version, "unknown")
            found[name] = found.get(name, 0) + row.rows
    return found
