"""The asyncio client: the same offers as the blocking one, and the same behaviour where it has code of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from conftest import QUICK
from fake import SESSION, TOKEN, Fake, asks, completed, delta, lost, started

from steward_client import AsyncSteward, Steward, aio_resources, resources, tool
from steward_client.contract import agent, learning, memory
from steward_client.errors import UnauthenticatedError, UnavailableError
from steward_client.events import Completed, Started, TextDelta

RESOURCES = ("Sessions", "Memory", "Skills", "Recall", "Reviews")


def _offers(kind: type) -> dict[str, list[tuple[str, object]]]:
    return {
        name: [(parameter.name, parameter.default) for parameter in inspect.signature(member).parameters.values()]
        for name, member in inspect.getmembers(kind, inspect.isroutine)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("blocking", "asyncio"),
    [
        (Steward, AsyncSteward),
        *((getattr(resources, name), getattr(aio_resources, f"Async{name}")) for name in RESOURCES),
    ],
)
def test_both_clients_offer_the_same(blocking: type, asyncio: type) -> None:
    assert _offers(asyncio) == _offers(blocking)


def test_a_turn_is_taken_up_again(fake: Fake) -> None:
    def breaks(_request: Any, context: grpc.ServicerContext) -> Iterator[agent.TurnEvent]:
        yield started()
        yield delta(2, "Good ")
        lost(context)

    fake.turns = [breaks, lambda _r, _c: iter([started(), delta(2, "Good day"), completed(3, "Good day")])]

    async def talk() -> list[type]:
        async with await AsyncSteward.connect(fake.endpoint, token=TOKEN, retry=QUICK) as steward:
            return [type(found) async for found in steward.turn(SESSION, "Hello")]

    assert asyncio.run(talk()) == [Started, TextDelta, TextDelta, Completed]
    first, second = fake.asked_for(agent.RunTurnRequest)
    assert first == second


def test_tools_and_approval_may_be_coroutines_or_not(fake: Fake) -> None:
    @tool
    async def later(text: str) -> str:
        """Waits a moment."""
        await asyncio.sleep(0)
        return text.upper()

    @tool
    def now(text: str) -> str:
        """Does not wait."""
        return text

    calls = (("c1", "later", '{"text": "a"}'), ("c2", "now", '{"text": "b"}'), ("c3", "now", '{"text": "no"}'))
    fake.turns = [
        lambda _r, _c: iter([asks(1, *calls)]),
        lambda _r, _c: iter([completed(2, "done")]),
    ]

    async def agree(call: Any) -> bool:
        await asyncio.sleep(0)
        return bool(call.arguments["text"] != "no")

    async def talk() -> str:
        async with await AsyncSteward.connect(fake.endpoint, token=TOKEN, retry=QUICK) as steward:
            return (await steward.run_turn_with_tools(SESSION, "Go", [later, now], approve=agree)).text

    assert asyncio.run(talk()) == "done"
    results = fake.asked_for(agent.RunTurnRequest)[-1].tool_results.results
    assert [(result.content, result.is_error) for result in results[:2]] == [("A", False), ("b", False)]
    assert results[2].is_error


def test_calls_are_typed_paged_and_repeated(fake: Fake) -> None:
    fake.review_states = [learning.REVIEW_STATE_RUNNING, learning.REVIEW_STATE_NOTHING_TO_SAVE]

    async def work() -> tuple[list[str], str, int]:
        async with await AsyncSteward.connect(fake.endpoint, token=TOKEN, retry=QUICK) as steward:
            entries = [entry.content async for entry in steward.memory.entries("profile")]
            fake.faults = [lost]
            etag = (await steward.memory.add("tea")).etag
            review = await steward.reviews.wait(SESSION, 2)
            fake.faults = [lost]
            with pytest.raises(UnavailableError):
                await steward.reviews.retry("r1")
            return entries, etag, review.state

    entries, etag, state = asyncio.run(work())
    assert (len(entries), etag, state) == (5, "after", learning.REVIEW_STATE_NOTHING_TO_SAVE)
    assert len(fake.asked_for(memory.ApplyRequest)) == 2


def test_a_bad_token_is_told_when_connecting(fake: Fake) -> None:
    with pytest.raises(UnauthenticatedError):
        asyncio.run(AsyncSteward.connect(fake.endpoint, token="another"))
