"""The example plugin as its users have it: installed, found by its entry point, and gone without it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from rookery.testing import ERAS, Era
from tests.server.processes import environment

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin-echo"
GUIDE = ROOT / "docs" / "plugins.md"
PATIENCE_S = 60
ITS_TOOLS = {
    "cat_fact",
    "code_review_sampling",
    "data_explorer",
    "echo_message",
    "image_test",
    "madlibs_elicitation",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip would leave in a folder of packages: the package, and what pyproject.toml says of it."""
    folder = tmp_path_factory.mktemp("installed")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for package in (EXAMPLE / "src").iterdir():
        shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    described = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in points.items())
        for group, points in project["entry-points"].items()
    ]
    (described / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
    return folder


def tools(environ: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What `rookery tools` lists for the owner, in a process of its own."""
    command = [sys.executable, "-m", "rookery.entry", "tools", "--as-owner", "--json"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return {tool["name"]: tool for tool in json.loads(done.stdout)}


@pytest.mark.early
def test_its_own_tests_pass(installed: Path, tmp_path: Path) -> None:
    environ = environment(tmp_path / "home", installed)
    kept = {name: value for name, value in environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=EXAMPLE,
        env=kept,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed in ", done.stdout, re.MULTILINE), done.stdout


def test_installed_its_tools_are_listed_under_its_name(installed: Path, tmp_path: Path) -> None:
    listed = tools(environment(tmp_path, installed))
    assert {name for name, tool in listed.items() if tool["domain"] == "echo"} == ITS_TOOLS


def test_without_it_nothing_of_it_is_there(installed: Path, tmp_path: Path) -> None:
    plain = tools(environment(tmp_path / "plain", None))
    assert ITS_TOOLS.isdisjoint(plain)
    assert not [tool for tool in plain.values() if tool["domain"] == "echo"]
    switched_off = tools(environment(tmp_path / "off", installed, ROOKERY_PLUGINS="false"))
    assert switched_off.keys() == plain.keys()


def test_a_package_that_nobody_installed_is_not_loaded(tmp_path: Path) -> None:
    environ = environment(tmp_path, None)
    environ["PYTHONPATH"] += os.pathsep + str(EXAMPLE / "src")
    assert ITS_TOOLS.isdisjoint(tools(environ))


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_at_the_stdio_door_has_it(installed: Path, tmp_path: Path, era: Era) -> None:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rookery.entry", "stdio", "--direct"],
        env=environment(tmp_path, installed),
        cwd=tmp_path,
    )
    with (tmp_path / "server.log").open("a") as log, anyio.fail_after(PATIENCE_S):
        mode = "legacy" if era == "2025-11-25" else "auto"
        async with Client(stdio_client(started, errlog=log), mode=mode) as client:
            assert client.protocol_version == era
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert listed & ITS_TOOLS == {"data_explorer", "echo_message", "image_test"}
            answer = await client.call_tool("echo_message", {"message": "Hi", "mode": "uppercase"})
            assert answer.structured_content is not None
            assert answer.structured_content["repeated_message"] == "HI"
            assert (await client.call_tool("cat_fact", {})).is_error
            contents = (await client.read_resource("echo://hello")).contents
            assert [getattr(part, "text", None) for part in contents] == ["Echo: hello"]
            prompt = await client.get_prompt("code_review", {"language": "go"})
            assert "Review the following go." in str(prompt.messages[0].content)


def written() -> str:
    """Everything that the plugin's author wrote, and the commands of its README."""
    files = [*EXAMPLE.rglob("*.py"), EXAMPLE / "pyproject.toml", EXAMPLE / "README.md"]
    files.append(ROOT / "tests" / "testing" / "sample_plugin.py")
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def blocks(text: str) -> list[str]:
    return re.findall(r"^```(?:python|toml|sh)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_guide_shows_what_is_really_there() -> None:
    there = written()
    # A line of dots stands for what the guide leaves out.
    shown = [part.strip("\n") for block in blocks(GUIDE.read_text(encoding="utf-8")) for part in block.split("\n...\n")]
    assert len(shown) > 5
    assert [part for part in shown if part not in there] == []


def test_the_guide_leads_to_files_that_are_there() -> None:
    for page in (GUIDE, EXAMPLE / "README.md"):
        links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        assert links
        assert [link for link in links if not (page.parent / link).exists()] == []
