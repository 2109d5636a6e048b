"""What the forms of the page Settings say, as arguments of tools; and the channels as their forms need them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.domains.owner.channels import KINDS, OF_PEOPLE, SWITCHES
from rookery.lifecycle.states import PHASES
from rookery.web.refused_form import RefusedForm
from rookery.web.visit import Visit

EMPTY_GATES = 2
THRESHOLDS = ("lowLines", "highLines", "lowFiles", "highFiles")
SECRET_KEYS = frozenset({"bot_token", "access_token", "token", "password", "secret", "webhook_url", "url"})
"""Keys of channels whose values are secrets, or addresses that are as good as one."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GateRow:
    """A line of the form of quality gates."""

    command: str = ""
    label: str = ""
    required: bool = True


@dataclass(frozen=True, slots=True)
class ChannelField:
    """A field of the form of a channel."""

    key: str
    secret: bool
    switch: bool
    variable: str
    needed: bool


def lines(text: str) -> list[str]:
    """The lines of a text that say something."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def gate_rows(gates: Sequence[Mapping[str, Any]], refused: RefusedForm) -> list[GateRow]:
    """The gates as lines of a form, with some empty ones; what was sent, if that was refused."""
    if refused.name == "gates":
        rows = _sent_gates(refused.sent)
    else:
        rows = [GateRow(each["command"], each["label"], each["required"]) for each in gates]
    return [*rows, *[GateRow()] * EMPTY_GATES]


def _sent_gates(sent: Mapping[str, Sequence[str]]) -> list[GateRow]:
    commands, labels, required = (sent.get(name, ()) for name in ("command", "label", "required"))
    rows = zip(commands, labels, strict=False)
    found = [
        GateRow(command.strip(), label.strip(), str(place) in required) for place, (command, label) in enumerate(rows)
    ]
    return [row for row in found if row.command or row.label]


def project_arguments(section: str, visit: Visit, current: Mapping[str, Any]) -> Json:
    """What `configure_project` is told by one of the page's forms."""
    if section == "gates":
        sent = {name: visit.words(name) for name in ("command", "label", "required")}
        rows = _sent_gates(sent)
        return {"gates": [{"command": row.command, "label": row.label, "required": row.required} for row in rows]}
    if section == "risk":
        limits = {name: visit.word(name) for name in THRESHOLDS if visit.word(name)}
        return {"sensitive_paths": lines(visit.word("sensitive_paths")), "risk_thresholds": limits}
    if section == "instructions":
        return {name: _text(visit, name) for name in ("worker_instructions", "judge_instructions")}
    given: Json = {
        "pipeline": [phase for phase in PHASES if phase in visit.words("pipeline") or phase == "ready"],
        "unjudged": visit.words("unjudged"),
        "contracts_dir": visit.word("contracts_dir"),
    }
    if visit.word("base_branch"):
        given["base_branch"] = visit.word("base_branch")
    # It can be chosen only before the first issue, and whoever leaves it as it is chooses nothing.
    if visit.word("prefix") and visit.word("prefix").upper() != current.get("prefix"):
        given["prefix"] = visit.word("prefix")
    return given


def vault_arguments(visit: Visit, current: Mapping[str, Any]) -> Json:
    """What `configure_vault` is told."""
    given: Json = {
        "on": "on" in visit.words("on"),
        "folders": lines(visit.word("folders")),
        "globs": lines(visit.word("globs")),
    }
    if visit.word("root") != (current.get("folder") or ""):
        given["root"] = visit.word("root")
    return given


def channel_fields(kind: str) -> list[ChannelField]:
    """What a channel of people of this kind can be told; what it needs comes first."""
    found = KINDS[kind]
    needed = frozenset[str]().union(*found.needs)
    keys = sorted((found.keys | {"links"}) - frozenset(), key=lambda key: (key not in needed, key in OF_PEOPLE, key))
    return [
        ChannelField(key, key in SECRET_KEYS, key in SWITCHES, found.environment.get(key, ""), key in needed)
        for key in keys
    ]


def channel_config(kind: str, visit: Visit) -> dict[str, str]:
    """The config that a form has sent; what was left empty is left out."""
    return {each.key: visit.word(each.key) for each in channel_fields(kind) if visit.word(each.key)}


def _text(visit: Visit, name: str) -> str:
    """A long text as it was typed; browsers send every line end as two characters."""
    value = visit.form.get(name)
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else ""
