"""What the tools of this domain are given. Validators rather than limits that every agent would read in the schema."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rookery.core.tool import ToolInput

MAX_TITLE = 256
MAX_BODY = 65_000
"""GitHub takes 65,536 characters; the signature and the marker need some of them."""
MAX_LABELS = 20
MAX_LABEL = 50
MAX_LISTED = 100
STATES = ("open", "closed", "all")
EVENTS = ("COMMENT", "APPROVE", "REQUEST_CHANGES")
_OWNER = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"
_REPO = re.compile(rf"{_OWNER}/[A-Za-z0-9_.-]{{1,100}}")
_ACCOUNT = re.compile(_OWNER)
_BRANCH = re.compile(rf"({_OWNER}:)?[^\x00-\x20\x7f~^:?*\[\\]{{1,250}}")


def _repo(text: str) -> str:
    name = text.partition("/")[2]
    if not _REPO.fullmatch(text) or set(name) == {"."} or name.endswith(".git"):
        raise ValueError("must be owner/name, such as acme/shop")
    return text


def _account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise ValueError("must be the name of an account, such as octocat")
    return text


def _branch(text: str) -> str:
    if not _BRANCH.fullmatch(text) or ".." in text or text.startswith("-"):
        raise ValueError("must be the name of a branch")
    return text


def _number(value: Any) -> Any:
    # True would be read as 1.
    if isinstance(value, bool):
        raise ValueError("must be a whole number")
    return value


def _counted(value: int) -> int:
    if not 1 <= value <= 2**31:
        raise ValueError("must be a number from 1 on")
    return value


def _few(value: int) -> int:
    if not 1 <= value <= MAX_LISTED:
        raise ValueError(f"must be from 1 to {MAX_LISTED}")
    return value


def _title(text: str) -> str:
    text = " ".join(text.split())
    if not 1 <= len(text) <= MAX_TITLE:
        raise ValueError(f"must have 1 to {MAX_TITLE} characters")
    return text


def _body(text: str) -> str:
    if len(text) > MAX_BODY:
        raise ValueError(f"must have at most {MAX_BODY} characters")
    return text.strip()


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return _body(text)


def _apart(value: Any) -> Any:
    """Labels are also taken as one text with commas, as GitHub itself writes them."""
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value


def _labels(labels: list[str]) -> list[str]:
    if len(labels) > MAX_LABELS or not all(each.strip() and len(each) <= MAX_LABEL for each in labels):
        raise ValueError(f"must be at most {MAX_LABELS} labels of 1 to {MAX_LABEL} characters")
    return labels


def _state(text: str) -> str:
    if text.lower() not in STATES:
        raise ValueError(f"must be one of {', '.join(STATES)}")
    return text.lower()


def _event(text: str) -> str:
    if text.upper() not in EVENTS:
        raise ValueError(f"must be one of {', '.join(EVENTS)}")
    return text.upper()


def _short(text: str) -> str:
    if len(text) > MAX_LABEL:
        raise ValueError(f"must have at most {MAX_LABEL} characters")
    return text


Repo = Annotated[str, AfterValidator(_repo)]
Account = Annotated[str, AfterValidator(_account)]
Branch = Annotated[str, AfterValidator(_branch)]
Number = Annotated[int, BeforeValidator(_number), AfterValidator(_counted)]
Limit = Annotated[int, BeforeValidator(_number), AfterValidator(_few)]
Title = Annotated[str, AfterValidator(_title)]
Said = Annotated[str, AfterValidator(_said)]
Body = Annotated[str, AfterValidator(_body)]
Labels = Annotated[
    list[str], BeforeValidator(_apart), AfterValidator(_labels), WithJsonSchema({"type": "string"}, mode="validation")
]
State = Annotated[str, AfterValidator(_state)]
Event = Annotated[str, AfterValidator(_event)]
Short = Annotated[str, AfterValidator(_short)]


def _unlisted(*names: str) -> ConfigDict:
    """For fields that are taken but not listed, since every field of a listing is paid for in a context.

    What the seed names is listed; what is here is told where it is of use, and in docs/github.md.
    """

    def leave_out(schema: dict[str, Any]) -> None:
        for name in names:
            schema["properties"].pop(name)

    return ConfigDict(json_schema_extra=leave_out)


class OfRepo(ToolInput):
    repo: Repo = Field(description="owner/name")


class ForkRepo(OfRepo):
    model_config = _unlisted("org")

    org: Account | None = None


class FollowUser(ToolInput):
    username: Account = Field(description="Login")


class ListPrs(OfRepo):
    model_config = _unlisted("limit", "cursor")

    state: State | None = Field(None, description="open (default), closed, all")
    limit: Limit = 10
    cursor: Short | None = None


class ListIssues(OfRepo):
    model_config = _unlisted("limit", "cursor")

    state: State | None = Field(None, description="open (default), closed, all")
    labels: Labels | None = Field(None, description="All of a,b")
    limit: Limit = 30
    cursor: Short | None = None


class GetPrDiff(OfRepo):
    model_config = _unlisted("cursor")

    pr_number: Number = Field(description="Number")
    cursor: Short | None = None


class CreatePr(OfRepo):
    model_config = _unlisted("model")

    title: Title = Field(description="Title")
    body: Body = Field(description="Text")
    head: Branch = Field(description="Branch")
    base: Branch | None = Field(None, description="Default main")
    model: Short | None = None


class CreateIssue(OfRepo):
    model_config = _unlisted("labels", "model")

    title: Title = Field(description="Title")
    body: Body | None = Field(None, description="Text")
    labels: Labels | None = None
    model: Short | None = None


class CommentOnPr(OfRepo):
    model_config = _unlisted("model")

    pr_number: Number = Field(description="Number")
    body: Said = Field(description="Text")
    model: Short | None = None


class ReviewPr(CommentOnPr):
    event: Event | None = Field(None, description="COMMENT (default), APPROVE, REQUEST_CHANGES")
