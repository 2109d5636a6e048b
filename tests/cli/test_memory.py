"""The commands about what agents remember."""

import json
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.domains.memory.minds import OTHER_WORDS, WORDS
from tests.sealing.test_legacy import PASSPHRASE, newer, older


def remember(terminal: Terminal, key: str, content: str, *flags: str) -> None:
    terminal.ok("call", "save_memory", json.dumps({"key": key, "content": content}), *flags)


def test_an_agents_memories_are_listed_shown_and_forgotten(terminal: Terminal) -> None:
    assert "no memories" in terminal.ok("memory", "list")
    remember(terminal, "deploy", "Deploys need the staging flag")
    terminal.ok("agents", "create", "bob")
    remember(terminal, "colour", "The logo is teal", "--agent", "bob")
    assert [each["key"] for each in terminal.json("memory", "list", "staging", "--json")] == ["deploy"]
    assert [each["key"] for each in terminal.json("memory", "list", "--agent", "bob", "--json")] == ["colour"]
    assert terminal.ok("memory", "show", "deploy").strip() == "Deploys need the staging flag"
    assert "there is no memory colour" in terminal.fails("memory", "show", "colour")
    assert terminal.json("memory", "forget", "deploy", "--json")["outcome"] == "forgotten"
    assert "no memories" in terminal.ok("memory", "list")


def test_the_report_counts_by_owner(terminal: Terminal) -> None:
    remember(terminal, "deploy", "Deploys need the staging flag")
    (told,) = terminal.json("memory", "report", "--json")
    assert (told["memories"], told["plain"], told["never_recalled"]) == (1, 1, 1)


def test_a_key_is_rotated_and_the_old_one_opens_nothing_any_more(tmp_path: Path) -> None:
    plain = Terminal(tmp_path)
    remember(plain, "deploy", "Deploys need the staging flag")
    channel = {"action": "set", "channel_type": "webhook", "config": {"url": "https://hooks.example.org/x"}}
    plain.ok("call", "configure_notifications", json.dumps(channel), "--as-owner")
    assert "no key is set" in plain.fails("memory", "rotate-key")
    first = Terminal(tmp_path, ROOKERY_MNEMONIC=WORDS)
    told = first.json("memory", "rotate-key", "--json")
    assert (told["memories"], told["channels"]) == (1, 1)
    assert first.ok("memory", "show", "deploy").strip() == "Deploys need the staging flag"
    second = Terminal(tmp_path, ROOKERY_MNEMONIC=OTHER_WORDS)
    assert "sealed with another key" in second.fails("memory", "list")
    words = tmp_path / "old-words"
    words.write_text(WORDS, encoding="utf-8")
    assert second.json("memory", "rotate-key", "--old-mnemonic-file", str(words), "--json")["memories"] == 1
    assert second.ok("memory", "show", "deploy").strip() == "Deploys need the staging flag"
    (told,) = second.json("memory", "report", "--json")
    assert told["plain"] == 0


def test_old_texts_of_both_formats_are_taken_over(terminal: Terminal, tmp_path: Path) -> None:
    file, phrase = tmp_path / "old.json", tmp_path / "phrase"
    phrase.write_text(PASSPHRASE, encoding="utf-8")
    texts = [
        {"key": "a", "content": newer("the first thing")},
        {"key": "b", "content": older("another matter entirely")},
    ]
    file.write_text(json.dumps(texts), encoding="utf-8")
    told = terminal.json("memory", "import", str(file), "--passphrase-file", str(phrase), "--json")
    assert told == {"imported": 2, "refused": 0}
    assert terminal.ok("memory", "show", "b").strip() == "another matter entirely"
    file.write_text("{}", encoding="utf-8")
    assert "no JSON list" in terminal.fails("memory", "import", str(file))
