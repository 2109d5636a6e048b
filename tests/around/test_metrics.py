"""What is counted of calls, and that Prometheus can read it."""

import asyncio
import math
import re
import sys
import threading
from collections.abc import Callable

import pytest

from rookery.core.context import Context
from rookery.core.errors import NotFound, RookeryError
from rookery.core.tool import NoInput, ToolOutput, tool
from tests.platform_fixtures import Fleet

SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\.)*)"(?:,|$)')
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
SOON_S = 10
ENTERED = threading.Event()
"""Set by the tools that go on until their caller goes away, once they have begun."""
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Nothing(ToolOutput):
    pass


@tool(title="Spin", effect="read", action="spin:use", tier="act", group="Read", profiles="", default=True)
def spin_reading(ctx: Context, args: NoInput) -> Nothing:
    ENTERED.set()
    while True:
        pass


@tool(title="Spin", effect="write", action="spin:use", tier="act", group="Write", profiles="", default=True)
def spin_writing(ctx: Context, args: NoInput) -> Nothing:
    return spin_reading.handler(ctx, args)


@tool(title="Wait", effect="external", action="spin:use", tier="act", group="Write", profiles="", default=True)
async def wait_outside(ctx: Context, args: NoInput) -> Nothing:
    ENTERED.set()
    await asyncio.Event().wait()
    return Nothing()


def parse(text: str) -> tuple[dict[str, str], Samples]:
    """Kinds by family and samples by name and labels, as strictly as Prometheus reads them."""
    kinds: dict[str, str] = {}
    samples: Samples = {}
    family = ""
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            family, kind = line.removeprefix("# TYPE ").split(" ")
            assert family not in kinds, f"{family} is there twice"
            kinds[family] = kind
            continue
        found = SAMPLE.fullmatch(line)
        assert found, line
        labels = LABEL.findall(found["labels"] or "")
        assert LABEL.sub("", found["labels"] or "") == "", line
        assert found["name"].removeprefix(family) in SUFFIXES[kinds[family]], f"{line} is not of {family}"
        key = (found["name"], frozenset(labels))
        assert key not in samples, f"{line} is there twice"
        samples[key] = float(found["value"])
    return kinds, samples


def active(fleet: Fleet) -> float:
    return value(parse(fleet.platform.metrics.render())[1], "mcp_requests_active")


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


@pytest.fixture
def fleet(make_working: Callable[..., Fleet], tmp_path: object) -> Fleet:
    return make_working(f"sqlite:///{tmp_path}/rookery.db")


async def test_an_unused_server_has_metrics_that_parse(fleet: Fleet) -> None:
    kinds, samples = parse(fleet.platform.metrics.render())
    assert value(samples, "mcp_requests_active") == 0
    # Dots become underscores, and a counter ends in _total; three are names of older servers.
    assert kinds == {
        "mcp_requests_active": "gauge",
        "mcp_ratelimit_rejections_total": "counter",
        "mcp_tool_calls_total": "counter",
        "mcp_tool_errors_total": "counter",
        "mcp_tool_input_bytes_total": "counter",
        "mcp_tool_output_bytes_total": "counter",
        "mcp_tool_duration_milliseconds": "histogram",
        "mcp_tool_execution_duration_ms": "histogram",
        "mcp_tool_execution_success": "counter",
        "mcp_tool_payload_size_bytes": "counter",
        "mcp_resource_reads_total": "counter",
        "mcp_resource_errors_total": "counter",
        "mcp_resource_input_bytes_total": "counter",
        "mcp_resource_output_bytes_total": "counter",
        "mcp_resource_duration_milliseconds": "histogram",
        "mcp_prompt_generations_total": "counter",
        "mcp_prompt_errors_total": "counter",
        "mcp_prompt_input_bytes_total": "counter",
        "mcp_prompt_output_bytes_total": "counter",
        "mcp_prompt_duration_milliseconds": "histogram",
    }


async def test_calls_are_counted_by_tool_and_outcome(fleet: Fleet) -> None:
    actor = fleet.actor()
    for _ in range(3):
        await fleet.call(actor, "ping")
    for called, arguments in {
        "add_and_fail": {"key": "a"},
        "add_and_break": {"key": "a"},
        "create_agent": {"name": "a"},
        "add_pair": {"kee": "a"},
        "look_forever": {},
    }.items():
        with pytest.raises(RookeryError):
            await fleet.call(actor, called, **arguments)
    _, samples = parse(fleet.platform.metrics.render())
    assert value(samples, "mcp_tool_calls_total", tool="ping", success="true") == 3
    assert value(samples, "mcp_tool_execution_success", tool="ping") == 3
    errors = {dict(labels)["tool"]: dict(labels)["code"] for name, labels in samples if name == "mcp_tool_errors_total"}
    assert errors == {
        "add_and_fail": "CONFLICT",
        "add_and_break": "INTERNAL_ERROR",
        "create_agent": "PERMISSION_DENIED",
        "add_pair": "INVALID_PARAMS",
        "look_forever": "TIMEOUT",
    }
    assert value(samples, "mcp_requests_active") == 0


