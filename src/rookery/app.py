"""Puts a platform together. The only file that knows every layer."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rookery.around import audit
from rookery.around.approval import ApprovalGate
from rookery.around.chain import seal_pending
from rookery.around.metrics import Metrics
from rookery.around.rate import RateLimit
from rookery.around.timing import span
from rookery.attest.algorand import ledger_of
from rookery.core.call import Calls
from rookery.core.events import Events
from rookery.core.hook import Hook
from rookery.core.record import Record
from rookery.core.registry import Registry
from rookery.db.database import Database, Seal, open_database
from rookery.db.migrate import Migration, migrate
from rookery.db.storage import TableStorage
from rookery.db.tx import Tx
from rookery.domains.memory.file_copies import repair_copies
from rookery.domains.memory.file_notes import ProfileNotes
from rookery.domains.memory.recalls import close_recalls
from rookery.domains.tracker.binding import TrackerIssues
from rookery.embedding.embedder import load_embedder, once
from rookery.engine.project_changes import ProjectChanges
from rookery.identity.live_sessions import FACT, LiveSessions
from rookery.identity.resolve import Resolver
from rookery.identity.store import DEFAULT_TENANT, IdentityStore
from rookery.jobs.kinds import Kind
from rookery.ledger.limit import CreditLimit
from rookery.ledger.rates import enforce
from rookery.lifecycle.sessions import Runtime
from rookery.plugins import load_domains
from rookery.repute.heard import Heard
from rookery.runtimes.known import known_runtimes
from rookery.sealing.key_table import refuse_other_key
from rookery.sealing.keyring import load_keyring
from rookery.sessions.manager import AgentSessions
from rookery.settings import Settings

if TYPE_CHECKING:
    from rookery.web.console import Console


@dataclass(slots=True)
class Platform:
    """What the doors are handed: settings, the call path, identities, and the database below them."""

    settings: Settings
    registry: Registry
    database: Database
    calls: Calls
    resolver: Resolver
    metrics: Metrics
    events: Events
    migrations: Mapping[str, Sequence[Migration]] = field(default_factory=dict[str, Sequence[Migration]])
    kinds: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    hooks: Sequence[Hook] = ()

    def console(self) -> "Console":
        """The pages for people, for a server to show. Loaded here: nothing but a server needs them."""
        from rookery.web.console import Console

        return Console(self)

    def close(self) -> None:
        """Finish what is under way and let go of the database."""
        close_recalls(self.calls)
        self.database.close()


def _sealing() -> Seal:
    """Writes audit records, and with them what they say of the reputation of agents."""
    heard = Heard()

    def seal(tx: Tx, records: Sequence[Record]) -> None:
        audit.append(tx, records)
        heard(tx, records)

    return seal


def make_platform(
    settings: Settings,
    *,
    prepare: bool = True,
    extra: Mapping[str, ModuleType] | None = None,
    other_key: bool = False,
    runtime: Runtime | None = None,
) -> Platform:
    """A platform on the home folder of `settings`. `prepare` creates and migrates what is missing.

    `extra` are domains that the caller brings along, by name. With `other_key` the key of the settings may be another
    than the one that sealed what is stored: for whoever changes it. `runtime` starts agents, instead of the one that
    the settings name.
    """
    keyring = load_keyring(settings)
    domains = load_domains(plugins=settings.plugins, extra=extra)
    os.makedirs(settings.home, mode=0o700, exist_ok=True)
    database = open_database(settings.database_url, reads=settings.audit_reads)
    try:
        if prepare:
            migrate(database, domains.migrations, settings.backups)
            database.direct(lambda tx: IdentityStore(tx, DEFAULT_TENANT).set_up(), write=True)
            if settings.credits_hard_stop:
                enforce(database)
            if not other_key:
                database.direct(lambda tx: refuse_other_key(tx, keyring))
                repair_copies(database, settings.home)
    except BaseException:
        database.close()
        raise
    database.seal = _sealing()
    database.tick = seal_pending
    metrics, events = Metrics(), Events()
    budgets = CreditLimit() if settings.credits_hard_stop else None
    around = (RateLimit(settings.rate_calls_per_minute), metrics)
    resolver = Resolver(
        domains.registry,
        domains.services | settings.services,
        hide_unavailable=settings.hide_unavailable,
        scope_map=dict(settings.auth_scope_map),
        scope_checks=settings.auth_scope_checks,
        issues=TrackerIssues(),
        notes=ProfileNotes(keyring),
        budgets=budgets,
    )
    facts: dict[str, Any] = {
        "port": settings.port,
        "home": settings.home,
        "network": settings.network,
        "keyring": keyring,
        "hide_keys": settings.memory_hide_keys,
        "embedder": once(load_embedder),
        "settings": settings,
        "kinds": domains.kinds,
        "budgets": budgets,
        "resolver": resolver,
        "ledger": ledger_of(settings, database),
        "changes": ProjectChanges(database),
        FACT: LiveSessions(),
    }
    calls = Calls(
        domains.registry,
        database,
        around,
        events,
        facts=facts,
        span=span,
        open_storage=TableStorage,
        gate=ApprovalGate(settings.approval_hold_s),
    )
    platform = Platform(
        settings=settings,
        registry=domains.registry,
        database=database,
        calls=calls,
        resolver=resolver,
        metrics=metrics,
        events=events,
        migrations=domains.migrations,
        kinds=domains.kinds,
        hooks=domains.hooks,
    )
    default = None if settings.runtime == "none" else settings.runtime
    sessions = AgentSessions(calls, database, resolver, settings, known_runtimes(platform), default)
    facts |= {"sessions": sessions, "runtime": runtime or (sessions if default is not None else None)}
    return platform
