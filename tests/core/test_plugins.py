"""Plugins: other people's domains, found by entry point. A broken one stops the start and is named."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.warm import run

ROOT = Path(__file__).parents[2]
TOOL = '''
from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolOutput, tool


class Weather(ToolOutput):
    sky: str


def declare(**how):
    declared = {"title": "Weather", "effect": "read", "action": "weather:read", "tier": "observe", "group": "Read"}
    return tool(**{**declared, "profiles": "W", "default": True, "inline": True, **how})


@declare()
def read_weather(ctx: Context, args: NoInput) -> Weather:
    """Say what the sky looks like. Use it before going out. Returns one word. Knows only one sky."""
    return Weather(sky="blue")
'''
MORE = '''

@declare(tier="privileged", default=False)
def reset_weather(ctx: Context, args: NoInput) -> Weather:
    """Start the weather again. Use it never. Returns one word. Needs a grant."""
    return Weather(sky="grey")


@declare(scheduler_blocked=True)
def announce_weather(ctx: Context, args: NoInput) -> Weather:
    """Tell everyone. Use it with care. Returns one word. Not in scheduled sessions."""
    return Weather(sky="grey")


@declare(principals="people", default=False)
def order_weather(ctx: Context, args: NoInput) -> Weather:
    """Order better weather. Use it as a person. Returns one word. Only for people."""
    return Weather(sky="blue")


@declare(requires="satellite")
def watch_weather(ctx: Context, args: NoInput) -> Weather:
    """Look from above. Use it on clear days. Returns one word. Needs a satellite."""
    return Weather(sky="blue")


@declare(requires="barometer")
def weigh_weather(ctx: Context, args: NoInput) -> Weather:
    """Weigh the air. Use it indoors. Returns one word. Needs a barometer."""
    return Weather(sky="blue")


SERVICES = ("barometer",)
'''
FEATURES = '''
from rookery.core.context import Context
from rookery.core.prompt import prompt
from rookery.core.resource import resource
from rookery.core.tool import NoInput


@resource("weather://today", title="Weather today", right="read_weather", mime_type="text/plain", inline=True)
def weather_today(ctx: Context, args: NoInput) -> str:
    """What the sky looks like today."""
    return "blue"


@prompt(title="Forecast", right="reset_weather", inline=True)
def forecast(ctx: Context, args: NoInput) -> str:
    """Asks for a forecast."""
    return "Will it rain?"
'''
START = """
import asyncio, json, sys
from rookery.app import make_platform
from rookery.core.errors import RookeryError
from rookery.identity.resolve import Binding
from rookery.settings import Settings

try:
    platform = make_platform(Settings(home=sys.argv[1], plugins=len(sys.argv) < 3))
except RookeryError as error:
    sys.exit(json.dumps(error.as_dict()))


def listed(**binding):
    actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding(**binding))).actor
    return [tool.name for tool in platform.registry.listed(actor) if tool.domain == "weather"]


def declared(**binding):
    actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding(**binding))).actor
    found = (*platform.registry.resources(actor), *platform.registry.prompts(actor))
    return [each.tool.name for each in found if each.domain == "weather"]


async def called(name, **binding):
    actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding(**binding))).actor
    try:
        return (await platform.calls.call(actor, name, {})).structured
    except RookeryError as error:
        return error.layer


async def main():
    print(json.dumps({
        "agent": listed(), "worker": listed(profile="worker"), "judge": listed(profile="judge"),
        "scheduled": listed(scheduler=True), "owner": listed(as_owner=True),
        "scope_file": listed(scope_file=frozenset({"ping"})),
        "read": await called("read_weather"), "aliased": await called("corvid_read_weather"),
        "reset": await called("reset_weather"), "order": await called("order_weather"),
        "announce": await called("announce_weather", scheduler=True),
        "declared": [declared(), declared(profile="judge"), declared(as_owner=True)],
    }))


