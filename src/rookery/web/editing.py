"""Texts of others inside the fields of a form: whole, since what is cut there would be lost when it is saved. Pure."""

from markupsafe import Markup, escape

from rookery.web.hidden_marks import spelled_out

LONGEST_FIELD = 200_000
"""More than a tool takes in one field: a text that is cut here cannot be saved by mistake."""


def editable(text: object, longest: int = LONGEST_FIELD) -> Markup:
    """The text for a field: nothing that a tool takes is cut, and what would deceive a reader is spelled out."""
    return escape(spelled_out("" if text is None else str(text)[:longest]))
