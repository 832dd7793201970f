"""The asyncio client: `client` once more, method by method; a test holds the two together."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from typing_extensions import Self

from . import requests, tools
from .aio_resources import AsyncMemory, AsyncRecall, AsyncReviews, AsyncSessions, AsyncSkills
from .client import DEFAULT_TIMEOUT
from .connection import Target, channel_options, find_token, targets
from .contract import access, agent
from .errors import StewardError, TurnFailedError, TurnInterruptedError, from_rpc
from .events import ENDS, Completed, Cursor, Failed, Interrupted, PendingCall, RequiresAction, TurnEvent, from_message
from .methods import method_of
from .requests import SessionName
from .retry import Attachment, Attempts, Retry
from .tools import Approve, Tool, Toolbox, ToolCall, TurnResult

M = TypeVar("M", bound=Message)
AsyncApprove = Callable[[ToolCall], Awaitable[bool]]


class AsyncSteward:
    """An authenticated connection. Made by `connect`; belongs to the running event loop."""

    def __init__(self, channels: Mapping[str, grpc.aio.Channel], token: str, *, retry: Retry, timeout: float) -> None:
        self._channels = channels
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._retry = retry
        self._timeout = timeout
        self.user = ""
        """`teams/{team}/users/{user}`."""
        self.sessions = AsyncSessions(self)
        self.memory = AsyncMemory(self)
        self.skills = AsyncSkills(self)
        self.recall = AsyncRecall(self)
        self.reviews = AsyncReviews(self)

    @classmethod
    async def connect(
        cls,
        endpoint: str | None = None,
        *,
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        services: Mapping[str, str] | None = None,
        root_certificates: bytes | None = None,
        retry: Retry | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Self:
        """Connects, and asks the server who the token speaks for.

        Endpoint: given, `STEWARD_ENDPOINT`, or http://127.0.0.1:7400; `services` maps packages of a split installation
        to endpoints of their own. Token: given, `STEWARD_TOKEN`, or the owner's token in this machine's data folder.
        `timeout` is the longest a call may take, in seconds, repetitions included; turns have none.
        """
        secret = find_token(token, token_file)
        channels = {
            package: _channel(target, root_certificates) for package, target in targets(endpoint, services).items()
        }
        client = cls(channels, secret, retry=retry or Retry(), timeout=timeout)
        try:
            client.user = (await client.who_am_i()).user
        except BaseException:
            await client.close()
            raise
        return client

    async def close(self) -> None:
        """Closes the connection. Turns go on in the service."""
        for channel in self._channels.values():
            await channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def team(self) -> str:
        """`teams/{team}`."""
        return requests.team_of(self.user)

    async def who_am_i(self) -> access.WhoAmIResponse:
        """Says who the token speaks for."""
        return await self.call(access.WhoAmIRequest(), access.WhoAmIResponse)

    async def call(self, request: Message, answer: type[M], *, timeout: float | None = None) -> M:
        """Makes any call of the contract that has one answer; StewardError when it fails."""
        method = method_of(type(request))
        attempts = Attempts(self._retry, idempotent=method.idempotent, timeout=timeout or self._timeout)
        call = self._channel(method.package).unary_unary(
            method.path, type(request).SerializeToString, answer.FromString
        )
        while True:
            try:
                return await call(request, timeout=attempts.remaining(), metadata=self._metadata)
            except grpc.RpcError as error:
                wait = attempts.after(from_rpc(error))
            await asyncio.sleep(wait)

    async def stream(self, request: Message, answer: type[M]) -> AsyncGenerator[M, None]:
        """Makes any call of the contract that streams its answers; StewardError when it breaks."""
        method = method_of(type(request))
        call: Any = self._channel(method.package).unary_stream(
            method.path, type(request).SerializeToString, answer.FromString
        )(request, metadata=self._metadata)
        try:
            async for item in call:
                yield item
        except grpc.RpcError as error:
            raise from_rpc(error) from error
        finally:
            call.cancel()

    def turn(
        self,
        session: SessionName,
        text: str,
        *,
        attachments: Iterable[agent.Attachment] = (),
        request_id: str | None = None,
        steer: bool = False,
    ) -> AsyncIterator[TurnEvent]:
        """Says something and gives the events until the segment ends; the last one is one of `events.ENDS`.

        A broken connection is taken up again under the same request id: nothing is done or shown twice. The request is
        sent when the first event is asked for. Leaving early stops listening, not the turn; see `interrupt`.
        """
        return self._follow(
            requests.user_message(session, text, attachments, request_id, steer=steer), agent.RunTurnResponse
        )

    def answer(
        self, session: SessionName, results: Iterable[agent.ToolResult], *, request_id: str | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Gives the results of all open calls, and the events of the segment that they begin. See `turn`."""
        return self._follow(requests.tool_results(session, results, request_id), agent.RunTurnResponse)

    def watch_turn(self, session: SessionName, turn: str, *, after_event: int = 0) -> AsyncIterator[TurnEvent]:
        """Gives the events of a turn that something else began, until it ends or waits for its client."""
        request = agent.WatchTurnRequest(session=requests.named(session), turn=turn, after_event=after_event)
        return self._follow(request, agent.WatchTurnResponse)

    async def interrupt(self, session: SessionName) -> str:
        """Stops what runs or waits in a session; gives its turn id, or nothing."""
        request = agent.InterruptTurnRequest(session=requests.named(session))
        return (await self.call(request, agent.InterruptTurnResponse)).turn

    async def pending(self) -> Sequence[agent.PendingAction]:
        """Gives the caller's sessions that wait for a client, with their calls."""
        request = agent.ListPendingActionsRequest(parent=self.user)
        return (await self.call(request, agent.ListPendingActionsResponse)).actions

    async def run_turn_with_tools(
        self,
        session: SessionName,
        text: str,
        tools: Sequence[Tool],
        *,
        approve: Approve | AsyncApprove,
        on_event: Callable[[TurnEvent], object] | None = None,
        request_id: str | None = None,
    ) -> TurnResult:
        """Runs a whole turn: answers each call with its tool, when `approve` agrees, until the final answer.

        Tools and `approve` may be coroutine functions; a plain tool runs in a thread.

        What a tool raises is told to the model. TurnFailedError and TurnInterruptedError when there is no answer.
        """
        toolbox = Toolbox(tools)
        answered: list[PendingCall] = []
        events = self.turn(session, text, request_id=request_id)
        while True:
            end = await _listen(events, on_event)
            match end:
                case Completed():
                    return TurnResult(end.turn, end.text, end, tuple(answered))
                case RequiresAction():
                    results = [await _run(toolbox, pending, approve) for pending in end.calls]
                    answered.extend(end.calls)
                    events = self.answer(session, results)
                case Failed():
                    raise TurnFailedError(end.reason, end.message, retryable=end.retryable)
                case Interrupted():
                    raise TurnInterruptedError(end.partial_text)

    async def _follow(
        self, request: Message, answer: type[agent.RunTurnResponse | agent.WatchTurnResponse]
    ) -> AsyncIterator[TurnEvent]:
        cursor = Cursor()
        attachment = Attachment(self._retry)
        while True:
            cursor.attached()
            try:
                async with aclosing(self.stream(request, answer)) as stream:
                    async for item in stream:
                        attachment.heard()
                        event = from_message(item.event)
                        if event is None:
                            continue
                        for fresh in cursor.take(event):
                            yield fresh
                        if isinstance(event, ENDS):
                            return
                broken = StewardError("the stream ended without an end of the turn", code=grpc.StatusCode.UNAVAILABLE)
            except StewardError as error:
                broken = error
            await asyncio.sleep(attachment.after(broken))

    def _channel(self, package: str) -> grpc.aio.Channel:
        return self._channels.get(package) or self._channels[""]


