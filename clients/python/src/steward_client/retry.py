"""When a call is repeated and how long after. Decides only; who waits is the caller."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import grpc

from .errors import Origin, StewardError


@dataclass(frozen=True)
class Retry:
    """How often a call is repeated that found nobody, and for how long a broken stream is taken up again."""

    attempts: int = 4
    """Calls in all; 1 never repeats. Only what the contract calls idempotent is repeated, only on UNAVAILABLE."""
    first_wait: float = 0.1
    """Longest first wait in seconds; doubled for each further one, and each drawn at random below that."""
    longest_wait: float = 5.0
    """Longest wait in seconds, also when the server asks for more."""
    patience: float = 60.0
    """Seconds for which a broken stream is taken up again without any event in between."""

    def wait(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after the `attempt`-th failure, from 1."""
        window = min(self.first_wait * 2.0 ** min(attempt - 1, 30), self.longest_wait)
        return min((asked or 0.0) + random.uniform(0.0, window), self.longest_wait)  # noqa: S311 - not a secret.


class Attempts:
    """One call with its repetitions, within one deadline."""

    def __init__(self, retry: Retry, *, idempotent: bool, timeout: float | None) -> None:
        self._retry = retry
        self._most = retry.attempts if idempotent else 1
        self._failed = 0
        self._end = None if timeout is None else time.monotonic() + timeout

    def remaining(self) -> float | None:
        """Seconds until the deadline."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def after(self, error: StewardError) -> float:
        """Seconds to wait before the next attempt; raises the error when there is none."""
        self._failed += 1
        if error.code is not grpc.StatusCode.UNAVAILABLE or self._failed >= self._most:
            raise error
        wait = self._retry.wait(self._failed, error.retry_after)
        remaining = self.remaining()
        if remaining is not None and wait >= remaining:
            raise error
        return wait


_BROKEN = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        # What a connection that is cut in the middle of a stream shows, depending on where it is cut.
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)


class Attachment:
    """One stream with the times it broke and was taken up again."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._failed = 0
        self._heard = time.monotonic()

    def heard(self) -> None:
        """Something came: patience begins anew."""
        self._failed = 0
        self._heard = time.monotonic()

    def after(self, error: StewardError) -> float:
        """Seconds to wait before the stream is taken up again; raises the error when it is not to be."""
        self._failed += 1
        lost = error.code in _BROKEN and error.origin is Origin.TRANSPORT
        if not lost and error.code is not grpc.StatusCode.UNAVAILABLE:
            raise error
        wait = self._retry.wait(self._failed, error.retry_after)
        if time.monotonic() + wait - self._heard > self._retry.patience:
            raise error
        return wait
