"""The description of the interface for programs, made from the tools that it calls."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rookery import __version__
from rookery.core.registry import Registry
from rookery.server.api.operations import OPERATIONS, Operation

JsonObject = dict[str, Any]
_PLACE = re.compile(r"\{(\w+)\}")
ERROR: JsonObject = {
    "description": "What went wrong, in words.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_EVENTS = (
    "Server-sent events: `snapshot` (how the session stands), then every event after the one that `Last-Event-ID` or "
    "`after` names, each once and in order, then what happens. The id of an event is SESSION:NUMBER. Comes back with a "
    "comment every 15 seconds; a client that does not read for 30 seconds is let go."
)


def description(registry: Registry) -> Callable[[Request], Awaitable[Response]]:
    """Answers with the OpenAPI document. It says nothing that the documentation does not."""
    made: list[JsonObject] = []

    async def answer(request: Request) -> Response:
        if not made:
            made.append(document(registry))
        return JSONResponse(made[0], headers={"Cache-Control": "max-age=300"})

    return answer


def document(registry: Registry) -> JsonObject:
    """The OpenAPI 3.1 document."""
    paths: dict[str, JsonObject] = {}
    parts: JsonObject = {"Error": _ERROR_SCHEMA}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(registry, each, parts)
    session = "/api/sessions/{session_id}"
    paths.setdefault(session, {})["get"] = _plain(session, "How a session stands, its messages and what it asks")
    paths[f"{session}/events"] = {"get": _stream(f"{session}/events")}
    for what, (summary, properties) in _ANSWERS.items():
        path = f"{session}/{what}"
        schema = {"type": "object", "properties": properties}
        paths[path] = {"post": {**_plain(path, summary), "requestBody": _body(schema)}}
    for path, summary in (
        ("/api/transcripts", "Transcripts of Claude Code on this machine"),
        ("/api/transcripts/{transcript_id}", "One transcript"),
    ):
        paths[path] = {"get": _plain(path, summary)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Rookery", "version": __version__, "summary": "Sessions of agents"},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": parts,
        },
    }


_IDS: JsonObject = {
    "ask_id": {"type": "string"},
    "ask_ids": {"type": "array", "items": {"type": "string"}, "description": "Several at once"},
}
_ANSWERS: dict[str, tuple[str, JsonObject]] = {
    "approve": (
        "Approve what the agent wants to do",
        {**_IDS, "always": {"type": "boolean", "description": "Also the next times, for 30 days"}},
    ),
    "deny": ("Refuse it", {**_IDS, "reason": {"type": "string", "description": "Told to the agent"}}),
    "answer": (
        "Answer a question of the agent",
        {
            "ask_id": {"type": "string"},
            "answer": {"type": "string", "description": "The number of an option, or any text"},
            "answers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "By ask_id"},
        },
    ),
}
_ERROR_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": "string"},
                "retryable": {"type": "boolean"},
            },
            "required": ["code", "message", "retryable"],
        }
    },
    "required": ["error"],
}


def _operation(registry: Registry, each: Operation, parts: JsonObject) -> JsonObject:
    tool = registry.require(each.tool)
    given = _schema(tool.input, parts)
    in_path = set(_PLACE.findall(each.path))
    fields: JsonObject = {name: field for name, field in given.get("properties", {}).items() if name not in in_path}
    told = _plain(each.path, tool.title, each.status)
    told |= {"operationId": each.tool, "description": tool.description}
    told["responses"][str(each.status)]["content"] = {"application/json": {"schema": _schema(tool.output, parts)}}
    if each.method == "GET":
        told["parameters"] += [{"name": name, "in": "query", "schema": field} for name, field in fields.items()]
    elif fields:
        required = [name for name in given.get("required", []) if name in fields]
        told["requestBody"] = _body({"type": "object", "properties": fields, "required": required})
    return told


def _schema(model: type[BaseModel], parts: JsonObject) -> JsonObject:
    """The schema of a model; the models that it names are put among the `parts` of the document."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    parts |= schema.pop("$defs", {})
    return schema


def _plain(path: str, summary: str, status: int = 200) -> JsonObject:
    places = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in _PLACE.findall(path)
    ]
    return {
        "summary": summary,
        "parameters": places,
        "responses": {str(status): {"description": "Done"}, "default": ERROR},
    }


def _stream(path: str) -> JsonObject:
    told = _plain(path, "What happens in a session")
    told["description"] = _EVENTS
    told["parameters"] += [
        {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
        {"name": "after", "in": "query", "schema": {"type": "string"}},
    ]
    told["responses"]["200"]["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    return told


def _body(schema: JsonObject) -> JsonObject:
    return {"content": {"application/json": {"schema": schema}}}
