"""Inserting into JSON text of every layout."""

import json
import random
from typing import Any

import pytest

from rookery.cli.jsonc import JsonText

PATH = ("servers", "rookery")


def inserted(text: str, value: object = 1) -> str:
    after = JsonText(text, comments=True).with_value(PATH, value)
    rest = iter(after)
    assert all(character in rest for character in text), "something that stood there was lost"
    return after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("{}", '{\n  "servers": {\n    "rookery": 1\n  }\n}'),
        ("{\n}\n", '{\n  "servers": {\n    "rookery": 1\n  }\n}\n'),
        ("\ufeff{}", '\ufeff{\n  "servers": {\n    "rookery": 1\n  }\n}'),
        ('{"servers": {"a":2}}', '{"servers": {"a":2, "rookery": 1}}'),
        ('{ "servers": { "a":2, } }', '{ "servers": { "a":2, "rookery": 1, } }'),
        ('{"a": 2}', '{"a": 2, "servers": {"rookery": 1}}'),
        ('{\n\t"servers": {}\n}', '{\n\t"servers": {\n\t\t"rookery": 1\n\t}\n}'),
        ('{\r\n "servers": {}\r\n}\r\n', '{\r\n "servers": {\r\n  "rookery": 1\r\n }\r\n}\r\n'),
        ('{\n    "servers": {"a": 2}\n}', '{\n    "servers": {"a": 2, "rookery": 1}\n}'),
        ('{"servers": {\n   "a": 2}}', '{"servers": {\n   "a": 2,\n   "rookery": 1\n}}'),
        ('{"servers": {\n "a": 2 // b\n}}', '{"servers": {\n "a": 2, // b\n "rookery": 1\n}}'),
        ('{"servers": { // none\n}}', '{"servers": { // none\n  "rookery": 1\n}}'),
        ('{"\\u0073ervers": {"a": 2}}', '{"\\u0073ervers": {"a": 2, "rookery": 1}}'),
    ],
)
def test_a_value_is_laid_out_like_its_neighbours(text: str, after: str) -> None:
    assert inserted(text) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"servers": null}', "servers is not an object"),
        ('{"servers": {}, "servers": {}}', "twice"),
        ('{"servers": {"rookery": 2}}', "already there"),
        # For editors a comment also ends at a carriage return, which is no layout to insert into.
        ('{"servers": {"a": 2 // b\r}}', "no room"),
        ("[1]", "not an object"),
        ("{,}", "Expecting property name"),
        ('{"a": [1,,]}', "Expecting value"),
        ('{"a": 1e}', "Expecting"),
        ('{"a": Infinity}', "Infinity"),
        ('{"a": "b\nc"}', "Invalid control character"),
        ("{} // a\n {}", "Extra data"),
        ("{} /* a", "Extra data"),
        ('{"a": ' + "[" * 99999, "nested too deeply"),
    ],
)
def test_text_without_room_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        inserted(text)


@pytest.mark.parametrize("text", ["{} // a", "/* a */ {}", '{"a": 1,}', '{"a": [1,]}'])
def test_comments_and_trailing_commas_are_errors_where_a_client_does_not_read_them(text: str) -> None:
    assert JsonText(text, comments=True).value() is not None
    with pytest.raises(json.JSONDecodeError):
        JsonText(text, comments=False).value()


def random_object(pick: random.Random, depth: int) -> dict[str, Any]:
    keys = pick.sample(["servers", "a", "ü b", "// c", '"{', "x,}", "\\"], pick.randrange(5))
    return {key: random_value(pick, depth) for key in keys}


def random_value(pick: random.Random, depth: int) -> Any:
    if depth and pick.random() < 0.6:
        return random_object(pick, depth - 1)
    return pick.choice([1, -2.5, None, True, "/* s */", "},", [], [1, {"k": []}], "\\", '\\"'])


def random_layout(pick: random.Random, value: object) -> str:
    """The value as text, with blanks, comments and trailing commas wherever they may stand."""
    gaps = ["", " ", "\n", "\n    ", "\t", "/* , */", "/* \n } */", "// } \n", "\r\n  "]
    gap, comma = lambda: pick.choice(gaps), lambda: pick.choice(["", ","])
    if not isinstance(value, dict) or not value:
        return gap() + json.dumps(value, ensure_ascii=pick.random() < 0.5) + gap()
    members = [f"{gap()}{json.dumps(key)}{gap()}:{random_layout(pick, value[key])}" for key in value]
    return gap() + "{" + ",".join(members) + comma() + gap() + "}" + gap()


def test_insertion_into_any_layout_adds_the_value_and_loses_nothing() -> None:
    pick, done = random.Random(7), 0
    while done < 500:
        root = random_object(pick, 3)
        text = random_layout(pick, root)
        assert JsonText(text, comments=True).value() == root
        if isinstance(root.setdefault("servers", {}), dict):
            root["servers"]["rookery"] = {"new": [1]}
            assert JsonText(inserted(text, {"new": [1]}), comments=True).value() == root
            done += 1
