"""Runs the public conformance suite against a server, and reads what it left behind."""

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.clients.install import node, package
from tests.clients.running import bare_environment

LIMIT_S = 120
CURRENT, FORMER = "@modelcontextprotocol/conformance", "conformance-0.1"
RESULT = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\dA-Z-]+")
FINE = {"SUCCESS", "INFO", "SKIPPED"}


class Check(NamedTuple):
    """One check of one scenario, as the suite judged it."""

    scenario: str
    id: str
    status: str
    told: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.status} {self.id}: {self.told}"


class Report(NamedTuple):
    """What a run found. `output` is what it printed."""

    checks: tuple[Check, ...]
    code: int
    output: str

    @property
    def scenarios(self) -> set[str]:
        return {check.scenario for check in self.checks}

    def passed(self) -> set[str]:
        """The scenarios in which something succeeded and nothing was criticised."""
        criticised = {check.scenario for check in self.checks if check.status not in FINE}
        return {check.scenario for check in self.checks if check.status == "SUCCESS"} - criticised

    def complaints(self, scenarios: Iterable[str]) -> str:
        """What the suite said against these scenarios, a line each."""
        wanted = sorted(scenarios)
        lines = [str(check) for check in self.checks if check.scenario in wanted and check.status not in FINE]
        silent = [f"{scenario}: nothing succeeded" for scenario in wanted if scenario not in self.passed()]
        return "\n".join(["", *(lines or silent), *([] if self.checks else [self.output])])


def required(revision: str) -> list[str]:
    """The server scenarios that a revision requires, from the list that comes with the suite."""
    text = package(CURRENT, "requirements", f"{revision}.yaml").read_text()
    section = re.search(r"^server:\n((?:  - .+\n|\s*#.*\n)+)", text, re.MULTILINE)
    assert section, "the suite keeps its list of requirements in another way"
    return re.findall(r"^  - (\S+)", section[1], re.MULTILINE)


def run_suite(name: str, port: int, folder: Path, *options: str) -> Report:
    """Run one version of the suite against the server on this port; what it writes goes below `folder`."""
    found, user = folder / "results", folder / "user"
    user.mkdir(exist_ok=True)
    target = f"http://127.0.0.1:{port}/mcp"
    done = subprocess.run(
        [node(), package(name, "dist", "index.js"), "server", "--url", target, "-o", found, *options],
        env=bare_environment(user), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    return Report(tuple(_checks(found)), done.returncode, done.stdout + done.stderr)


def _checks(folder: Path) -> Iterable[Check]:
    for file in sorted(folder.glob("*/checks.json")):
        named = RESULT.fullmatch(file.parent.name)
        assert named, f"the suite calls its results {file.parent.name}"
        for check in json.loads(file.read_text()):
            yield Check(named["scenario"], check["id"], check["status"], check.get("errorMessage") or "")
