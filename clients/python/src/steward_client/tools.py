"""Tools that run at the client: defined by decorating a function, called when the model asks and the person agrees."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from getpass import getpass
from pathlib import Path
from typing import Any, get_type_hints, overload

from . import schema
from .contract import agent, common, session
from .events import Completed, PendingCall, SecretRequested

_ARGS = re.compile(r"^\s*(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_SECTION = re.compile(r"^\s*(?:Returns|Raises|Yields|Examples?|Notes?):\s*$", re.MULTILINE)
_MOST_VARIABLES = 2000
_DECLINED = "The person declined this call. Do not try it another way; ask or go on without it."


@dataclass(frozen=True)
class ToolOutput:
    """A result with more to say than its text."""

    content: str
    """Text for the model."""
    is_error: bool = False
    """Whether the call failed."""
    integrity: common.Integrity = common.INTEGRITY_UNSPECIFIED
    """Where the content is less trustworthy than the tool's output is in general."""
    source: str = ""
    """Where external content came from, for example a URL."""


@dataclass(frozen=True)
class Tool:
    """A function that the model may call."""

    name: str
    description: str
    input_schema: schema.JsonSchema
    function: Callable[..., Any]
    integrity: common.Integrity = common.INTEGRITY_UNSPECIFIED
    fields: Mapping[str, tuple[Any, bool]] = field(default_factory=dict)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Calls the function as if it were not decorated."""
        return self.function(*arguments, **named)

    def definition(self) -> session.ClientTool:
        """Gives the tool as the contract wants it. The same function gives the same bytes."""
        return session.ClientTool(
            name=self.name,
            description=self.description,
            input_schema_json=json.dumps(self.input_schema, ensure_ascii=False, separators=(",", ":")),
            integrity=self.integrity,
        )


@dataclass(frozen=True)
class ToolCall:
    """A call that a person may approve: the tool is known and the arguments fit it."""

    call_id: str
    tool: Tool
    arguments: Mapping[str, Any]
    """As the function will get them."""
    arguments_json: str
    """As the model wrote them."""


Approve = Callable[[ToolCall], bool]
"""Asked before each call; False declines it, and the model is told so."""


def approve_all(_call: ToolCall) -> bool:
    """Agrees to every call: for tools that can do no harm."""
    return True


@dataclass(frozen=True)
class TurnResult:
    """A turn that came to its final answer."""

    turn: str
    """Turn id."""
    text: str
    """The final answer."""
    completed: Completed
    """All that came with it."""
    calls: tuple[PendingCall, ...]
    """Calls that the client answered."""


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, integrity: common.Integrity = ...
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    integrity: common.Integrity = common.INTEGRITY_UNSPECIFIED,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a client tool of a function.

    Name and description are the function's own; the schema comes from its type hints, and what each argument is for
    from the `Args:` section of its docstring or from `Annotated[type, "text"]`. TypeError when an argument has no hint,
    or one that has no JSON Schema.
    """

    def make(function: Callable[..., Any]) -> Tool:
        text, notes = _documented(inspect.getdoc(function) or "")
        fields = _fields(function)
        properties = {}
        for argument, (hint, _) in fields.items():
            described = {"description": notes[argument]} if argument in notes else {}
            properties[argument] = described | schema.schema_of(hint)
        required = [argument for argument, (_, is_required) in fields.items() if is_required]
        return Tool(
            name=name or function.__name__,
            description=description or text,
            input_schema=schema.object_schema(properties, required),
            function=function,
            integrity=integrity,
            fields=fields,
        )

    return make if function is None else make(function)


def _fields(function: Callable[..., Any]) -> dict[str, tuple[Any, bool]]:
    hints = get_type_hints(function, include_extras=True)
    fields = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(f"{function.__name__}: {parameter} cannot be given by name")
        if parameter.name not in hints:
            raise TypeError(f"{function.__name__}: {parameter.name} has no type hint")
        fields[parameter.name] = (hints[parameter.name], parameter.default is parameter.empty)
    return fields


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """Splits a docstring into what the tool does and what each argument is for."""
    found = _ARGS.search(text)
    end = _SECTION.search(text)
    if found is None:
        return text[: end.start() if end else None].strip(), {}
    section = text[found.end() :]
    if later := _SECTION.search(section):
        section = section[: later.start()]
    notes: dict[str, str] = {}
    current = ""
    for line in section.splitlines():
        if opening := re.match(r"^\s{2,}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$", line):
            current = opening[1]
            notes[current] = opening[2].strip()
        elif current and line.strip():
            notes[current] = f"{notes[current]} {line.strip()}".strip()
    return text[: min(found.start(), end.start() if end else found.start())].strip(), notes


class Toolbox:
    """The tools of one conversation: reads calls, and makes results of what came of them."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {known.name: known for known in tools}
        if len(self._tools) != len(tools):
            raise ValueError("two tools have the same name")

    def read(self, pending: PendingCall) -> ToolCall | agent.ToolResult:
        """Gives the call, or at once the result when it cannot be one."""
        known = self._tools.get(pending.tool)
        if known is None:
            return _failed(pending.call_id, f"This client has no tool {pending.tool!r}.")
        try:
            arguments = schema.convert_object(known.fields, pending.arguments, "arguments")
        except ValueError as error:
            return _failed(pending.call_id, f"The arguments do not fit: {error}")
        return ToolCall(pending.call_id, known, arguments, pending.arguments_json)


def declined(call: ToolCall) -> agent.ToolResult:
    """Tells the model that the person said no."""
    return _failed(call.call_id, _DECLINED)


def raised(call: ToolCall, error: Exception) -> agent.ToolResult:
    """Tells the model what the function raised, in one line."""
    return _failed(call.call_id, f"{type(error).__name__}: {error}")


def returned(call: ToolCall, value: Any) -> agent.ToolResult:
    """Makes a result of what the function returned: text as it is, everything else as JSON."""
    if isinstance(value, ToolOutput):
        return agent.ToolResult(
            call_id=call.call_id,
            content=value.content,
            is_error=value.is_error,
            integrity=value.integrity,
            source=value.source,
        )
    if isinstance(value, str):
        return agent.ToolResult(call_id=call.call_id, content=value)
    try:
        return agent.ToolResult(call_id=call.call_id, content=json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError) as error:
        return raised(call, error)


def _failed(call_id: str, content: str) -> agent.ToolResult:
    return agent.ToolResult(call_id=call_id, content=content, is_error=True)


def environment() -> session.Environment:
    """Says where tools run: on this machine, in this folder."""
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, sys.platform)
    shell = Path(os.environ.get("SHELL", "")).name
    # Names only: a skill that needs one which is not here has it asked for.
    variables = sorted(name for name in os.environ if name.isprintable())[:_MOST_VARIABLES]
    return session.Environment(
        os=system,
        home=str(Path.home()),
        working_dir=str(Path.cwd()),
        shell=shell,
        variables=variables,
        variables_known=True,
    )


def ask_for_secrets(event: object, ask: Callable[[str], str] = getpass) -> tuple[str, ...]:
    """Asks for what an event says that a skill needs, and sets it for this process and what it starts.

    Give it as `on_event`, or call it with each event; any other event is passed over. An empty answer goes on without,
    and what is set already is not asked for. Gives the names that were set; no value is printed or sent.
    """
    if not isinstance(event, SecretRequested):
        return ()
    done = []
    for variable in event.variables:
        if variable.name in os.environ:
            continue
        value = ask(f"{variable.prompt or variable.name} ({variable.name}, not shown): ")
        if value:
            os.environ[variable.name] = value
            done.append(variable.name)
    return tuple(done)
