"""Requests of somebody who wants more than is theirs, and what each of them is owed. The same for the same seed."""

import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rookery.server.streamable.sessions import new_session_id
from tests.server.streamable.raw import request, usual
from tests.server.streamable.web import LEGACY, MODERN, call, initialize, modern

Pairs = list[tuple[str, str]]
FOREIGN_ORIGINS = ["https://evil.example", "null", "http://localhost.evil.example", "http://user@localhost"]
FOREIGN_HOSTS = ["evil.example", "localhost.evil.example", "user@localhost", "127.0.0.2", ""]
PEOPLES_TOOLS: dict[str, dict[str, Any]] = {
    "create_agent": {"name": "forged"},
    "create_token": {"name": "forged"},
    "grant_tool": {"agent": "default", "tool": "create_agent"},
    "list_tokens": {},
    "list_audit_records": {},
}


@dataclass(frozen=True, slots=True)
class Forgery:
    """The bytes, the status that they must get, and whether the refusal is one of the call itself."""

    kind: str
    data: bytes
    status: int
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Loot:
    """What a forger has: a token with few rights and a session of its own, and what it found of others."""

    own: str
    session: str
    sessions: list[str]
    """Of others."""
    stolen: list[str]
    """Tokens that were good once: revoked, or over."""
    forged: list[str]
    """Tokens that never were."""
    names: dict[str, str]
    """Who it would like to be: agent, tenant, subject."""
    asks_for_scopes: bool = False


@dataclass(slots=True)
class Draft:
    """A request that would be in order, to be spoiled."""

    method: str = "POST"
    path: str = "/mcp"
    message: Any = None
    headers: dict[str, str | None] = field(default_factory=dict[str, str | None])
    more: Pairs = field(default_factory=list[tuple[str, str]])

    def bytes(self) -> bytes:
        body = b"" if self.message is None else json.dumps(self.message).encode()
        return request(self.method, self.path, [*usual(body, **self.headers), *self.more], body)


