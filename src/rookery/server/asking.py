"""Questions to the client of a call: requests to it before 2026-07-28, an unfinished answer from then on."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

from rookery.core.errors import ServiceUnavailable
from rookery.core.questions import (
    Answer,
    Elicit,
    Elicited,
    InputRequired,
    Question,
    Root,
    Rooted,
    Sample,
    Sampled,
)

Ctx = ServerRequestContext[Any, Any]
WireQuestion = types.ElicitRequest | types.CreateMessageRequest | types.ListRootsRequest


def wire_question(question: Question) -> WireQuestion:
    """The question as a request of the protocol."""
    if isinstance(question, Elicit):
        form = types.ElicitRequestFormParams(message=question.message, requested_schema=question.schema)
        return types.ElicitRequest(params=form)
    if isinstance(question, Sample):
        said = types.TextContent(type="text", text=question.prompt)
        return types.CreateMessageRequest(
            params=types.CreateMessageRequestParams(
                messages=[types.SamplingMessage(role="user", content=said)],
                max_tokens=question.max_tokens,
                system_prompt=question.system,
            )
        )
    return types.ListRootsRequest()


def _kind(question: Question) -> type[BaseModel]:
    if isinstance(question, Elicit):
        return types.ElicitResult
    return types.CreateMessageResultWithTools if isinstance(question, Sample) else types.ListRootsResult


def _answer(question: Question, given: Any) -> Answer | None:
    """The answer in what a client sent, or None if that is no answer to this question."""
    try:
        found = _kind(question).model_validate(given, by_name=False)
    except ValidationError:
        return None
    if isinstance(found, types.ElicitResult):
        return Elicited(found.action, cast("dict[str, Any] | None", found.content))
    if isinstance(found, types.ListRootsResult):
        return Rooted(tuple(Root(str(root.uri), root.name) for root in found.roots))
    reply = cast(types.CreateMessageResultWithTools, found)
    blocks = reply.content if isinstance(reply.content, list) else [reply.content]
    text = "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))
    return Sampled(text, reply.model, reply.stop_reason)


class Rounds:
    """The answers that a client of 2026-07-28 has given so far: those of this request, and those it carries along."""

    __slots__ = ("_given",)

    def __init__(self, responses: Mapping[str, Any] | None, state: str | None) -> None:
        self._given: dict[str, Any] = {}
        for key, response in (responses or {}).items():
            self._given[key] = response.model_dump(by_alias=True, mode="json", exclude_none=True)
        # An answer that was given stands: the handler has gone on from it.
        self._given |= _carried(state)

    def ask(self, questions: Sequence[Question], keys: Sequence[str]) -> list[Answer]:
        """The answers, or InputRequired with what has yet to be answered."""
        answers = [_answer(question, self._given.get(key)) for question, key in zip(questions, keys, strict=True)]
        open_ones = {
            key: question for key, question, answer in zip(keys, questions, answers, strict=True) if answer is None
        }
        if not open_ones:
            return cast("list[Answer]", answers)
        so_far = {key: value for key, value in self._given.items() if key not in open_ones}
        raise InputRequired(open_ones, json.dumps({"answers": so_far}, separators=(",", ":")))


def _carried(state: str | None) -> dict[str, Any]:
    """The answers in the state that the client sent back. Sealed by us, so it is what we wrote."""
    if state is None:
        return {}
    value: Any = json.loads(state)
    return cast("dict[str, Any]", value["answers"])


def input_required(needed: InputRequired) -> types.InputRequiredResult:
    """The unfinished answer that asks the client."""
    requests = {key: wire_question(question) for key, question in needed.questions.items()}
    return types.InputRequiredResult(input_requests=cast(Any, requests), request_state=needed.state)


class AnyResult(BaseModel):
    """Takes whatever a client answers."""

    model_config = {"extra": "allow"}


async def ask_now(ctx: Ctx, questions: Sequence[Question]) -> list[Answer]:
    """Send the questions, all at once, and wait for the answers. If one fails, the others are taken back."""
    if len(questions) == 1:
        return [await _ask_one(ctx, questions[0])]
    tasks = [asyncio.ensure_future(_ask_one(ctx, question)) for question in questions]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ask_one(ctx: Ctx, question: Question) -> Answer:
    request = wire_question(question)
    about = ServerMessageMetadata(related_request_id=ctx.request_id)
    given = await answered(ctx.session.send_request(request, _kind(question), metadata=about))
    answer = _answer(question, given.model_dump(by_alias=True, mode="json", exclude_none=True))
    if answer is None:
        raise ServiceUnavailable("the client's answer makes no sense", hint="go on without it")
    return answer


async def answered(asking: Any) -> Any:
    """What a client answers; its refusal, its nonsense and a connection that cannot carry questions are errors."""
    try:
        return await asking
    except NoBackChannelError as error:
        raise ServiceUnavailable(
            "this connection cannot carry questions to the client", hint="use one with a session and event streams"
        ) from error
    except MCPError as error:
        raise ServiceUnavailable(f"the client refused: {error.error.message}", hint="go on without it") from error
    except ValidationError as error:
        raise ServiceUnavailable("the client's answer makes no sense", hint="go on without it") from error