asyncio.run(main())
platform.close()
"""


def install(folder: Path, source: str, *, name: str = "weather", module: str = "acme_weather") -> Path:
    """A distribution as pip would have unpacked it."""
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[rookery.domains]\n{name} = {module}\n")
    return folder


def start(folder: Path, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT / "src")])
    command = [sys.executable, "-c", START, str(home), *options]
    return run(command, env={**os.environ, "PYTHONPATH": path}, limit_s=60)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


BROKEN = {
    "it cannot be imported": ("import a_module_that_is_not_there\n", "a_module_that_is_not_there"),
    "it is not even Python": ("def (:\n", "SyntaxError"),
    "it fails while it is loaded": ("raise RuntimeError('no key')\n", "no key"),
    "a handler has the wrong signature": (TOOL.replace("args: NoInput", "args: str"), "read_weather"),
    "a declaration is incomplete": (TOOL.replace('"effect": "read", ', ""), "effect"),
    "a description says too little": (TOOL.replace("Returns one word.", ""), "read_weather"),
    "a tool has the name of one of ours": (TOOL.replace("read_weather", "ping"), "ping"),
    "a resource needs the right of a tool that is not there": (
        TOOL + FEATURES.replace("read_weather", "no_such_tool"),
        "no_such_tool",
    ),
    "a resource has no title": (TOOL + MORE + FEATURES.replace("Weather today", ""), "weather_today"),
    "a prompt has no description": (TOOL + MORE + FEATURES.replace('"""Asks for a forecast."""', ""), "forecast"),
    "an address is none": (TOOL + MORE + FEATURES.replace("weather://today", "today"), "scheme"),
    "an address is one of ours": (TOOL + MORE + FEATURES.replace("weather://today", "rookery://server"), "rookery:"),
    "a tool claims the old prefix": (TOOL.replace("read_weather", "corvid_read_weather"), "corvid_read_weather"),
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_plugin_stops_the_start_by_name_because(why: str, site: Path, tmp_path: Path) -> None:
    source, named = BROKEN[why]
    done = start(install(site, source), tmp_path / "home")
    assert done.returncode == 1, done.stdout
    error: dict[str, Any] = json.loads(done.stderr.strip().splitlines()[-1])
    assert error["code"] == "CONFIGURATION_ERROR"
    assert "weather" in error["message"]
    assert named in error["message"]
    assert error["hint"]
    assert not (tmp_path / "home" / "rookery.db").exists()


def test_a_plugin_with_the_name_of_one_of_our_domains_stops_the_start(site: Path, tmp_path: Path) -> None:
    done = start(install(site, TOOL, name="system"), tmp_path / "home")
    assert done.returncode == 1
    assert "plugin system" in done.stderr


def test_a_broken_plugin_can_be_left_out(site: Path, tmp_path: Path) -> None:
    install(site, BROKEN["it cannot be imported"][0])
    done = start(site, tmp_path / "home", "without plugins")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agent"] == []


def test_the_tools_of_a_plugin_pass_every_filter_like_ours(site: Path, tmp_path: Path) -> None:
    done = start(install(site, TOOL + MORE), tmp_path / "home")
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    free = ["announce_weather", "read_weather", "weigh_weather"]
    assert seen["agent"] == free
    assert seen["worker"] == free
    assert seen["judge"] == []
    assert seen["scope_file"] == []
    assert seen["scheduled"] == ["read_weather", "weigh_weather"]
    assert seen["owner"] == sorted([*free, "reset_weather", "order_weather"])
    assert seen["read"] == seen["aliased"] == {"sky": "blue"}
    assert (seen["reset"], seen["order"], seen["announce"]) == ("role", "principal", "scheduler")


@pytest.mark.parametrize("as_package", [False, True], ids=["one module", "a package"])
def test_the_resources_and_prompts_of_a_plugin_are_found(site: Path, tmp_path: Path, as_package: bool) -> None:
    install(site, TOOL + MORE + ("" if as_package else FEATURES))
    if as_package:
        package = site / "acme_weather"
        package.mkdir()
        (site / "acme_weather.py").rename(package / "tools.py")
        (package / "__init__.py").write_text("")
        resources, _, prompts = FEATURES.rpartition("@prompt")
        (package / "resources.py").write_text(resources)
        head = FEATURES.partition("@resource")[0]
        (package / "prompts.py").write_text(f"{head}@prompt{prompts}")
        # A module of another name is the plugin's own business.
        (package / "helpers_of_mine.py").write_text("raise RuntimeError")
    done = start(site, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    agent, judge, owner = json.loads(done.stdout)["declared"]
    assert agent == ["resource:weather_today"]
    assert judge == []
    assert owner == ["resource:weather_today", "prompt:forecast"]
