"""From a door's binding to an actor: the only place where rights are read from the database."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import sqlalchemy as sa

from rookery.core.actor import NOTHING, Actor, Auth
from rookery.core.decide import scope_granted
from rookery.core.errors import ConfigurationError, InvalidParams, Unauthorized
from rookery.core.registry import Registry
from rookery.core.tool import PROFILES, plain_name
from rookery.db.tx import Tx
from rookery.identity.access import AccessStore, token_row
from rookery.identity.binding import (
    Binding,
    BoundIssues,
    Budgets,
    Notes,
    TokenIdentity,
    Visitor,
    find_place,
    stricter,
)
from rookery.identity.presets import PRESETS
from rookery.identity.store import DEFAULT_AGENT, IdentityStore, now_ms
from rookery.lifecycle.pauses import Pauses

NOTES_SCOPE = "memory:read"


@dataclass(frozen=True, slots=True)
class Resolved:
    """An actor, and the time until which it may be used without looking again."""

    actor: Actor
    good_until_ms: int | None


def read_scope_file(path: str, registry: Registry) -> frozenset[str]:
    """The tool names of a scope file: a JSON list. Anything else is refused, and so are names that no tool has."""
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            names: Any = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"the scope file {path} cannot be read: {error}", hint="it must be a JSON list"
        ) from error
    listed: list[Any] = cast("list[Any]", names) if isinstance(names, list) else [None]
    if not all(isinstance(name, str) for name in listed):
        raise ConfigurationError(f"the scope file {path} is not a JSON list of tool names", hint='like ["ping"]')
    return known_names(listed, registry, f"the scope file {path}")


def known_names(names: list[str], registry: Registry, where: str) -> frozenset[str]:
    """The plain names, or an error that says which ones no tool has."""
    unknown = registry.unknown(names)
    if unknown:
        raise InvalidParams(f"{where} names unknown tools: {', '.join(unknown)}", hint=registry.suggest(unknown[0]))
    return frozenset(plain_name(name) for name in names)


def check_profile(kind: str) -> str:
    """The profile's name, or an error that lists them."""
    if kind not in PROFILES.values():
        raise InvalidParams(f"there is no agent type {kind}", hint=f"known: {', '.join(PROFILES.values())}")
    return kind


def _narrowed(store: IdentityStore, binding: Binding) -> dict[str, Any]:
    """The profile and what takes tools from it."""
    profile = check_profile(binding.profile) if binding.profile else None
    allowed, disallowed = store.profile(profile) if profile else (None, None)
    return {
        "profile": profile,
        "allowed": _both(None if allowed is None else frozenset(allowed), binding.within),
        "disallowed": frozenset(disallowed or ()),
        "scope_file": binding.scope_file,
        "within": binding.within,
    }


def _why_paused(store: IdentityStore, project: str, agent: str | None) -> str:
    pause = Pauses(store.tx, store.tenant).holding(project, agent)
    return "" if pause is None else pause.said


def _both(names: frozenset[str] | None, others: frozenset[str] | None) -> frozenset[str] | None:
    """What is in both sets; None is no limit."""
    if names is None or others is None:
        return others if names is None else names
    return names & others


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bearer:
    """What a token of either kind says: whose it is, what it may carry, and until when."""

    tenant: str
    holder: str
    person: bool = False
    outside: bool = False
    auth: Auth
    expires_ms: int | None
    profile: str | None = None
    project: str | None = None


