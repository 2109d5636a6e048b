"""JSON Schemas as small and portable as clients need them.

Every byte of a listing is paid for in an agent's context, and some clients follow neither `$ref` nor a union with
null. Titles go, references are put in place, and an optional field is shown by its type alone.
"""

from typing import Any, Literal, cast

from pydantic import BaseModel

Json = dict[str, Any]


def compact_schema(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> Json:
    """The schema of `model` without titles, references and null branches. Recursive models are refused.

    That arguments which are not named are refused is not told of each model: it holds for all. Of a result only the
    outline is told: which fields there are.
    """
    raw = model.model_json_schema(mode=mode)
    raw.pop("description", None)  # the class's docstring is for us
    shrunk = cast(Json, _shrink(raw, raw.get("$defs", {}), (), mode == "validation"))
    return shrunk if mode == "validation" else {"type": "object", **_outlined(shrunk)}


def _shrink(node: Any, defs: Json, path: tuple[str, ...], optional_is_absent: bool) -> Any:
    if isinstance(node, list):
        return [_shrink(item, defs, path, optional_is_absent) for item in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    node = cast(Json, node)
    if "$ref" in node:
        name = cast(str, node["$ref"]).rsplit("/", 1)[-1]
        if name in path:
            raise TypeError(f"{name} refers to itself; tool schemas cannot be recursive")
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _shrink({**defs[name], **rest}, defs, (*path, name), optional_is_absent)
    out = {
        key: _properties(value, defs, path, optional_is_absent)
        if key == "properties"
        else value
        if key in ("enum", "const", "default", "required", "examples")
        else _shrink(value, defs, path, optional_is_absent)
        for key, value in node.items()
        if key not in ("title", "$defs") and (key, value) != ("additionalProperties", False)
    }
    return _without_null(out) if optional_is_absent else out


def _properties(properties: Json, defs: Json, path: tuple[str, ...], optional_is_absent: bool) -> Json:
    return {name: _shrink(value, defs, path, optional_is_absent) for name, value in properties.items()}


def _without_null(node: Json) -> Json:
    """`anyOf [X, null] default null` says no more to a caller than an optional X."""
    branches = cast("list[Json] | None", node.get("anyOf"))
    if branches is None or {"type": "null"} not in branches or node.get("default", ...) is not None:
        return node
    kept = [branch for branch in branches if branch != {"type": "null"}]
    rest = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
    return {**kept[0], **rest} if len(kept) == 1 else {**rest, "anyOf": kept}


def _outlined(node: Json) -> Json:
    """The names of the fields and how they nest. A type is paid for in context, and a reader sees it in the value."""
    if "properties" in node:
        fields = cast("dict[str, Json]", node["properties"])
        return {"properties": {name: _outlined(value) for name, value in fields.items()}}
    inner = _outlined(cast(Json, node["items"])) if isinstance(node.get("items"), dict) else {}
    return {"items": inner} if inner else {}
