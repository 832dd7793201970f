"""The events of a turn as types, and the cursor that shows each of them once, however often the stream broke."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from .contract import agent, common


@dataclass(frozen=True)
class Event:
    """What every event has."""

    event_id: int
    """Number in the turn: the cursor for `watch_turn`."""
    turn: str
    """Turn id."""


@dataclass(frozen=True)
class Started(Event):
    """The segment began: the user message or the tool results are durable."""

    segment: int


@dataclass(frozen=True)
class TextDelta(Event):
    """Text of the model, as it comes."""

    text: str


@dataclass(frozen=True)
class TextReplaced(Event):
    """All text of this segment so far is void; this is it now.

    Comes only when the service was lost while the model wrote: what it had not finished was never durable, and it is
    asked again.
    """

    text: str


@dataclass(frozen=True)
class ToolStarted(Event):
    """A tool runs in the service."""

    call_id: str
    tool: str


@dataclass(frozen=True)
class ToolFinished(Event):
    """A tool of the service is done."""

    call_id: str
    tool: str
    is_error: bool
    summary: str


@dataclass(frozen=True)
class ModelRetry(Event):
    """A model call failed and is tried again after so many milliseconds."""

    attempt: int
    reason: str
    delay_ms: int


@dataclass(frozen=True)
class Steered(Event):
    """A steering text was added."""

    text: str


@dataclass(frozen=True)
class SecretVariable:
    """An environment variable that a skill needs, without its value."""

    name: str
    prompt: str
    """What to ask a person for; may be empty."""
    help: str
    """Where to get it; may be empty. The skill's words: untrusted."""


@dataclass(frozen=True)
class SecretRequested(Event):
    """A skill needs values that are not set where the tools run; the turn goes on meanwhile.

    Ask a person, hidden, and put the value into this process's environment or with `skills.set_secret` into the team's.
    It never belongs into a message. `tools.ask_for_secrets` does the first.
    """

    skill: str
    """Full resource name."""
    variables: tuple[SecretVariable, ...]
    team_store: bool
    """Whether the team's secrets are for this skill."""


@dataclass(frozen=True)
class PendingCall:
    """A call that waits for the client."""

    call_id: str
    tool: str
    arguments_json: str
    """As the model wrote them."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, parsed; ValueError when the model wrote no JSON object."""
        parsed = json.loads(self.arguments_json or "{}")
        if not isinstance(parsed, dict):
            raise ValueError("the arguments are not a JSON object")
        return parsed


@dataclass(frozen=True)
class RequiresAction(Event):
    """The segment ends: the client is to run these calls and send their results."""

    calls: tuple[PendingCall, ...]


@dataclass(frozen=True)
class Completed(Event):
    """The turn ends with its final answer, which is durable."""

    text: str
    seq: int
    """Number of the answer's message in the session."""
    iterations: int
    """Model calls of the turn."""
    usage: common.Usage
    review_due: bool
    """Whether the turn made a review due."""
    unplanned_prefix_breaks: int
    """Requests of the session that did not extend the one before without a recorded reason: faults of Steward."""


@dataclass(frozen=True)
class Interrupted(Event):
    """The turn ends because it was stopped."""

    partial_text: str


@dataclass(frozen=True)
class Failed(Event):
    """The turn ends with an error."""

    reason: str
    message: str
    retryable: bool


TurnEvent: TypeAlias = (
    Started
    | TextDelta
    | TextReplaced
    | ToolStarted
    | ToolFinished
    | ModelRetry
    | Steered
    | SecretRequested
    | RequiresAction
    | Completed
    | Interrupted
    | Failed
)
End: TypeAlias = RequiresAction | Completed | Interrupted | Failed
"""An event that ends a segment."""

ENDS = (RequiresAction, Completed, Interrupted, Failed)


