"""A Steward made of the generated servicers: says what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RequestInfo, RetryInfo
from google.rpc.status_pb2 import Status

from steward.access.v1 import access_service_pb2_grpc as access_grpc
from steward.agent.v1 import agent_service_pb2_grpc as agent_grpc
from steward.agent.v1 import session_service_pb2_grpc as session_grpc
from steward.learning.v1 import review_service_pb2_grpc as review_grpc
from steward.memory.v1 import memory_service_pb2_grpc as memory_grpc
from steward.recall.v1 import recall_service_pb2_grpc as recall_grpc
from steward.skill.v1 import skill_service_pb2_grpc as skill_grpc
from steward_client.contract import access, agent, learning, memory, recall, session, skill, skill_service

USER = "teams/home/users/owner"
SESSION = "teams/home/sessions/s1"
TOKEN = "a.good.token"
Script = Callable[[agent.RunTurnRequest, grpc.ServicerContext], Iterator[agent.TurnEvent]]


def explain(
    context: grpc.ServicerContext,
    code: grpc.StatusCode,
    reason: str,
    *,
    metadata: dict[str, str] | None = None,
    field: str = "",
    retry_after_ms: int = 0,
) -> None:
    """Fails the call as a Steward server does."""
    details: list[Any] = [ErrorInfo(reason=reason, domain="agent.steward.dev", metadata=metadata or {})]
    details.append(RequestInfo(request_id="r-77"))
    if field:
        details.append(BadRequest(field_violations=[BadRequest.FieldViolation(field=field, description="is wrong")]))
    if retry_after_ms:
        retry = RetryInfo()
        retry.retry_delay.FromMilliseconds(retry_after_ms)
        details.append(retry)
    packed = []
    for detail in details:
        holder = AnyMessage()
        holder.Pack(detail)
        packed.append(holder)
    status = Status(code=code.value[0], message="it failed", details=packed)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, "it failed")


def lost(context: grpc.ServicerContext) -> None:
    """Fails the call as a connection does that is cut: nobody explains anything."""
    context.abort(grpc.StatusCode.UNAVAILABLE, "gone")


def event(number: int, turn: str = "t1", **what: Any) -> agent.TurnEvent:
    return agent.TurnEvent(event_id=number, turn=turn, **what)


def started(number: int = 1, segment: int = 1) -> agent.TurnEvent:
    return event(number, started=agent.SegmentStarted(segment=segment))


def delta(number: int, text: str) -> agent.TurnEvent:
    return event(number, text_delta=agent.TextDelta(text=text))


def completed(number: int, text: str) -> agent.TurnEvent:
    done = agent.TurnCompleted(text=text, seq=2, iterations=1, review_due=agent.ReviewDue(memory=True))
    return event(number, completed=done)


def asks(number: int, *calls: tuple[str, str, str]) -> agent.TurnEvent:
    pending = [agent.PendingCall(call_id=call, tool=tool, arguments_json=text) for call, tool, text in calls]
    return event(number, requires_action=agent.RequiresAction(calls=pending))


class Fake(
    access_grpc.AccessServiceServicer,
    agent_grpc.AgentServiceServicer,
    session_grpc.SessionServiceServicer,
    memory_grpc.MemoryServiceServicer,
    skill_grpc.SkillServiceServicer,
    recall_grpc.RecallServiceServicer,
    review_grpc.ReviewServiceServicer,
):
    """All services that a client sees, in one server."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.turns: list[Script] = []
        self.faults: list[Callable[[grpc.ServicerContext], None]] = []
        self.entries = [memory.Entry(name=f"e{number}", content=f"fact {number}") for number in range(5)]
        self.review_states: list[learning.ReviewState] = []
        self.server: grpc.Server | None = None
        self.port = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.server = grpc.server(ThreadPoolExecutor(8))
        for module, service in (
            (access_grpc, "AccessService"),
            (agent_grpc, "AgentService"),
            (session_grpc, "SessionService"),
            (memory_grpc, "MemoryService"),
            (skill_grpc, "SkillService"),
            (recall_grpc, "RecallService"),
            (review_grpc, "ReviewService"),
        ):
            getattr(module, f"add_{service}Servicer_to_server")(self, self.server)
        self.port = self.server.add_insecure_port(f"127.0.0.1:{self.port}")
        self.server.start()

    def stop(self) -> None:
        if self.server is not None:
            self.server.stop(grace=0).wait()

    def asked_for(self, kind: type[Any]) -> list[Any]:
        return [request for request in self.asked if isinstance(request, kind)]

    def _take(self, request: Any, context: grpc.ServicerContext) -> None:
        if ("authorization", f"Bearer {TOKEN}") not in context.invocation_metadata():
            explain(context, grpc.StatusCode.UNAUTHENTICATED, "CREDENTIAL_INVALID")
        self.asked.append(request)
        if self.faults and not isinstance(request, access.WhoAmIRequest):
            self.faults.pop(0)(context)

    def WhoAmI(self, request: Any, context: grpc.ServicerContext) -> access.WhoAmIResponse:
        self._take(request, context)
        return access.WhoAmIResponse(user=USER)

    def RunTurn(self, request: Any, context: grpc.ServicerContext) -> Iterator[agent.RunTurnResponse]:
        self._take(request, context)
        for item in self.turns.pop(0)(request, context):
            yield agent.RunTurnResponse(event=item)

    def WatchTurn(self, request: Any, context: grpc.ServicerContext) -> Iterator[agent.WatchTurnResponse]:
        self._take(request, context)
        for item in self.turns.pop(0)(request, context):
            yield agent.WatchTurnResponse(event=item)

    def InterruptTurn(self, request: Any, context: grpc.ServicerContext) -> agent.InterruptTurnResponse:
        self._take(request, context)
        return agent.InterruptTurnResponse(turn="t1")

    def CreateSession(self, request: Any, context: grpc.ServicerContext) -> session.CreateSessionResponse:
        self._take(request, context)
        return session.CreateSessionResponse(session=session.Session(name=SESSION))

    def UpdateSession(self, request: Any, context: grpc.ServicerContext) -> session.UpdateSessionResponse:
        self._take(request, context)
        return session.UpdateSessionResponse(session=session.Session(name=SESSION, etag="later"))

    def ListEntries(self, request: Any, context: grpc.ServicerContext) -> memory.ListEntriesResponse:
        self._take(request, context)
        first = int(request.page_token or "0")
        rest = str(first + 2) if first + 2 < len(self.entries) else ""
        return memory.ListEntriesResponse(entries=self.entries[first : first + 2], next_page_token=rest)

    def Apply(self, request: Any, context: grpc.ServicerContext) -> memory.ApplyResponse:
        self._take(request, context)
        return memory.ApplyResponse(etag="after")

    def ManageSkill(self, request: Any, context: grpc.ServicerContext) -> skill_service.ManageSkillResponse:
        self._take(request, context)
        return skill_service.ManageSkillResponse(skill=skill.Skill(name=f"{USER}/skills/{request.skill}"))

    def ViewSkill(self, request: Any, context: grpc.ServicerContext) -> skill_service.ViewSkillResponse:
        self._take(request, context)
        return skill_service.ViewSkillResponse(content="# how")

    def Search(self, request: Any, context: grpc.ServicerContext) -> recall.SearchResponse:
        self._take(request, context)
        return recall.SearchResponse(conversations=[recall.Conversation(session=SESSION)])

    def ListReviews(self, request: Any, context: grpc.ServicerContext) -> learning.ListReviewsResponse:
        self._take(request, context)
        state = self.review_states.pop(0) if len(self.review_states) > 1 else self.review_states[0]
        return learning.ListReviewsResponse(reviews=[learning.Review(name="r1", to_seq=2, state=state)])

    def RetryReview(self, request: Any, context: grpc.ServicerContext) -> learning.RetryReviewResponse:
        self._take(request, context)
        return learning.RetryReviewResponse(review=learning.Review(name=request.name))