def _channel(target: Target, root_certificates: bytes | None) -> grpc.aio.Channel:
    options = channel_options(target)
    if target.secure:
        return grpc.aio.secure_channel(target.address, grpc.ssl_channel_credentials(root_certificates), options)
    return grpc.aio.insecure_channel(target.address, options)


async def _listen(
    events: AsyncIterator[TurnEvent], on_event: Callable[[TurnEvent], object] | None
) -> Completed | RequiresAction | Failed | Interrupted:
    async for event in events:
        if on_event is not None:
            on_event(event)
        if isinstance(event, ENDS):
            return event
    raise AssertionError("a segment has an end")


async def _run(toolbox: Toolbox, pending: PendingCall, approve: Approve | AsyncApprove) -> agent.ToolResult:
    call = toolbox.read(pending)
    if isinstance(call, agent.ToolResult):
        return call
    agreed = approve(call)
    if inspect.isawaitable(agreed):
        agreed = await agreed
    if not agreed:
        return tools.declined(call)
    try:
        if inspect.iscoroutinefunction(call.tool.function):
            value = await call.tool.function(**call.arguments)
        else:
            # A function that blocks must not stop the loop, on which the connection's signs of life depend.
            value = await asyncio.to_thread(call.tool.function, **call.arguments)
        return tools.returned(call, value)
    except Exception as error:  # noqa: BLE001 - whatever it is, the model is to know.
        return tools.raised(call, error)
