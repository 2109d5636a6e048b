"""What a handler can ask its client, and what comes back."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rookery.core.errors import ServiceUnavailable


@dataclass(frozen=True, slots=True)
class Elicit:
    """Ask the person at the client. `schema` is the JSON Schema of a flat object that they fill in."""

    message: str
    schema: dict[str, Any]
    key: str | None = None
    capability: ClassVar[str] = "elicitation"


@dataclass(frozen=True, slots=True)
class Sample:
    """Let the client's model answer."""

    prompt: str
    max_tokens: int = 1000
    system: str | None = None
    key: str | None = None
    capability: ClassVar[str] = "sampling"


@dataclass(frozen=True, slots=True)
class Roots:
    """Ask which folders the client works in."""

    key: str | None = None
    capability: ClassVar[str] = "roots"


Question = Elicit | Sample | Roots


@dataclass(frozen=True, slots=True)
class Elicited:
    """What the person did, and what they filled in if they accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the model said."""

    text: str
    model: str = ""
    stop_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Root:
    """One folder, as an address such as `file:///home/ada/project`."""

    uri: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Rooted:
    """The folders of the client."""

    roots: tuple[Root, ...] = ()


Answer = Elicited | Sampled | Rooted


class Answers:
    """The answers in the order of their questions, by position and by the key of a question that has one."""

    __slots__ = ("_answers", "_keys")

    def __init__(self, answers: Iterable[Answer], questions: Iterable[Question]) -> None:
        self._answers: list[Any] = list(answers)
        self._keys = {question.key: number for number, question in enumerate(questions) if question.key}

    def __iter__(self) -> Iterator[Any]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __getitem__(self, key: int | str) -> Any:
        return self._answers[self._keys[key] if isinstance(key, str) else key]


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """What is known of the client of a call, and what it can be asked."""

    name: str = ""
    version: str = ""
    protocol: str = ""
    elicitation: bool = False
    sampling: bool = False
    roots: bool = False


NO_CLIENT = ClientInfo()


class MissingCapability(ServiceUnavailable):
    """The client cannot be asked what the handler asks. `capability` is the one that it would have to declare."""

    retryable = False

    def __init__(self, message: str, *, hint: str, capability: str) -> None:
        super().__init__(message, hint=hint)
        self.capability = capability


WITHOUT = {
    "elicitation": ("this client cannot be asked questions", "use ask_owner, or decide yourself"),
    "sampling": ("this client offers no model to sample from", "use a client that does"),
    "roots": ("this client does not say which folders it works in", "name the folder in an argument"),
}


def missing(capability: str) -> MissingCapability:
    """What a handler is told that asks a client for more than it offers."""
    message, hint = WITHOUT[capability]
    return MissingCapability(message, hint=hint, capability=capability)


class InputRequired(BaseException):
    """Not a failure: the client has to answer first and then sends the same request again.

    No error, so that a handler that catches errors lets it through.
    """

    code = "INPUT_REQUIRED"

    def __init__(self, questions: dict[str, Question], state: str) -> None:
        super().__init__(f"the client has to answer {', '.join(questions)} first")
        self.questions = questions
        self.state = state
        """The answers so far, for the client to send back."""


def question_keys(questions: Iterable[Question], asked: int = 0) -> list[str]:
    """The key of each question: its own, or its position among all of the call, of which `asked` came before."""
    return [question.key or f"input_{number}" for number, question in enumerate(questions, asked + 1)]
