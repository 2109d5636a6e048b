"""Finds domains: our own by their folders, others by the entry-point group `rookery.domains`."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from types import ModuleType

import rookery.domains
from rookery.around import audit
from rookery.attest import tables as attest_tables
from rookery.core.errors import ConfigurationError
from rookery.core.hook import Hook
from rookery.core.lint import lint, lint_declared
from rookery.core.registry import Registry
from rookery.core.tool import Tool
from rookery.db import server_keys, storage
from rookery.db.migrate import Migration
from rookery.identity import client_sessions, sightings
from rookery.identity import tables as identity_tables
from rookery.jobs import tables as job_tables
from rookery.jobs.kinds import Kind, kinds_of
from rookery.ledger import tables as ledger_tables
from rookery.lifecycle import issue_tables, pauses, run_tables
from rookery.repute import tables as repute_tables
from rookery.sealing import key_table
from rookery.sessions import tables as session_tables

GROUP = "rookery.domains"
_BESIDE = (("identity", "identity"), ("orchestrator", "engine"))
"""What declares tools and jobs as a domain does, but stands below or above them: its name and its folder."""
PARTS = ("tools", "resources", "prompts", "store", "tables", "jobs", "hooks")


@dataclass(frozen=True, slots=True)
class Domains:
    """Everything that was found: tools, steps that build tables, services, kinds of jobs, hooks."""

    registry: Registry
    migrations: Mapping[str, Sequence[Migration]]
    services: frozenset[str]
    kinds: Mapping[str, Kind]
    hooks: Sequence[Hook]


def load_domains(*, plugins: bool = True, extra: Mapping[str, ModuleType] | None = None) -> Domains:
    """Load our domains, those handed in and, if asked, the plugins. A broken plugin stops the start, by name."""
    found = _ours().copy()
    for name, package in (extra or {}).items():
        found.take(name, package)
    if plugins:
        for point in sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name):
            _take_plugin(found, point)
    found.registry.seal()
    return Domains(
        found.registry,
        found.migrations,
        frozenset(found.services),
        found.kinds,
        found.hooks,
    )


@cache
def _ours() -> "_Found":
    """What comes with the product. It is the same for every platform of a process, so it is looked for once."""
    found = _Found()
    found.migrations |= {
        "attest": attest_tables.MIGRATIONS,
        "audit": audit.MIGRATIONS,
        "identity": identity_tables.MIGRATIONS,
        "client_sessions": client_sessions.MIGRATIONS,
        "sightings": sightings.MIGRATIONS,
        "issues": issue_tables.MIGRATIONS,
        "jobs": job_tables.MIGRATIONS,
        "ledger": ledger_tables.MIGRATIONS,
        "pauses": pauses.MIGRATIONS,
        "repute": repute_tables.MIGRATIONS,
        "runs": run_tables.MIGRATIONS,
        "sealing": key_table.MIGRATIONS,
        "agent_sessions": session_tables.MIGRATIONS,
        "storage": storage.MIGRATIONS,
        "server_keys": server_keys.MIGRATIONS,
    }
    packages = [(name, importlib.import_module(f"rookery.{place}")) for name, place in _BESIDE]
    packages += [
        (each.name, importlib.import_module(f"rookery.domains.{each.name}"))
        for each in pkgutil.iter_modules(rookery.domains.__path__)
    ]
    for name, package in packages:
        found.take(name, package)
    return found


class _Found:
    """What has been found so far."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.migrations: dict[str, Sequence[Migration]] = {}
        self.services: set[str] = set()
        self.kinds: dict[str, Kind] = {}
        self.hooks: list[Hook] = []

    def copy(self) -> "_Found":
        """The same again, to be added to."""
        other = _Found()
        other.registry, other.migrations = self.registry.copy(), dict(self.migrations)
        other.services, other.kinds, other.hooks = set(self.services), dict(self.kinds), list(self.hooks)
        return other

    def take(self, name: str, package: ModuleType) -> None:
        """Take in what one package declares, or one module that is a whole plugin."""
        modules = [package]
        if hasattr(package, "__path__"):
            modules += [
                importlib.import_module(f"{package.__name__}.{found.name}")
                for found in pkgutil.iter_modules(package.__path__)
                if found.name in PARTS or found.name.endswith("_tools")
            ]
        for module in modules:
            self.registry.add_module(module, name)
            steps = getattr(module, "MIGRATIONS", None)
            if steps and name not in self.migrations:
                self.migrations[name] = steps
            self.services |= set(getattr(module, "SERVICES", ()))
            self.hooks += [each for each in vars(module).values() if isinstance(each, Hook)]
        self.kinds = kinds_of(modules, self.kinds)


def _take_plugin(found: _Found, point: metadata.EntryPoint) -> None:
    if point.name in found.migrations or any(each.domain == point.name for each in found.registry.everything()):
        raise ConfigurationError(
            f"the plugin {point.name} has the name of another domain", hint="rename the entry point"
        )
    try:
        package = point.load()
        found.take(point.name, package)
        own = [each for each in found.registry.everything() if each.domain == point.name]
        faults = [fault for each in own for fault in (lint(each) if isinstance(each, Tool) else lint_declared(each))]
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigurationError(
            f"the plugin {point.name} ({point.value}) cannot be loaded: {type(error).__name__}: {error}",
            hint="mend or uninstall it, or start with ROOKERY_PLUGINS=false",
        ) from error
    if faults:
        raise ConfigurationError(f"the plugin {point.name} declares something badly: {faults[0]}", hint="mend it")
