"""Why a call failed, as types: by the status code, with reason, metadata and fields from `google.rpc` details."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RequestInfo, RetryInfo
from google.rpc.status_pb2 import Status

_DETAILS = "grpc-status-details-bin"


class Origin(enum.Enum):
    """Who says that the call failed."""

    SERVER = "server"
    """A Steward server answered so."""
    TRANSPORT = "transport"
    """No Steward answered: connection, deadline, or something in between. Whether the call took effect is unknown."""


@dataclass(frozen=True)
class FieldViolation:
    """A wrong field of the request."""

    field: str
    """Path of the field, for example `operations[0].add.content`."""
    description: str
    """What is wrong with it."""


class StewardError(Exception):
    """A failed call. Which one is caught by subclass; why is `reason`, a stable word of the contract."""

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        reason: str = "",
        domain: str = "",
        metadata: Mapping[str, str] | None = None,
        violations: tuple[FieldViolation, ...] = (),
        retry_after: float | None = None,
        request_id: str = "",
        origin: Origin = Origin.TRANSPORT,
    ) -> None:
        super().__init__(message)
        self.message = message
        """For people."""
        self.code = code
        """The gRPC status code."""
        self.reason = reason or code.name
        """`ErrorInfo.reason`, for example `SESSION_NOT_FOUND`; the code's name when no server gave one."""
        self.domain = domain
        """`ErrorInfo.domain` of the service that failed; empty without an answer."""
        self.metadata: Mapping[str, str] = dict(metadata or {})
        """`ErrorInfo.metadata`; which keys there are is documented at the reason."""
        self.violations = violations
        """All wrong fields of the request."""
        self.retry_after = retry_after
        """Seconds after which the server wants to be asked again."""
        self.request_id = request_id
        """The server's id of the request, for its log; empty when unknown."""
        self.origin = origin
        """Who says so."""

    def __str__(self) -> str:
        fields = "".join(f"; {violation.field}: {violation.description}" for violation in self.violations)
        return f"{self.message} ({self.reason}){fields}"


class CancelledError(StewardError):
    """CANCELLED: the call was given up."""


class InvalidArgumentError(StewardError):
    """INVALID_ARGUMENT: the request is wrong; see `violations`."""


class DeadlineExceededError(StewardError):
    """DEADLINE_EXCEEDED: no answer in time; a write may have been done."""


class NotFoundError(StewardError):
    """NOT_FOUND: it does not exist, or is not yours."""


class AlreadyExistsError(StewardError):
    """ALREADY_EXISTS: the name is taken."""


class PermissionDeniedError(StewardError):
    """PERMISSION_DENIED: the credential is good but does not permit this."""


class UnauthenticatedError(StewardError):
    """UNAUTHENTICATED: no token, or one that is not accepted."""


class ResourceExhaustedError(StewardError):
    """RESOURCE_EXHAUSTED: a budget, quota or limit is used up."""


class FailedPreconditionError(StewardError):
    """FAILED_PRECONDITION: the present state does not permit it."""


class AbortedError(StewardError):
    """ABORTED: something changed since it was read; read again."""


class UnavailableError(StewardError):
    """UNAVAILABLE: nobody answers now."""


class DataLossError(StewardError):
    """DATA_LOSS: stored data is damaged."""


class InternalError(StewardError):
    """INTERNAL: a fault of the server; its log has more under `request_id`."""


_BY_CODE: Mapping[grpc.StatusCode, type[StewardError]] = {
    grpc.StatusCode.CANCELLED: CancelledError,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.ABORTED: AbortedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DATA_LOSS: DataLossError,
    grpc.StatusCode.INTERNAL: InternalError,
}


class TurnError(Exception):
    """A turn that did not come to a final answer."""


class TurnFailedError(TurnError):
    """The turn ended with an error."""

    def __init__(self, reason: str, message: str, *, retryable: bool) -> None:
        super().__init__(f"the turn failed ({reason}): {message}")
        self.reason = reason
        """`ErrorInfo.reason`."""
        self.message = message
        """For people."""
        self.retryable = retryable
        """Whether the same message may succeed later."""


class TurnInterruptedError(TurnError):
    """The turn was stopped."""

    def __init__(self, partial_text: str) -> None:
        super().__init__("the turn was stopped")
        self.partial_text = partial_text
        """What had been said in the unfinished message."""


class ReviewPendingError(Exception):
    """A review had not ended when the time to wait was over. It goes on."""


def from_rpc(error: grpc.RpcError) -> StewardError:
    """Gives the typed error of what gRPC raised, of the blocking and the asyncio kind alike."""
    call: Any = error
    code: grpc.StatusCode = call.code()
    message = call.details() or code.name
    status = _status(call.trailing_metadata())
    info = ErrorInfo()
    bad = BadRequest()
    retry = RetryInfo()
    request = RequestInfo()
    explained = asked = False
    for detail in status.details:
        explained |= detail.Unpack(info)
        asked |= detail.Unpack(retry)
        detail.Unpack(bad)
        detail.Unpack(request)
    return _BY_CODE.get(code, StewardError)(
        message,
        code=code,
        reason=info.reason,
        domain=info.domain,
        metadata=dict(info.metadata),
        violations=tuple(FieldViolation(found.field, found.description) for found in bad.field_violations),
        retry_after=retry.retry_delay.ToTimedelta().total_seconds() if asked else None,
        request_id=request.request_id,
        # Only Steward's servers explain themselves; everything else is something in between.
        origin=Origin.SERVER if explained else Origin.TRANSPORT,
    )


def _status(trailers: Any) -> Status:
    for key, value in trailers or ():
        if key == _DETAILS and isinstance(value, bytes):
            try:
                return Status.FromString(value)
            except DecodeError:
                break
    return Status()
