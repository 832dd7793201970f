"""Turns against a fake server: every event once, whatever happens to the connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from fake import SESSION, TOKEN, Fake, asks, completed, delta, event, explain, lost, started

from steward_client import Retry, Steward, StewardError, TurnFailedError, TurnInterruptedError, approve_all, tool
from steward_client.contract import agent
from steward_client.errors import AbortedError
from steward_client.events import Completed, RequiresAction, Started, TextDelta, TextReplaced


def test_a_turn_streams_typed_events(fake: Fake, steward: Steward) -> None:
    fake.turns = [lambda _r, _c: iter([started(), delta(2, "Good "), delta(3, "day"), completed(4, "Good day")])]
    first, *texts, last = steward.turn(SESSION, "Hello")
    assert first == Started(1, "t1", segment=1)
    assert texts == [TextDelta(2, "t1", "Good "), TextDelta(3, "t1", "day")]
    assert isinstance(last, Completed)
    assert (last.text, last.seq, last.review_due) == ("Good day", 2, True)
    (request,) = fake.asked_for(agent.RunTurnRequest)
    assert request.user_message.text == "Hello"
    assert 1 <= len(request.request_id) <= 64


def test_a_broken_stream_is_taken_up_again_and_shows_nothing_twice(fake: Fake, steward: Steward) -> None:
    def breaks(_request: Any, context: grpc.ServicerContext) -> Iterator[agent.TurnEvent]:
        yield started()
        yield delta(2, "Good ")
        lost(context)

    def whole(_request: Any, _context: Any) -> Iterator[agent.TurnEvent]:
        yield from (started(), delta(2, "Good "), delta(3, "day"), completed(4, "Good day"))

    fake.turns = [breaks, breaks, whole]
    events = list(steward.turn(SESSION, "Hello"))
    assert [type(found) for found in events] == [Started, TextDelta, TextDelta, Completed]
    requests = fake.asked_for(agent.RunTurnRequest)
    assert len(requests) == 3
    assert len({request.request_id for request in requests}) == 1


def test_a_server_that_is_started_anew_in_the_middle_is_found_again(fake: Fake, steward: Steward) -> None:
    reached = threading.Event()

    def hangs(_request: Any, context: grpc.ServicerContext) -> Iterator[agent.TurnEvent]:
        over = threading.Event()
        context.add_callback(over.set)
        yield started()
        reached.set()
        over.wait()

    fake.turns = [hangs, lambda _r, _c: iter([started(), delta(2, "back"), completed(3, "back")])]
    events = steward.turn(SESSION, "Hello")
    assert isinstance(next(events), Started)
    assert reached.wait(10)
    fake.stop()
    fake.start()
    assert [type(found) for found in events] == [TextDelta, Completed]


def test_text_in_one_piece_after_a_restart_shows_only_its_rest(fake: Fake, steward: Steward) -> None:
    def breaks(_request: Any, context: grpc.ServicerContext) -> Iterator[agent.TurnEvent]:
        yield from (started(), delta(2, "one "), delta(3, "two "), delta(4, "three"))
        lost(context)

    fake.turns = [breaks, lambda _r, _c: iter([started(), delta(2, "one two three four"), completed(3, "…")])]
    events = list(steward.turn(SESSION, "Count"))
    assert "".join(found.text for found in events if isinstance(found, TextDelta)) == "one two three four"
    assert isinstance(events[-1], Completed), "an end whose number was seen before is still the end"


def test_text_that_was_lost_with_its_process_is_taken_back(fake: Fake, steward: Steward) -> None:
    def breaks(_request: Any, context: grpc.ServicerContext) -> Iterator[agent.TurnEvent]:
        yield from (started(), delta(2, "I will "), delta(3, "go left"))
        lost(context)

    fake.turns = [breaks, lambda _r, _c: iter([started(), delta(2, "I will stay"), completed(3, "I will stay")])]
    events = list(steward.turn(SESSION, "Where to?"))
    assert TextReplaced(2, "t1", "I will stay") in events


def test_a_stream_without_an_end_is_no_end(fake: Fake, steward: Steward) -> None:
    fake.turns = [lambda _r, _c: iter([started()]), lambda _r, _c: iter([started(), completed(2, "done")])]
    assert [type(found) for found in steward.turn(SESSION, "Hello")] == [Started, Completed]


def test_an_error_of_the_server_is_not_asked_again(fake: Fake, steward: Steward) -> None:
    fake.faults = [lambda context: explain(context, grpc.StatusCode.ABORTED, "TURN_RUNNING", metadata={"turn": "t0"})]
    with pytest.raises(AbortedError) as raised:
        list(steward.turn(SESSION, "Hello"))
    assert raised.value.reason == "TURN_RUNNING"
    assert raised.value.metadata == {"turn": "t0"}
    assert len(fake.asked_for(agent.RunTurnRequest)) == 1


def test_patience_ends(fake: Fake) -> None:
    impatient = Retry(first_wait=0.001, longest_wait=0.01, patience=0.0)
    with Steward.connect(fake.endpoint, token=TOKEN, retry=impatient) as steward:
        fake.faults = [lost] * 3
        with pytest.raises(StewardError, match="gone"):
            list(steward.turn(SESSION, "Hello"))


def test_unknown_kinds_of_events_are_passed_over(fake: Fake, steward: Steward) -> None:
    fake.turns = [lambda _r, _c: iter([event(1), completed(2, "done")])]
    assert [type(found) for found in steward.turn(SESSION, "Hello")] == [Completed]


@tool
def weigh(item: str, grams: bool = False) -> dict[str, Any]:
    """Weighs an item."""
    if item == "ghost":
        raise LookupError("there is no ghost")
    return {"item": item, "weight": 7000 if grams else 7}


def _results(fake: Fake) -> dict[str, tuple[str, bool]]:
    request = fake.asked_for(agent.RunTurnRequest)[-1]
    return {result.call_id: (result.content, result.is_error) for result in request.tool_results.results}


def test_calls_are_answered_until_the_final_answer(fake: Fake, steward: Steward) -> None:
    calls = (
        ("c1", "weigh", '{"item": "parcel"}'),
        ("c2", "weigh", '{"item": "ghost"}'),
        ("c3", "weigh", '{"item": 3}'),
        ("c4", "fly", "{}"),
        ("c5", "weigh", "{"),
        ("c6", "weigh", '{"item": "secret"}'),
    )
    fake.turns = [
        lambda _r, _c: iter([started(), asks(2, *calls)]),
        lambda _r, _c: iter([started(3, 2), delta(4, "7 kg"), completed(5, "7 kg")]),
    ]
    seen: list[object] = []
    result = steward.run_turn_with_tools(
        SESSION,
        "How heavy?",
        [weigh],
        approve=lambda call: call.arguments["item"] != "secret",
        on_event=seen.append,
    )
    assert result.text == "7 kg"
    assert [call.call_id for call in result.calls] == ["c1", "c2", "c3", "c4", "c5", "c6"]
    results = _results(fake)
    assert results["c1"] == ('{"item": "parcel", "weight": 7}', False)
    assert results["c2"] == ("LookupError: there is no ghost", True)
    assert results["c3"] == ("The arguments do not fit: arguments.item must be of type string", True)
    assert results["c4"] == ("This client has no tool 'fly'.", True)
    assert results["c5"][1]
    assert "declined" in results["c6"][0]
    assert any(isinstance(found, RequiresAction) for found in seen)


def test_results_are_sent_again_under_the_same_id_when_the_connection_breaks(fake: Fake, steward: Steward) -> None:
    def breaks(_request: Any, context: grpc.ServicerContext) -> Iterator[agent.TurnEvent]:
        yield started(3, 2)
        lost(context)

    fake.turns = [
        lambda _r, _c: iter([started(), asks(2, ("c1", "weigh", '{"item": "parcel"}'))]),
        breaks,
        lambda _r, _c: iter([started(3, 2), completed(4, "7 kg")]),
    ]
    count = []
    counted = tool(name="weigh")(lambda: count.append(1))
    fake.turns[0] = lambda _r, _c: iter([started(), asks(2, ("c1", "weigh", "{}"))])
    steward.run_turn_with_tools(SESSION, "How heavy?", [counted], approve=approve_all)
    assert count == [1], "the tool ran once"
    _, second, third = fake.asked_for(agent.RunTurnRequest)
    assert second == third


def test_a_turn_without_an_answer_raises(fake: Fake, steward: Steward) -> None:
    failed = agent.TurnFailed(reason="MODEL_QUOTA", message="used up", retryable=True)
    fake.turns = [
        lambda _r, _c: iter([event(1, failed=failed)]),
        lambda _r, _c: iter([event(1, interrupted=agent.TurnInterrupted(partial_text="So far"))]),
    ]
    with pytest.raises(TurnFailedError, match="MODEL_QUOTA") as raised:
        steward.run_turn_with_tools(SESSION, "Hello", [], approve=approve_all)
    assert raised.value.retryable
    with pytest.raises(TurnInterruptedError) as stopped:
        steward.run_turn_with_tools(SESSION, "Hello", [], approve=approve_all)
    assert stopped.value.partial_text == "So far"


def test_who_leaves_early_stops_listening_only(fake: Fake, steward: Steward) -> None:
    left = threading.Event()

    def long(_request: Any, context: grpc.ServicerContext) -> Iterator[agent.TurnEvent]:
        context.add_callback(left.set)
        yield started()
        left.wait()

    fake.turns = [long]
    events = steward.turn(SESSION, "Hello")
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert left.wait(10)
    assert not fake.asked_for(agent.InterruptTurnRequest)
    assert steward.interrupt(SESSION) == "t1"


def test_a_turn_that_something_else_began_can_be_watched(fake: Fake, steward: Steward) -> None:
    fake.turns = [lambda _r, _c: iter([delta(7, "rest"), completed(8, "the rest")])]
    assert [type(found) for found in steward.watch_turn(SESSION, "t1", after_event=6)] == [TextDelta, Completed]
    (request,) = fake.asked_for(agent.WatchTurnRequest)
    assert (request.turn, request.after_event) == ("t1", 6)
