"""A form that was refused: what was sent and why not, so that its page shows both beside each other."""

from dataclasses import dataclass, field
from typing import Any

from rookery.core.errors import RookeryError
from rookery.web.visit import Visit


@dataclass(frozen=True, slots=True)
class RefusedForm:
    """`name` says which of a page's forms it was. Empty for a page on which none was refused."""

    name: str = ""
    message: str = ""
    hint: str = ""
    sent: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    status: int = 200

    def value(self, form: str, field_name: str, current: Any) -> Any:
        """What a field has to show: what was sent, if this form was refused, else what is so now."""
        if form != self.name:
            return current
        sent = self.sent.get(field_name)
        return sent[0] if sent else ""

    def checked(self, form: str, field_name: str, value: str, current: bool) -> bool:
        """Whether a box has to be checked."""
        return value in self.sent.get(field_name, []) if form == self.name else current


def refused_form(visit: Visit, name: str, error: RookeryError, *, without: frozenset[str] = frozenset()) -> RefusedForm:
    """The form that a person has sent and that `error` refuses. Fields in `without` are secrets and not repeated."""
    sent = {key: visit.words(key) for key in visit.form if key != "csrf" and key not in without}
    return RefusedForm(name, error.message, error.hint or "", sent, error.http)
