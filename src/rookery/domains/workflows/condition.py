"""The language of condition nodes: one comparison, one `includes`, or one path. It is read, never run.

    true · false · path · path.includes('text') · path OP literal      with OP one of === !== == != >= <= > <

A literal is text in quotes, a number, true, false or null. `===` compares kind and value; `==` also takes a number or
a truth for its text. An order is between two numbers (or their texts) or between two texts. A path on its own is false
for false, 0, null and empty text. Whatever the operator, a condition on a path that leads nowhere is false.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from rookery.domains.workflows.template import MISSING, cut, look_up

DEFAULT_EXPRESSION = "true"
MAX_EXPRESSION = 1_000

NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*"
NUMBER = r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,16})?"
TEXT = r"'[^']*'|\"[^\"]*\""
LITERAL = re.compile(rf"(?:(?P<text>{TEXT})|(?P<number>{NUMBER})|(?P<word>true|false|null))\Z")
# Blanks around the literal are left to `strip`: three repeats in a row would take the cube of the length to fail.
INCLUDES = re.compile(rf"(?P<path>{NAME})\.includes\((?P<literal>.*)\)\Z", re.DOTALL)
COMPARES = re.compile(rf"(?P<path>{NAME})\s*(?P<op>===|!==|==|!=|>=|<=|>|<)\s*(?P<literal>.+)\Z", re.DOTALL)
PATH = re.compile(rf"{NAME}\Z")
WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}

Operator = Literal["is", "includes", "===", "!==", "==", "!=", ">=", "<=", ">", "<"]
Value = str | int | float | bool | None
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class ConditionError(ValueError):
    """The expression is none of the forms of the language."""


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression that was read. Without a path it is the truth `literal` itself."""

    path: str | None
    op: Operator
    literal: Value

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is so of these values. It never fails."""
        if self.path is None:
            return bool(self.literal)
        value = look_up(values, self.path)
        if value is MISSING:
            return False
        if self.op == "is":
            return _is_true(value)
        if self.op == "includes":
            return _includes(value, self.literal)
        if self.op in ("===", "!=="):
            return _same(value, self.literal) == (self.op == "===")
        if self.op in ("==", "!="):
            return _alike(value, self.literal) == (self.op == "==")
        return _ordered(value, self.op, self.literal)


def parse(expression: str) -> Condition:
    """Read an expression. ConditionError says what is not of the language; no input is evaluated as code."""
    text = expression.strip()
    if not text:
        raise ConditionError("the condition is empty")
    if len(text) > MAX_EXPRESSION:
        raise ConditionError(f"the condition is longer than {MAX_EXPRESSION} characters")
    if text in ("true", "false"):
        return Condition(None, "is", text == "true")
    if found := INCLUDES.match(text):
        return Condition(found["path"], "includes", _literal(found["literal"].strip()))
    if found := COMPARES.match(text):
        return Condition(found["path"], cast(Operator, found["op"]), _literal(found["literal"]))
    if PATH.match(text) and text not in WORDS:
        return Condition(text, "is", None)
    raise ConditionError(
        f"the condition {cut(text)!r} is none of: true, false, a path, path.includes('text'), path OP literal"
    )


def _literal(text: str) -> Value:
    found = LITERAL.match(text)
    if found is None:
        raise ConditionError(f"{cut(text)!r} is not a text in quotes, a number, true, false or null")
    if found["text"] is not None:
        return text[1:-1]
    if found["number"] is not None:
        return float(text) if "." in text else int(text)
    return WORDS[text]


def _is_true(value: Any) -> bool:
    return value is not None and value is not False and value != "" and not (_number(value) and value == 0)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(value: Any, literal: Value) -> bool:
    """Equal in kind and value. A whole number and a fraction are of one kind, a truth and a number are not."""
    if _number(value) and _number(literal):
        return value == literal
    return type(cast(object, value)) is type(literal) and value == literal


def _alike(value: Any, literal: Value) -> bool:
    if _same(value, literal):
        return True
    numbers = _as_number(value), _as_number(literal)
    if None not in numbers:
        return numbers[0] == numbers[1]
    truths = {True: "true", False: "false"}
    return any(
        isinstance(one, bool) and truths[one] == other
        for one, other in ((value, literal), (literal, value))
        if isinstance(other, str)
    )


def _includes(value: Any, literal: Value) -> bool:
    if isinstance(value, str):
        return isinstance(literal, str) and literal in value
    return isinstance(value, list) and any(_same(item, literal) for item in cast("list[Any]", value))


def _ordered(value: Any, op: str, literal: Value) -> bool:
    if isinstance(value, str) and isinstance(literal, str):
        return ORDERS[op](value, literal)
    one, other = _as_number(value), _as_number(literal)
    return one is not None and other is not None and ORDERS[op](one, other)


def _as_number(value: Any) -> int | float | None:
    """The number that a value is or is the text of, else None."""
    if _number(value):
        return cast("int | float", value)
    if isinstance(value, str) and re.fullmatch(NUMBER, value.strip()):
        return float(value)
    return None