class Resolver:
    """Makes actors. Holds what the installation offers, no identities.

    `scope_map` says which scopes of another issuer stand for which of ours as well. Without `scope_checks` a token of
    another issuer need not carry scopes to act as one of our agents; whoever is no agent has its scopes and no more.
    Without `issues` a session is bound to whatever issue it names. Without `notes` no profile has any, and without
    `budgets` nobody has used one up.
    """

    def __init__(
        self,
        registry: Registry,
        services: frozenset[str],
        *,
        hide_unavailable: bool = False,
        scope_map: Mapping[str, Sequence[str]] | None = None,
        scope_checks: bool = True,
        issues: BoundIssues | None = None,
        notes: Notes | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        self._registry = registry
        self._services = services
        self._hide_unavailable = hide_unavailable
        self._scope_map = scope_map or {}
        self._scope_checks = scope_checks
        self._issues = issues
        self._notes = notes
        self._budgets = budgets

    def resolve(self, tx: Tx, binding: Binding) -> Resolved:
        """The actor of a binding, as the database has it now. Unknown names are refused."""
        token = self._bearer(tx, binding)
        if token is not None:
            # What the token is bound to counts, whatever the session says.
            binding = replace(
                binding, profile=token.profile or binding.profile, project=token.project or binding.project
            )
        store = IdentityStore(tx, token.tenant if token is not None else binding.tenant)
        ends = [] if token is None or token.expires_ms is None else [token.expires_ms]
        if token is not None and token.outside:
            shared = self._shared(store, binding, token, Visitor(token.holder, store.closed_to(None)), ends)
            # Whoever is none of ours is asked for before it destroys anything.
            held = {"mode": "act", "paused": _why_paused(store, shared["project"], None)}
            actor = Actor(kind="external", subject=token.holder, **held, **shared)
        elif binding.as_owner or binding.person is not None or (token is not None and token.person):
            known = token.holder if token is not None else binding.person
            person = store.owner() if known is None else store.person(known)
            shared = self._shared(store, binding, token, Visitor(person.id, NOTHING), ends)
            actor = Actor(kind="human", subject=person.id, role=person.role, **shared)
        else:
            agent = store.agent(token.holder if token is not None else binding.agent or DEFAULT_AGENT)
            shared = self._shared(store, binding, token, Visitor(agent.id, store.closed_to(agent.id)), ends)
            held = self._held(store, agent, shared["project"], ends)
            actor = Actor(kind="agent", **{**held, "mode": stricter(agent.mode, binding.mode)}, **shared)
        return Resolved(actor, min(ends, default=None))

    def prompt_additions(self, tx: Tx, actor: Actor) -> str:
        """What the actor is told besides who it is: the texts of its bundles, and what its profile keeps for itself.

        Notes are read here and not kept in the actor: they change more often than rights, and few calls need them.
        Whoever has a token needs its scope `memory:read` for them.
        """
        parts = [actor.prompt_additions]
        readable = actor.scopes is None or scope_granted(actor.scopes, NOTES_SCOPE)
        if self._notes is not None and actor.profile is not None and readable:
            parts.append(self._notes.of(tx, actor.tenant, actor.profile, actor.project_slug))
        return "\n\n".join(part for part in parts if part)

    def _held(self, store: IdentityStore, agent: sa.Row[Any], project: str, ends: list[int]) -> dict[str, Any]:
        """What an agent holds by its own row, bundles and grants. The ends of grants are added to `ends`."""
        access = AccessStore(store.tx, store.tenant)
        mine, ours = access.held_bundles(agent.id), access.held_bundles(project)
        rows = access.bundle_rows([*mine, *ours])
        live = access.grants(agent.id, live_only=True)
        ends += [row.expires_ms for row in live if row.expires_ms is not None]
        return {
            "subject": agent.id,
            "agent": agent.id,
            "agent_name": agent.name,
            "permissions": None if agent.permissions is None else frozenset(agent.permissions),
            "restrict_networking": agent.restrict_networking,
            "mode": agent.mode,
            "trust": agent.trust,
            "exhausted": self._budgets.exhausted(store.tx, store.tenant, agent.id) if self._budgets else NOTHING,
            "paused": _why_paused(store, project, agent.id),
            "bundle_tools": self._tools(mine, rows),
            "project_bundle_tools": self._tools(ours, rows),
            "grants": frozenset(row.tool for row in live if not row.standing),
            "unasked": frozenset(row.tool for row in live if row.standing or row.without_approval),
            "prompt_additions": "\n\n".join(
                rows[bundle].prompt
                for bundle in dict.fromkeys([*mine, *ours])
                if bundle in rows and rows[bundle].prompt
            ),
        }

    def _shared(
        self, store: IdentityStore, binding: Binding, token: _Bearer | None, visitor: Visitor, ends: list[int]
    ) -> dict[str, Any]:
        """What actors of every kind have: place, profile, and what the door knows. Its ends are added to `ends`."""
        place = find_place(store, binding, visitor, self._issues)
        if place.until_ms is not None:
            ends.append(place.until_ms)
        # Only a person's session may claim to be the web: the claim once opened every tool.
        person = token.person if token is not None else binding.as_owner or binding.person is not None
        auth = token.auth if token is not None else Auth(subject="local", client="local", scopes=binding.scopes)
        return {
            "tenant": store.tenant,
            "project": place.project,
            "project_slug": place.project_slug,
            "issue": place.issue,
            "issue_identifier": place.issue_identifier,
            "issue_named": binding.issue is not None,
            "closed": visitor.closed,
            "session": binding.session,
            "shared_session": binding.shared,
            "source": binding.source if binding.source != "web" or person else "stdio",
            "depth": binding.depth,
            "scheduler": binding.scheduler,
            "unattended": binding.scheduler,
            "services": self._services,
            "hide_unavailable": self._hide_unavailable,
            "scopes": auth.scopes,
            "worktree": binding.worktree,
            "cwd": binding.cwd,
            "symphony_dir": binding.symphony_dir,
            "auth": auth,
            **_narrowed(store, binding),
        }

    def _bearer(self, tx: Tx, binding: Binding) -> _Bearer | None:
        if binding.identity is not None:
            return self._signed(tx, binding.identity)
        if binding.token is None:
            return None
        row = token_row(tx, binding.token)
        if row is None:
            raise Unauthorized(
                "the token is unknown, revoked or over",
                hint="make one on the server's machine: rookery token create NAME --agent AGENT",
            )
        auth = Auth(subject=row.holder, client=row.id, scopes=frozenset(row.scopes))
        person = row.holder_kind == "person"
        return _Bearer(
            tenant=row.tenant,
            holder=row.holder,
            person=person,
            auth=auth,
            expires_ms=row.expires_ms,
            profile=row.profile,
            project=row.project,
        )

    def _signed(self, tx: Tx, identity: TokenIdentity) -> _Bearer:
        """A token of another issuer: it speaks for the agent whose id it names as its subject, or for an outsider."""
        if identity.expires_ms <= now_ms():
            raise Unauthorized("the token has expired", hint="get a new token from its issuer")
        store = IdentityStore(tx, identity.tenant)
        if not store.exists():
            raise Unauthorized("the token is for a tenant that is not here", hint="rookery.toml can map it: tenant_map")
        agent = store.find_agent(identity.subject) if identity.subject else None
        mapped = (self._scope_map.get(scope, ()) for scope in identity.scopes)
        scopes = identity.scopes.union(*mapped) if agent is None or self._scope_checks else None
        auth = Auth(subject=identity.subject or "", client=identity.client, scopes=scopes)
        # A name of its own kind: an issuer must not be able to write the id of a person or agent into our records.
        outsider = f"external:{identity.subject}" if identity.subject else f"external-client:{identity.client}"
        return _Bearer(
            tenant=identity.tenant,
            holder=agent.id if agent is not None else outsider,
            outside=agent is None,
            auth=auth,
            expires_ms=identity.expires_ms,
        )

    def _tools(self, held: list[str], rows: dict[str, sa.Row[Any]]) -> frozenset[str]:
        names: frozenset[str] = NOTHING
        for bundle in held:
            if bundle in PRESETS:
                names |= self._registry.in_bundle(bundle)
            elif bundle in rows:
                names |= frozenset(rows[bundle].tools)
        return names
