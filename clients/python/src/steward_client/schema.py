"""JSON Schema from type hints, and JSON values turned into what the hints say.

Supported: str, int, float, bool, None, Any, Literal, Enum, list, tuple[X, ...], dict[str, X], unions, TypedDict,
dataclasses, and `Annotated[X, "what it is for"]`. Anything else is refused where the tool is defined, not where the
model calls it.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from typing_extensions import NotRequired, Required, is_typeddict

JsonSchema = dict[str, Any]
_SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema_of(hint: Any) -> JsonSchema:
    """Gives the schema of a type hint; TypeError for one that has none."""
    if hint is Any:
        return {}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        notes = [note for note in arguments[1:] if isinstance(note, str)]
        return schema_of(arguments[0]) | ({"description": notes[0]} if notes else {})
    if origin in {Required, NotRequired}:
        return schema_of(arguments[0])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in {Union, types.UnionType}:
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if (items := _items(hint)) is not None:
        return {"type": "array", "items": schema_of(items)}
    if (values := _values(hint)) is not None:
        return {"type": "object", "additionalProperties": schema_of(values)}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if (fields := _fields(hint)) is not None:
        return object_schema({name: schema_of(of) for name, (of, _) in fields.items()}, _required(fields))
    raise TypeError(f"no JSON Schema for {hint!r}")


def object_schema(properties: Mapping[str, JsonSchema], required: list[str]) -> JsonSchema:
    """Gives the schema of an object with exactly these properties."""
    schema: JsonSchema = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = required
    return schema | {"additionalProperties": False}


def convert(hint: Any, value: Any, where: str) -> Any:
    """Checks a JSON value against a hint and gives it as the hint says; ValueError says what is wrong where."""
    if hint is Any:
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Annotated, Required, NotRequired}:
        return convert(arguments[0], value, where)
    if hint in _SCALARS:
        return _scalar(hint, value, where)
    if origin is Literal:
        return _one_of([(choice, choice) for choice in arguments], value, where)
    if origin in {Union, types.UnionType}:
        return _first(arguments, value, where)
    if (items := _items(hint)) is not None:
        _expect(isinstance(value, list), where, "a list")
        converted = [convert(items, item, f"{where}[{index}]") for index, item in enumerate(value)]
        return tuple(converted) if (origin or hint) is tuple else converted
    if (values := _values(hint)) is not None:
        _expect(isinstance(value, dict), where, "an object")
        return {key: convert(values, item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _one_of([(member.value, member) for member in hint], value, where)
    fields = _fields(hint)
    if fields is None:
        raise TypeError(f"no JSON Schema for {hint!r}")
    return hint(**convert_object(fields, value, where))


def convert_object(fields: Mapping[str, tuple[Any, bool]], value: Any, where: str) -> dict[str, Any]:
    """Checks an object: each field has a hint and whether it is required."""
    _expect(isinstance(value, dict), where, "an object")
    if unknown := sorted(value.keys() - fields.keys()):
        raise ValueError(f"{where}: no such argument: {', '.join(unknown)}")
    if missing := [name for name in _required(fields) if name not in value]:
        raise ValueError(f"{where}: missing: {', '.join(missing)}")
    return {name: convert(fields[name][0], item, f"{where}.{name}") for name, item in value.items()}


def _items(hint: Any) -> Any:
    arguments = get_args(hint)
    if hint is list:
        return Any
    if get_origin(hint) is list:
        return arguments[0]
    if get_origin(hint) is tuple and arguments[1:] == (Ellipsis,):
        return arguments[0]
    return None


def _values(hint: Any) -> Any:
    if hint is dict:
        return Any
    if get_origin(hint) is dict and get_args(hint)[0] is str:
        return get_args(hint)[1]
    return None


def _fields(hint: Any) -> dict[str, tuple[Any, bool]] | None:
    """Gives the fields of a TypedDict or a dataclass, each with whether it is required."""
    if is_typeddict(hint):
        required = cast("frozenset[str]", hint.__required_keys__)
        # Where annotations are kept as text, only the resolved hint knows its own wrapper.
        wrapped = {Required: True, NotRequired: False}
        return {
            name: (of, wrapped.get(get_origin(of), name in required))
            for name, of in get_type_hints(hint, include_extras=True).items()
        }
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        none = dataclasses.MISSING
        return {
            field.name: (hints[field.name], field.default is none and field.default_factory is none)
            for field in dataclasses.fields(hint)
            if field.init
        }
    return None


def _required(fields: Mapping[str, tuple[Any, bool]]) -> list[str]:
    return [name for name, (_, required) in fields.items() if required]


def _scalar(hint: Any, value: Any, where: str) -> Any:
    name = _SCALARS[hint]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # JSON has one kind of number; models write 3.0 where 3 is meant.
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    _expect(isinstance(value, hint) and (hint is bool or not isinstance(value, bool)), where, f"of type {name}")
    return value


def _one_of(choices: list[tuple[Any, Any]], value: Any, where: str) -> Any:
    for known, result in choices:
        # True == 1 in Python, but not in JSON.
        if known == value and isinstance(known, bool) == isinstance(value, bool):
            return result
    raise ValueError(f"{where} must be one of {', '.join(repr(known) for known, _ in choices)}")


def _first(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    problems = []
    for hint in hints:
        try:
            return convert(hint, value, where)
        except ValueError as error:
            problems.append(str(error))
    raise ValueError(" or ".join(problems))


def _expect(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise ValueError(f"{where} must be {what}")
