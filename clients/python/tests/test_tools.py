"""Tools from functions: names, descriptions, schemas, and arguments that fit or do not."""

from __future__ import annotations

import enum
import json
import os
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from typing_extensions import NotRequired, TypedDict

from steward_client import Tool, ToolOutput, tool
from steward_client.contract import agent, common
from steward_client.events import PendingCall, from_message
from steward_client.schema import convert, schema_of
from steward_client.tools import Toolbox, ToolCall, ask_for_secrets, environment, returned


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    deep: bool
    limit: NotRequired[int]


@tool(integrity=common.INTEGRITY_WORKSPACE)
def find(
    pattern: str,
    where: Annotated[str, "Folder to look in."] = ".",
    *,
    limit: int | None = None,
) -> list[str]:
    """Finds files.

    Looks below a folder.

    Args:
        pattern: What to look for,
            as a shell pattern.
        limit (int): Most files.

    Returns:
        Paths.
    """
    return [f"{where}/{pattern}"] * (limit or 1)


def test_a_tool_is_described_by_its_function() -> None:
    definition = find.definition()
    assert definition.name == "find"
    assert definition.description == "Finds files.\n\nLooks below a folder."
    assert definition.integrity == common.INTEGRITY_WORKSPACE
    assert json.loads(definition.input_schema_json) == {
        "type": "object",
        "properties": {
            "pattern": {"description": "What to look for, as a shell pattern.", "type": "string"},
            "where": {"type": "string", "description": "Folder to look in."},
            "limit": {"description": "Most files.", "anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }


def test_a_tool_is_still_a_function() -> None:
    assert find("*.py", limit=2) == ["./*.py", "./*.py"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Any, {}),
        (bool, {"type": "boolean"}),
        (list[float], {"type": "array", "items": {"type": "number"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", "blue"]}),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                "required": ["x"],
                "additionalProperties": False,
            },
        ),
        (
            Options,
            {
                "type": "object",
                "properties": {"deep": {"type": "boolean"}, "limit": {"type": "integer"}},
                "required": ["deep"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_hints_have_schemas(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


@pytest.mark.parametrize("hint", [bytes, set[str], dict[int, str], tuple[int, str], object])
def test_hints_without_a_schema_are_refused(hint: Any) -> None:
    with pytest.raises(TypeError, match="no JSON Schema"):
        schema_of(hint)


@pytest.mark.parametrize(
    ("hint", "value", "result"),
    [
        (float, 3, 3.0),
        (int, 3.0, 3),
        (int | None, None, None),
        (list[Point], [{"x": 1}], [Point(1)]),
        (tuple[str, ...], ["a"], ("a",)),
        (Colour, "red", Colour.RED),
        (Literal[1, 2], 2, 2),
        (Options, {"deep": True}, {"deep": True}),
        (dict[str, list[int]], {"a": [1]}, {"a": [1]}),
        (Annotated[str, "note"], "x", "x"),
    ],
)
def test_values_become_what_the_hints_say(hint: Any, value: Any, result: Any) -> None:
    assert convert(hint, value, "it") == result


@pytest.mark.parametrize(
    ("hint", "value", "problem"),
    [
        (str, 3, "it must be of type string"),
        (int, True, "it must be of type integer"),
        (int, 3.5, "it must be of type integer"),
        (bool, 1, "it must be of type boolean"),
        (list[int], [1, "a"], r"it\[1\] must be of type integer"),
        (list[int], "a", "it must be a list"),
        (Colour, "green", "it must be one of 'red', 'blue'"),
        (Literal[1], True, "it must be one of 1"),
        (Point, {"y": 1}, "it: missing: x"),
        (Point, {"x": 1, "z": 1}, "it: no such argument: z"),
        (int | None, "a", "it must be of type integer or it must be of type null"),
    ],
)
def test_values_that_do_not_fit_are_refused(hint: Any, value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        convert(hint, value, "it")


def test_arguments_need_hints_and_names() -> None:
    with pytest.raises(TypeError, match="no type hint"):
        tool(lambda value: value)
    with pytest.raises(TypeError, match="by name"):

        @tool
        def many(*values: int) -> None:
            """Takes many."""


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        Toolbox([find, find])


@pytest.mark.parametrize(
    ("value", "content"),
    [("text", "text"), (None, "null"), ({"ä": [1]}, '{"ä": [1]}')],
)
def test_results_are_text_or_json(value: Any, content: str) -> None:
    result = returned(_call(find), value)
    assert (result.content, result.is_error) == (content, False)


def test_a_result_can_say_where_it_is_from() -> None:
    output = ToolOutput("news", integrity=common.INTEGRITY_EXTERNAL, source="https://example.org")
    result = returned(_call(find), output)
    assert (result.integrity, result.source) == (common.INTEGRITY_EXTERNAL, "https://example.org")


def test_a_result_that_is_no_json_is_an_error() -> None:
    assert returned(_call(find), object()).is_error


def test_arguments_that_are_no_object_are_an_error() -> None:
    answer = Toolbox([find]).read(PendingCall("c", "find", "[1]"))
    assert not isinstance(answer, ToolCall)
    assert "not a JSON object" in answer.content


def _call(used: Tool) -> ToolCall:
    return ToolCall("c1", used, {}, "{}")


def test_what_a_skill_needs_is_asked_for_once_and_set_for_this_process_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # Set and taken away, so that it is taken away again in the end.
    monkeypatch.setenv("STEWARD_TEST_TOKEN", "x")
    monkeypatch.delenv("STEWARD_TEST_TOKEN")
    monkeypatch.setenv("STEWARD_TEST_SET", "there")
    message = agent.TurnEvent(event_id=3, turn="t1")
    message.secret_request.skill = "teams/red/skills/call"
    message.secret_request.variables.add(name="STEWARD_TEST_TOKEN", prompt="The token")
    message.secret_request.variables.add(name="STEWARD_TEST_SET")
    event = from_message(message)
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return "v-4711"

    assert ask_for_secrets(event, ask) == ("STEWARD_TEST_TOKEN",)
    assert os.environ["STEWARD_TEST_TOKEN"] == "v-4711"
    assert asked == ["The token (STEWARD_TEST_TOKEN, not shown): "]
    assert ask_for_secrets(event, ask) == ()
    assert ask_for_secrets(from_message(agent.TurnEvent(steered=agent.Steered(text="x"))), ask) == ()
    told = environment()
    assert told.variables_known
    assert "STEWARD_TEST_SET" in told.variables
    assert "v-4711" not in str(told)
