"""What is taken out of files of each language."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.domains.code.extract import Symbol, extract, outline_of, symbols_of
from rookery.domains.code.grammars import LANGUAGES, QUERIES, available, installed, language_of, load
from tests.domains.code.codebase import Codebase
from tests.domains.code.samples import SAMPLES


def taken(path: str, source: bytes) -> tuple[list[Symbol], dict[str, list[int]]]:
    language = language_of(path, source)
    assert language is not None
    mentions: dict[bytes, list[int]] = {}
    symbols = symbols_of(outline_of(extract(source, load(language), mentions)))
    return symbols, {name.decode(errors="replace"): lines for name, lines in mentions.items()}


def test_every_language_has_a_query_an_ending_of_its_own_and_a_sample() -> None:
    assert installed()
    assert set(available()) == {ending for each in LANGUAGES for ending in each.endings.split()}
    assert len(available()) == sum(len(each.endings.split()) for each in LANGUAGES)
    assert {path.stem for path in QUERIES.glob("*.scm")} == {each.query or each.name for each in LANGUAGES}
    assert {language_of(path, text.encode()) for path, (text, _) in SAMPLES.items()} == set(LANGUAGES)


@pytest.mark.parametrize("path", SAMPLES)
def test_definitions_have_their_kinds_and_mentions_their_lines(path: str) -> None:
    text, symbols = SAMPLES[path]
    found, mentions = taken(path, text.encode())
    assert ", ".join(f"{each.kind} {each.name}" for each in found) == symbols
    lines = text.splitlines()
    assert all(name in lines[line - 1] for name, used in mentions.items() for line in used)
    assert mentions["A"]


async def test_all_languages_are_indexed_together(codebase: Codebase) -> None:
    agent = await codebase.open({path: text for path, (text, _) in SAMPLES.items()})
    found = await codebase.symbols(agent, "=A", limit=100)
    assert {each.split(":")[0] for each in found} == set(SAMPLES) - {"a.tsx"}
    used = await codebase.references(agent, "A", limit=200)
    assert {each.split(":")[0] for each in used} == set(SAMPLES)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_no_bytes_are_too_strange(path: str, data: st.DataObject) -> None:
    whole = SAMPLES[path][0].encode()
    at = data.draw(st.integers(0, len(whole)))
    source = whole[:at] + data.draw(st.binary(max_size=30)) + whole[data.draw(st.integers(at, len(whole))) :]
    found, mentions = taken(path, source)
    lines = source.count(b"\n") + 1
    for number, symbol in enumerate(found):
        assert 1 <= symbol.start <= symbol.end <= lines
        assert symbol.parent < number
        assert symbol.name.isprintable()
    for used in mentions.values():
        assert used == sorted(set(used))
        assert 1 <= used[0] <= used[-1] <= lines


def test_without_a_parser_the_domain_offers_no_service(tmp_path: Path) -> None:
    program = (
        "import sys, importlib.abc\n"
        "class NoParser(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.startswith('tree_sitter'): raise ModuleNotFoundError(name)\n"
        "import importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name.startswith('tree_sitter') else real(name, *rest)\n"
        "sys.meta_path.insert(0, NoParser())\n"
        "from rookery.plugins import load_domains\n"
        "found = load_domains(plugins=False)\n"
        "assert 'code_index' not in found.services\n"
        "assert 'code_symbols' in found.registry\n"
        "assert not [name for name in sys.modules if name.startswith('tree_sitter')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_server_does_not_import_the_parser(tmp_path: Path) -> None:
    program = "import sys, rookery.plugins as p; p.load_domains(plugins=False); sys.exit('tree_sitter' in sys.modules)"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, timeout=120).returncode == 0