def from_message(message: agent.TurnEvent) -> TurnEvent | None:
    """Gives the typed event; None for a kind that this client does not know yet."""
    at = (message.event_id, message.turn)
    match message.WhichOneof("event"):
        case "started":
            return Started(*at, message.started.segment)
        case "text_delta":
            return TextDelta(*at, message.text_delta.text)
        case "tool_started":
            return ToolStarted(*at, message.tool_started.call_id, message.tool_started.tool)
        case "tool_finished":
            done = message.tool_finished
            return ToolFinished(*at, done.call_id, done.tool, done.is_error, done.summary)
        case "model_retry":
            retry = message.model_retry
            return ModelRetry(*at, retry.attempt, retry.reason, retry.delay_ms)
        case "steered":
            return Steered(*at, message.steered.text)
        case "secret_request":
            asked = message.secret_request
            variables = tuple(SecretVariable(one.name, one.prompt, one.help) for one in asked.variables)
            return SecretRequested(*at, asked.skill, variables, asked.team_store)
        case _:
            return _end(message, at)


def _end(message: agent.TurnEvent, at: tuple[int, str]) -> End | None:
    match message.WhichOneof("event"):
        case "requires_action":
            calls = message.requires_action.calls
            return RequiresAction(
                *at, tuple(PendingCall(call.call_id, call.tool, call.arguments_json) for call in calls)
            )
        case "completed":
            done = message.completed
            return Completed(
                *at,
                text=done.text,
                seq=done.seq,
                iterations=done.iterations,
                usage=done.usage,
                review_due=done.review_due.memory or done.review_due.skills,
                unplanned_prefix_breaks=done.prefix.unplanned_breaks,
            )
        case "interrupted":
            return Interrupted(*at, message.interrupted.partial_text)
        case "failed":
            return Failed(*at, message.failed.reason, message.failed.message, message.failed.retryable)
        case _:
            return None


class Cursor:
    """Passes on what was not passed on before.

    A stream that is taken up again begins anew at the start of its segment. Numbers alone cannot tell what is new: a
    service that was restarted numbers differently and gives text in one piece, and where the lost process had begun a
    message, another takes its place. So text is compared by its characters, and everything else by what it says.
    """

    def __init__(self) -> None:
        self._shown: Counter[tuple[object, ...]] = Counter()
        self._text = ""
        self._heard: Counter[tuple[object, ...]] = Counter()
        self._position = 0

    def attached(self) -> None:
        """The stream begins again."""
        self._heard = Counter()
        self._position = 0

    def take(self, event: TurnEvent) -> Iterator[TurnEvent]:
        """Gives what is to be passed on of an event that arrived."""
        if isinstance(event, TextDelta):
            yield from self._take_text(event)
            return
        if isinstance(event, ENDS):
            yield from self._void(event)
            yield event
            return
        key = _said(event)
        self._heard[key] += 1
        if self._heard[key] <= self._shown[key]:
            return
        self._shown[key] = self._heard[key]
        if isinstance(event, (ToolStarted, ToolFinished)):
            yield from self._void(event)
        yield event

    def _take_text(self, event: TextDelta) -> Iterator[TurnEvent]:
        known = self._text[self._position : self._position + len(event.text)]
        if not event.text.startswith(known):
            self._text = self._text[: self._position] + event.text
            self._position = len(self._text)
            yield TextReplaced(event.event_id, event.turn, self._text)
            return
        self._position += len(event.text)
        fresh = event.text[len(known) :]
        if fresh:
            self._text += fresh
            yield TextDelta(event.event_id, event.turn, fresh)

    def _void(self, event: Event) -> Iterator[TurnEvent]:
        """Takes back text that the stream, taken up again, has gone past without saying it."""
        if self._position < len(self._text):
            self._text = self._text[: self._position]
            yield TextReplaced(event.event_id, event.turn, self._text)


def _said(event: TurnEvent) -> tuple[object, ...]:
    match event:
        case Started(segment=segment):
            return ("started", segment)
        case ToolStarted(call_id=call):
            return ("tool started", call)
        # A restarted service no longer knows the line for people.
        case ToolFinished(call_id=call):
            return ("tool finished", call)
        case ModelRetry(attempt=attempt, reason=reason):
            return ("model retry", attempt, reason)
        case Steered(text=text):
            return ("steered", text)
        case SecretRequested(skill=skill, variables=variables):
            return ("secret request", skill, variables)
        case _:
            return (type(event).__name__, event.event_id)
