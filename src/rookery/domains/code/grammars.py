"""Which languages can be read, by the endings of files, and the parser and query of each.

A language is a line of `LANGUAGES` and a query file beside it; its grammar is a package of its own. Those that are not
installed are left out, and their files with them.
"""

import importlib
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rookery.domains.code.plain_python import PlainPython

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

QUERIES = Path(__file__).parent / "queries"


@dataclass(frozen=True, slots=True)
class Language:
    """`query` names the query file where it is shared, `function` what its package calls the grammar."""

    name: str
    package: str
    endings: str
    function: str = "language"
    query: str = ""


LANGUAGES = (
    Language("python", "tree_sitter_python", "py pyi pyw"),
    Language("javascript", "tree_sitter_javascript", "js mjs cjs jsx"),
    Language("typescript", "tree_sitter_typescript", "ts mts cts", "language_typescript"),
    Language("tsx", "tree_sitter_typescript", "tsx", "language_tsx", "typescript"),
    Language("go", "tree_sitter_go", "go"),
    Language("rust", "tree_sitter_rust", "rs"),
    Language("java", "tree_sitter_java", "java"),
    Language("c", "tree_sitter_c", "c h"),
    Language("cpp", "tree_sitter_cpp", "cc cpp cxx c++ hpp hh hxx h++ ipp"),
    Language("c-sharp", "tree_sitter_c_sharp", "cs"),
    Language("ruby", "tree_sitter_ruby", "rb rake gemspec"),
    Language("php", "tree_sitter_php", "php phtml", "language_php"),
    Language("bash", "tree_sitter_bash", "sh bash bats"),
    Language("kotlin", "tree_sitter_kotlin", "kt kts"),
    Language("swift", "tree_sitter_swift", "swift"),
    Language("scala", "tree_sitter_scala", "scala sc"),
    Language("lua", "tree_sitter_lua", "lua"),
)
# A header is C++ if it says so: the grammar of C would make nothing of it.
_CPP = re.compile(rb"^[ \t]*(?:class|namespace|template|using|public:|private:|protected:)|\w::\w", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Grammar:
    """What reads the files of one language. Not to be used by two threads at once."""

    language: str
    parser: "Parser"
    query: "Query"
    plain: PlainPython | None
    """The short way through most files, if the language has one."""
    exports_capitals: bool
    """What begins with a capital letter is seen from outside."""


def installed() -> bool:
    """Whether any language can be read. Imports nothing."""
    return bool(available())


@cache
def available() -> dict[str, Language]:
    """The languages whose grammars are installed, by the endings of their files."""
    if importlib.util.find_spec("tree_sitter") is None:
        return {}
    packages = {each.package for each in LANGUAGES}
    there = {package for package in packages if importlib.util.find_spec(package) is not None}
    return {ending: each for each in LANGUAGES if each.package in there for ending in each.endings.split()}


def language_of(path: str, source: bytes) -> Language | None:
    """The language of a file, None if it cannot be read."""
    known = available()
    ending = path.rpartition(".")[2].lower()
    if ending == "h" and "hpp" in known and _CPP.search(source):
        return known["hpp"]
    return known.get(ending)


def load(language: Language) -> Grammar:
    """The parser and the query of a language; takes some milliseconds."""
    from tree_sitter import Language as Loaded
    from tree_sitter import Parser, Query

    package: Any = importlib.import_module(language.package)
    # Some packages hand out a number, which is deprecated, and others what stands for it.
    grammar = Loaded(getattr(package, language.function)())  # pyright: ignore[reportDeprecated]
    text = (QUERIES / f"{language.query or language.name}.scm").read_text(encoding="utf-8")
    parser, query = Parser(grammar), Query(grammar, text)
    plain = PlainPython(grammar, parser, query) if language.name == "python" else None
    return Grammar(language.name, parser, query, plain, language.name == "go")