async def test_durations_are_a_histogram(fleet: Fleet) -> None:
    actor = fleet.actor()
    for _ in range(5):
        await fleet.call(actor, "ping")
    with pytest.raises(RookeryError):
        await fleet.call(actor, "look_forever")
    _, samples = parse(fleet.platform.metrics.render())
    for family in ("mcp_tool_duration_milliseconds", "mcp_tool_execution_duration_ms"):
        for called, calls in {"ping": 5, "look_forever": 1}.items():
            buckets = {
                float(dict(labels)["le"]): count
                for (name, labels), count in samples.items()
                if name == f"{family}_bucket" and dict(labels)["tool"] == called
            }
            counts = [buckets[top] for top in sorted(buckets)]
            assert counts == sorted(counts)
            assert counts[-1] == buckets[math.inf] == value(samples, f"{family}_count", tool=called) == calls
        assert value(samples, f"{family}_sum", tool="look_forever") >= 300
        assert value(samples, f"{family}_bucket", tool="look_forever", le="250") == 0


async def test_sizes_are_counted(fleet: Fleet) -> None:
    actor = fleet.actor()
    await fleet.call(actor, "add_pair", key="x" * 1000)
    await fleet.call(actor, "add_pair", key="y" * 1000)
    _, samples = parse(fleet.platform.metrics.render())
    for way in ("input", "output"):
        size = value(samples, f"mcp_tool_{way}_bytes_total", tool="add_pair")
        assert 2000 < size < 2200
        assert value(samples, "mcp_tool_payload_size_bytes", tool="add_pair", direction=way) == size


async def test_refusals_of_the_rate_limit_are_counted(fleet: Fleet) -> None:
    actor = fleet.actor()
    for _ in range(2):
        await fleet.call(actor, "look_twice_a_minute")
    for _ in range(3):
        with pytest.raises(RookeryError):
            await fleet.call(actor, "look_twice_a_minute")
    _, samples = parse(fleet.platform.metrics.render())
    assert value(samples, "mcp_ratelimit_rejections_total") == 3
    assert value(samples, "mcp_tool_calls_total", tool="look_twice_a_minute", success="false") == 3
    assert value(samples, "mcp_requests_active") == 0


@pytest.mark.parametrize("name", ["spin_reading", "spin_writing", "wait_outside"])
async def test_a_call_is_active_until_it_ends_also_if_its_caller_goes_away(
    database_url: str, make_fleet: Callable[..., Fleet], name: str
) -> None:
    fleet = make_fleet(database_url, extra={"spinning": sys.modules[__name__]})
    ENTERED.clear()
    call = asyncio.create_task(fleet.call(fleet.actor(), name))
    assert await asyncio.to_thread(ENTERED.wait, SOON_S)
    assert active(fleet) == 1
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    _, samples = parse(fleet.platform.metrics.render())
    assert value(samples, "mcp_requests_active") == 0
    assert value(samples, "mcp_tool_errors_total", tool=name, code="REQUEST_CANCELLED") == 1
    assert value(samples, "mcp_tool_duration_milliseconds_count", tool=name) == 1


async def test_no_call_stays_active_whichever_way_it_failed(working: Fleet) -> None:
    for name in ("add_and_fail", "add_and_break", "look_and_break", "reach_and_break", "reach_forever", "add_forever"):
        with pytest.raises(RookeryError):
            await working.call(working.actor(), name, key="a")
        assert active(working) == 0


async def test_names_that_no_tool_has_make_no_labels(fleet: Fleet) -> None:
    before = fleet.platform.metrics.render()
    for number in range(5):
        with pytest.raises(NotFound):
            await fleet.call(fleet.actor(), f"made_up_{number}")
    assert fleet.platform.metrics.render() == before


async def test_no_label_tells_who_called(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "create_agent", name="ada")
    issue = await fleet.issue()
    ada, owner = fleet.actor(agent="ada", session="ses-1", issue=issue), fleet.owner
    for actor in (ada, owner):
        await fleet.call(actor, "ping")
        with pytest.raises(RookeryError):
            await fleet.call(actor, "ping", loudly=True)
    text = fleet.platform.metrics.render()
    assert {label for _, labels in parse(text)[1] for label, _ in labels} == {
        "tool", "success", "code", "direction", "le",
    }  # fmt: skip
    for who in (ada.subject, owner.subject, ada.project, "ada", "ses-1", issue, '"default"'):
        assert who
        assert who not in text


async def test_an_answer_is_measured_in_bytes_and_not_in_characters(fleet: Fleet) -> None:
    answered = await fleet.platform.calls.call(fleet.actor(), "add_pair", {"key": "ü" * 100})
    _, samples = parse(fleet.platform.metrics.render())
    assert value(samples, "mcp_tool_output_bytes_total", tool="add_pair") == len(answered.text.encode())
