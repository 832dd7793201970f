"""A typed client for Steward.

from steward_client import Steward, tool, approve_all

with Steward.connect() as steward:
    session = steward.sessions.create()
    for event in steward.turn(session, "Good morning"):
        print(event)
"""

from . import contract, errors, events, operation
from .aio import AsyncSteward
from .client import Steward
from .errors import ReviewPendingError, StewardError, TurnError, TurnFailedError, TurnInterruptedError
from .events import PendingCall, TurnEvent
from .retry import Retry
from .tools import Tool, ToolCall, ToolOutput, TurnResult, approve_all, tool

__all__ = [
    "AsyncSteward",
    "PendingCall",
    "Retry",
    "ReviewPendingError",
    "Steward",
    "StewardError",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "TurnError",
    "TurnEvent",
    "TurnFailedError",
    "TurnInterruptedError",
    "TurnResult",
    "approve_all",
    "contract",
    "errors",
    "events",
    "operation",
    "tool",
]
