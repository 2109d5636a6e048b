"""Fixtures that ask the client: the person there, its model, its folders."""

import json
from typing import Any

from pydantic import Field

from rookery.core.context import Context
from rookery.core.prompt import prompt
from rookery.core.questions import Elicit, Question, Roots, Sample
from rookery.core.tool import NoInput, ToolInput
from rookery_conformance.fixture import Said, fixture


def form(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


NAME = form({"name": {"type": "string"}}, "name")
CONFIRMATION = form({"ok": {"type": "boolean"}}, "ok")


class TestSampling(ToolInput):
    prompt: str = Field(max_length=1000, description="What the model is asked.")


@fixture("external")
async def test_sampling(ctx: Context, args: TestSampling) -> Said:
    """Asks the client's model."""
    return Said(text=f"LLM response: {await ctx.sample(args.prompt, max_tokens=100)}")


@fixture("external")
async def test_missing_capability(ctx: Context, args: NoInput) -> Said:
    """Asks a model that the client may not have."""
    return Said(text=await ctx.sample("Say hello", max_tokens=100))


async def _elicited(ctx: Context, message: str, schema: dict[str, Any]) -> Said:
    [answer] = await ctx.ask(Elicit(message, schema))
    return Said(text=f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content or {})}")


class TestElicitation(ToolInput):
    message: str = Field(max_length=1000, description="What the person is asked.")


@fixture("external")
async def test_elicitation(ctx: Context, args: TestElicitation) -> Said:
    """Asks the person for a name and an address."""
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    return await _elicited(ctx, args.message, form(fields, *fields))


@fixture("external")
async def test_elicitation_sep1034_defaults(ctx: Context, args: NoInput) -> Said:
    """Asks with a default for every kind of field."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await _elicited(ctx, "Please review", form(fields))


@fixture("external")
async def test_elicitation_sep1330_enums(ctx: Context, args: NoInput) -> Said:
    """Asks with every kind of choice."""
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await _elicited(ctx, "Please choose", form(fields))


@fixture("external")
async def test_streaming_elicitation(ctx: Context, args: NoInput) -> Said:
    """Reports how far it is and then asks the person."""
    ctx.progress(50, 100)
    return await _elicited(ctx, "What is your name?", NAME)


@fixture("external")
async def test_input_required_result_elicitation(ctx: Context, args: NoInput) -> Said:
    """Asks the person for a name."""
    answer = await ctx.elicit("What is your name?", NAME, key="user_name")
    return Said(text=f"Hello, {(answer or {}).get('name', 'stranger')}!")


@fixture("external")
async def test_input_required_result_sampling(ctx: Context, args: NoInput) -> Said:
    """Asks the model for a capital."""
    said = await ctx.sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return Said(text=f"The model said: {said}")


@fixture("external")
async def test_input_required_result_list_roots(ctx: Context, args: NoInput) -> Said:
    """Asks for the client's folders."""
    return Said(text=f"The folders: {[root.uri for root in await ctx.roots(key='client_roots')]}")


@fixture("external")
async def test_input_required_result_request_state(ctx: Context, args: NoInput) -> Said:
    """Asks for a confirmation."""
    await ctx.elicit("Please confirm", CONFIRMATION, key="confirm")
    return Said(text="state-ok")


@fixture("external")
async def test_input_required_result_tampered_state(ctx: Context, args: NoInput) -> Said:
    """Asks for a confirmation, which a client may try to forge."""
    await ctx.elicit("Please confirm", CONFIRMATION, key="confirm")
    return Said(text="state-ok")


@fixture("external")
async def test_input_required_result_multiple_inputs(ctx: Context, args: NoInput) -> Said:
    """Asks three things at once."""
    answers = await ctx.ask(
        Elicit("What is your name?", NAME, key="user_name"),
        Sample("Generate a greeting", max_tokens=50, key="greeting"),
        Roots(key="client_roots"),
    )
    return Said(text=f"All {len(answers)} inputs received.")


@fixture("external")
async def test_input_required_result_multi_round(ctx: Context, args: NoInput) -> Said:
    """Asks one thing after the other."""
    first = await ctx.elicit("Step 1: What is your name?", NAME, key="step1")
    colour = form({"color": {"type": "string"}}, "color")
    second = await ctx.elicit("Step 2: What is your favorite color?", colour, key="step2")
    return Said(text=f"{(first or {}).get('name')} likes {(second or {}).get('color')}.")


@fixture("external")
async def test_input_required_result_capabilities(ctx: Context, args: NoInput) -> Said:
    """Asks whatever this client can be asked."""
    questions: list[Question] = []
    if ctx.client.sampling:
        questions.append(Sample("Say hello", max_tokens=50, key="sample"))
    if ctx.client.elicitation:
        questions.append(Elicit("What is your name?", NAME, key="ask"))
    return Said(text=f"{len(await ctx.ask(*questions))} answers.")


@prompt(title="Asking prompt", right="test_simple_text")
async def test_input_required_result_prompt(ctx: Context, args: NoInput) -> str:
    """A prompt that asks the person first."""
    context = form({"context": {"type": "string"}}, "context")
    answer = await ctx.elicit("What context should the prompt use?", context, key="user_context")
    return f"Use this context: {(answer or {}).get('context')}"
