"""The shape of the source: who may import whom, how long a file may be, and that every tool has a test."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rookery.plugins import load_domains

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rookery"
TESTS = ROOT / "tests"
MAX_LINES = 400

# Each layer imports from itself and from the layers before it.
LAYERS = [
    {"core", "settings"},
    {"db"},
    {
        "identity",
        "around",
        "asks",
        "jobs",
        "lifecycle",
        "fulltext",
        "files",
        "sealing",
        "ledger",
        "embedding",
        "outgoing",
        "repute",
        "attest",
    },
    {"sessions"},
    {"domains"},
    {"engine", "server", "runtimes"},
    {"demo"},
    {"web", "cli"},
    {"plugins", "app"},
    {"testing"},
]
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}
# What starts a process puts the platform together when it is asked to, so inside a function only.
STARTS_THE_APP = {"cli", "server"}
CORE_NEEDS = {"pydantic", "pydantic_core"}


@dataclass(frozen=True)
class Import:
    """One imported module, as `rookery.db.tx`, and whether importing the file imports it."""

    target: str
    line: int
    at_once: bool

    @property
    def top(self) -> str:
        return self.target.partition(".")[0]

    @property
    def part(self) -> str:
        """The layer of a module of ours; empty for the package itself."""
        return self.target.partition(".")[2].partition(".")[0]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def is_module(name: str) -> bool:
    place = SOURCE.parent.joinpath(*name.split("."))
    return place.with_suffix(".py").exists() or place.is_dir()


def for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(node: ast.AST, at_once: bool = True) -> Iterator[Import]:
    """Every import below `node` that can run; what is there for the type checker only is left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, at_once)
        elif isinstance(child, ast.ImportFrom) and not child.level and child.module:
            for alias in child.names:
                inner = f"{child.module}.{alias.name}"
                yield Import(inner if is_module(inner) else child.module, child.lineno, at_once)
        elif isinstance(child, ast.If) and for_types_only(child):
            for other in child.orelse:
                yield from imports(ast.Module([other], []), at_once)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(child, at_once and not inside)


def part_of(path: Path) -> str:
    """The layer that a file is in: its folder below rookery, or its own name."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def is_light(part: str) -> bool:
    """Whether the file is on the way of `rookery stdio`, which has to start in milliseconds."""
    return part in {"__init__", "__main__", "entry", ""} or part.startswith("relay")


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_every_part_of_the_source_is_in_a_layer() -> None:
    parts = {part_of(path) for path in sources()}
    assert {part for part in parts if part not in RANK and not is_light(part)} == set()


def test_imports_follow_the_layers() -> None:
    wrong: list[str] = []
    for path in sources():
        part = part_of(path)
        for found in imports(tree(path)):
            if is_light(part) or found.top != "rookery" or is_light(found.part):
                continue
            starts = found.part == "app" and part in STARTS_THE_APP and not found.at_once
            if not starts and RANK.get(found.part, len(LAYERS)) > RANK.get(part, -1):
                wrong.append(f"{place(path, found.line)} {part} imports {found.target}")
    assert wrong == []


def test_core_imports_the_standard_library_and_pydantic_only() -> None:
    allowed = sys.stdlib_module_names | CORE_NEEDS | {"rookery"}
    core = [path for path in sources() if part_of(path) == "core"]
    found = [(path, used) for path in core for used in imports(tree(path))]
    assert [place(path, used.line) for path, used in found if used.top not in allowed] == []


def test_domains_do_not_import_each_other() -> None:
    wrong: list[str] = []
    for path in (SOURCE / "domains").rglob("*.py"):
        own = path.relative_to(SOURCE / "domains").parts[0]
        for found in imports(tree(path)):
            steps = found.target.split(".")
            if steps[:2] == ["rookery", "domains"] and steps[2:3] not in ([], [own]):
                wrong.append(f"{place(path, found.line)} {own} imports {found.target}")
    assert wrong == []


def test_the_stdio_relay_starts_with_the_standard_library_alone() -> None:
    wrong: list[str] = []
    for path in sources():
        if not is_light(part_of(path)):
            continue
        for found in imports(tree(path)):
            ours = found.top == "rookery" and is_light(found.part)
            if found.at_once and not ours and found.top not in sys.stdlib_module_names:
                wrong.append(f"{place(path, found.line)} imports {found.target}")
    assert wrong == []


def test_no_import_is_relative() -> None:
    everything = ((path, node) for path in sources() for node in ast.walk(tree(path)))
    from_imports = ((path, node) for path, node in everything if isinstance(node, ast.ImportFrom))
    assert [place(path, node.lineno) for path, node in from_imports if node.level] == []


def test_no_source_file_is_too_long() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert [place(path, lines) for path, lines in lengths.items() if lines > MAX_LINES] == []


def declared_tools() -> set[str]:
    return {tool.name for tool in load_domains(plugins=False).registry}


def words_in_tests() -> set[str]:
    """Every tool name that has a test file of its own, or a word in a test of a domain or of identity."""
    words = {path.stem.removeprefix("test_") for path in TESTS.rglob("test_*.py")}
    for folder in ("domains", "identity"):
        for path in (TESTS / folder).rglob("test_*.py"):
            words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return words


def test_every_tool_has_a_test() -> None:
    assert sorted(declared_tools() - words_in_tests()) == []