class Forger:
    """An endless source of forged requests."""

    def __init__(self, seed: int, loot: Loot) -> None:
        self.chance = random.Random(seed)
        self.loot = loot
        self.kinds: list[Callable[[], tuple[Draft, int, bool]]] = [
            self.foreign_session,
            self.foreign_session,
            self.unknown_session,
            self.no_session,
            self.no_token,
            self.no_token,
            self.stolen_token,
            self.forged_token,
            self.forged_token,
            self.forged_token,
            self.altered_token,
            self.two_of_a_kind,
            self.two_voices,
            self.smuggled_argument,
            self.smuggled_meta,
            self.beyond_its_scopes,
            self.wrong_method,
            self.wrong_path,
            self.wrong_version,
        ]

    def next(self) -> Forgery:
        kind = self.pick(self.kinds)
        draft, status, inside = kind()
        name = kind.__name__
        # Whatever else is wrong, a page of another site and a foreign name are told nothing more than that.
        if self.chance.random() < 0.05 and name not in ("two_of_a_kind", "wrong_path"):
            draft.headers["origin"], status, inside = self.pick(FOREIGN_ORIGINS), 403, False
        elif self.chance.random() < 0.05 and name not in ("two_of_a_kind", "wrong_path"):
            draft.headers["host"], status, inside = self.pick(FOREIGN_HOSTS), 421, False
        return Forgery(name, draft.bytes(), status, inside)

    def pick(self, choices: Any) -> Any:
        return self.chance.choice(choices)

    # Requests that would be in order.

    def good(self, message: dict[str, Any] | None = None) -> Draft:
        """A call with the forger's own token, of either era."""
        return self.pick([self.older, self.newer])(message or call("say_again", name="x"))

    def older(self, message: dict[str, Any], method: str = "POST") -> Draft:
        headers = {"authorization": f"Bearer {self.loot.own}", "mcp_session_id": self.loot.session}
        return Draft(method, message=message, headers={**headers, "mcp_protocol_version": LEGACY})

    def newer(self, message: dict[str, Any]) -> Draft:
        sent, headers = modern(message["method"], **message["params"])
        return Draft(message=sent, headers={**headers, "authorization": f"Bearer {self.loot.own}"})

    def with_session(self, session: str) -> Draft:
        """One of the ways to use a session."""
        draft = self.older(call("say_again", name="x"), self.pick(["POST", "POST", "GET", "DELETE"]))
        draft.headers["mcp_session_id"] = session
        if draft.method != "POST":
            draft.message = None
            draft.headers["accept"] = "text/event-stream"
        elif self.chance.random() < 0.3:
            draft.message = self.pick(
                [
                    initialize(),
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
                    {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {}}},
                ]
            )
        return draft

    # Sessions.

    def foreign_session(self) -> tuple[Draft, int, bool]:
        return self.with_session(self.pick(self.loot.sessions)), 404, False

    def unknown_session(self) -> tuple[Draft, int, bool]:
        known = self.pick([self.loot.session, *self.loot.sessions])
        place = self.chance.randrange(len(known))
        altered = known[:place] + self.pick("ghij") + known[place + 1 :]
        odd = [new_session_id(), altered, known[:-1], known + "0", known.upper() + "X", "", "0", "*", "\xe9", "../x"]
        return self.with_session(self.pick(odd)), 404, False

    def no_session(self) -> tuple[Draft, int, bool]:
        draft = self.with_session("")
        draft.headers["mcp_session_id"] = None
        if draft.message is not None and draft.message.get("method") == "initialize":
            draft.message = call("say_again", name="x")
        return draft, 400, False

    # Tokens.

    def authorized(self, authorization: str | None) -> Draft:
        draft = self.pick([self.good, lambda: self.with_session(self.pick([self.loot.session, *self.loot.sessions]))])()
        draft.headers["authorization"] = authorization
        return draft

    def no_token(self) -> tuple[Draft, int, bool]:
        own = self.loot.own
        draft = self.authorized(
            self.pick(
                [None, "", "Bearer", "Bearer ", f"Basic {own}", f"Token {own}", own, f"Bearer{own}", f"Bearer {own} x"]
            )
        )
        if self.chance.random() < 0.3:
            draft.headers["authorization"] = None
            draft.path = self.pick([f"/mcp?access_token={own}", f"/mcp?token={own}", "/mcp"])
            other = ["cookie", "x-authorization", "proxy-authorization", "x-api-key", "x-forwarded-user"]
            draft.more.append((self.pick(other), self.pick([own, f"Bearer {own}", f"authorization={own}"])))
        return draft, 401, False

    def stolen_token(self) -> tuple[Draft, int, bool]:
        return self.authorized(f"Bearer {self.pick(self.loot.stolen)}"), 401, False

    def forged_token(self) -> tuple[Draft, int, bool]:
        return self.authorized(f"{self.pick(['Bearer', 'bearer', 'BEARER'])} {self.pick(self.loot.forged)}"), 401, False

    def altered_token(self) -> tuple[Draft, int, bool]:
        token = self.pick([self.loot.own, *self.loot.stolen])
        parts = token.split(".")
        number = self.chance.randrange(len(parts))
        # The last letter of a part may have bits that mean nothing.
        place = self.chance.randrange(len(parts[number]) - 1)
        letters = [letter for letter in string.ascii_letters if letter != parts[number][place]]
        parts[number] = parts[number][:place] + self.pick(letters) + parts[number][place + 1 :]
        altered = [
            ".".join(parts),
            token[: len(token) // 2],
            token + "AAAA",
            token[::-1],
            token.swapcase(),
            token + ".x",
        ]
        return self.authorized(f"Bearer {self.pick(altered)}"), 401, False

    # Headers.

    def two_of_a_kind(self) -> tuple[Draft, int, bool]:
        """Two headers where one decides: whichever reader takes the other copy would be deceived."""
        draft = self.older(call("say_again", name="x"))
        name, value = self.pick(
            [
                ("authorization", f"Bearer {self.pick(self.loot.stolen)}"),
                ("authorization", f"Bearer {self.loot.own}"),
                ("mcp-session-id", self.pick(self.loot.sessions)),
                ("mcp-session-id", self.loot.session),
                ("mcp-protocol-version", MODERN),
                ("host", "evil.example"),
                ("host", "localhost"),
                ("content-length", "5"),
                ("content-type", "text/plain"),
            ]
        )
        draft.more.append((self.pick([name, name.title(), name.upper()]), value))
        return draft, 400, False

    def two_voices(self) -> tuple[Draft, int, bool]:
        """Headers of the newest revision that say something else than the body."""
        draft = self.newer(call("say_again", name="x"))
        change = self.pick(
            [
                {"mcp_method": "tools/list"},
                {"mcp_method": None},
                {"mcp_name": "ping"},
                {"mcp_name": None},
                {"mcp_name": "=?base64?cGluZw==?="},
                {"mcp_protocol_version": LEGACY},
                {"mcp_protocol_version": None},
            ]
        )
        draft.headers |= change
        return draft, 400, False

    def wrong_version(self) -> tuple[Draft, int, bool]:
        draft = self.with_session(self.pick([self.loot.session, *self.loot.sessions]))
        draft.headers["mcp_protocol_version"] = self.pick(["1999-01-01", "2025-11-26", "x" * 200, "0", "\xff"])
        return draft, 400, False

    def wrong_method(self) -> tuple[Draft, int, bool]:
        draft = self.good()
        draft.method = self.pick(["PUT", "PATCH", "TRACE", "CONNECT", "PROPFIND"])
        return draft, 405, False

    def wrong_path(self) -> tuple[Draft, int, bool]:
        draft = self.good()
        draft.path = self.pick(["//mcp", "/mcp/../mcp", "/MCP", "/mcp;x", "/mcp%00", "/api/mcp", "/mcp/tools", "/.mcp"])
        return draft, 404, False

    # Who it says it is.

    def smuggled_argument(self) -> tuple[Draft, int, bool]:
        """Identity among the arguments, where it counts for nothing."""
        names = self.loot.names
        claims: dict[str, Any] = {
            "agent": names["agent"],
            "agent_id": names["agent"],
            "agentId": names["agent"],
            "tenant": names["tenant"],
            "subject": names["subject"],
            "session": self.pick(self.loot.sessions),
            "issue": "iss-1",
            "issue_id": "iss-1",
            "as_owner": True,
            "role": "owner",
            "scopes": ["*"],
            "_actor": {"kind": "human", "role": "owner"},
            "__proto__": {"role": "owner"},
        }
        chosen = self.chance.sample(sorted(claims), self.chance.randrange(1, 4))
        return self.good(call("say_again", name="x", **{name: claims[name] for name in chosen})), 200, True

    def smuggled_meta(self) -> tuple[Draft, int, bool]:
        """Identity where a program might look for it, to do what only a person may."""
        tool = self.pick(sorted(PEOPLES_TOOLS))
        message, names = call(tool, **PEOPLES_TOOLS[tool]), self.loot.names
        message["params"]["_meta"] = {
            self.pick(["agent", "rookery/agent", "io.modelcontextprotocol/agent"]): names["agent"],
            self.pick(["tenant", "tid", "rookery/tenant"]): names["tenant"],
            self.pick(["auth", "authorization", "rookery/actor"]): {"role": "owner", "scopes": ["*"]},
        }
        draft = self.good(message)
        header = self.pick(
            ["x-agent-id", "x-tenant-id", "x-user", "x-forwarded-user", "x-rookery-role", "mcp-param-agent"]
        )
        draft.more.append((header, self.pick(["owner", names["agent"], names["tenant"]])))
        return draft, 200, True

    def beyond_its_scopes(self) -> tuple[Draft, int, bool]:
        draft = self.good(call("wait_for", name="forged"))
        return draft, 403 if self.loot.asks_for_scopes else 200, True
