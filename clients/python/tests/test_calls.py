"""Unary calls: errors as types, what is repeated and what is not, helpers that make the right requests."""

from __future__ import annotations

from datetime import datetime, timezone

import grpc
import pytest
from fake import SESSION, TOKEN, USER, Fake, explain, lost

from steward_client import ReviewPendingError, Steward, StewardError, operation, tool
from steward_client.contract import learning, memory, recall, session, skill_service
from steward_client.errors import (
    FieldViolation,
    InvalidArgumentError,
    Origin,
    UnauthenticatedError,
    UnavailableError,
)


def test_an_error_carries_what_the_server_explains(fake: Fake, steward: Steward) -> None:
    fake.faults = [
        lambda context: explain(
            context,
            grpc.StatusCode.INVALID_ARGUMENT,
            "CONTENT_BLOCKED",
            metadata={"category": "secret"},
            field="operations[0].add.content",
            retry_after_ms=1500,
        )
    ]
    with pytest.raises(InvalidArgumentError) as raised:
        steward.memory.add("hunter2")
    error = raised.value
    assert (error.reason, error.domain, error.origin) == ("CONTENT_BLOCKED", "agent.steward.dev", Origin.SERVER)
    assert error.metadata == {"category": "secret"}
    assert error.violations == (FieldViolation("operations[0].add.content", "is wrong"),)
    assert (error.retry_after, error.request_id) == (1.5, "r-77")
    assert str(error) == "it failed (CONTENT_BLOCKED); operations[0].add.content: is wrong"


def test_an_idempotent_call_is_repeated_with_the_same_request_id(fake: Fake, steward: Steward) -> None:
    fake.faults = [lost, lambda context: explain(context, grpc.StatusCode.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE")]
    assert steward.memory.add("tea at four").etag == "after"
    asked = fake.asked_for(memory.ApplyRequest)
    assert len(asked) == 3
    assert len({request.request_id for request in asked}) == 1


def test_repetition_has_an_end(fake: Fake, steward: Steward) -> None:
    fake.faults = [lost] * 10
    with pytest.raises(UnavailableError) as raised:
        steward.memory.add("tea at four")
    assert raised.value.origin is Origin.TRANSPORT
    assert len(fake.asked_for(memory.ApplyRequest)) == 3


def test_what_the_contract_does_not_call_idempotent_is_asked_once(fake: Fake, steward: Steward) -> None:
    fake.faults = [lost, lost]
    with pytest.raises(UnavailableError):
        steward.reviews.retry("teams/home/reviews/r1")
    with pytest.raises(UnavailableError):
        steward.skills.view("deploy")
    assert len(fake.asked_for(learning.RetryReviewRequest)) == 1
    assert len(fake.asked_for(skill_service.ViewSkillRequest)) == 1


def test_a_bad_token_is_told_when_connecting(fake: Fake) -> None:
    with pytest.raises(UnauthenticatedError) as raised:
        Steward.connect(fake.endpoint, token="another")
    assert raised.value.reason == "CREDENTIAL_INVALID"
    assert "another" not in str(raised.value)


def test_nobody_there_is_an_error_of_the_transport() -> None:
    with pytest.raises(StewardError) as raised:
        Steward.connect("http://127.0.0.1:1", token=TOKEN, timeout=5.0)
    assert raised.value.origin is Origin.TRANSPORT


def test_who_the_token_speaks_for_is_known(steward: Steward) -> None:
    assert (steward.user, steward.team) == (USER, "teams/home")


def test_packages_can_live_elsewhere(fake: Fake) -> None:
    other = Fake()
    other.start()
    try:
        with Steward.connect(fake.endpoint, token=TOKEN, services={"memory": other.endpoint}) as steward:
            steward.memory.add("elsewhere")
        assert len(other.asked) == 1
        assert not fake.asked_for(memory.ApplyRequest)
    finally:
        other.stop()


def test_pages_are_turned(fake: Fake, steward: Steward) -> None:
    assert [entry.content for entry in steward.memory.entries()] == [f"fact {number}" for number in range(5)]
    first, second, third = fake.asked_for(memory.ListEntriesRequest)
    assert first.parent == second.parent == third.parent == f"{USER}/memory/notes"


def test_a_batch_goes_to_the_named_store(fake: Fake, steward: Steward) -> None:
    changes = [operation.add("a"), operation.replace("b", "c"), operation.remove("d")]
    steward.memory.apply(changes, "teams/home/memory/notes", etag="before", reason="tidied")
    (request,) = fake.asked_for(memory.ApplyRequest)
    assert list(request.operations) == changes
    assert (request.store, request.etag, request.reason) == ("teams/home/memory/notes", "before", "tidied")


def test_a_session_is_begun_with_its_tools(fake: Fake, steward: Steward) -> None:
    @tool
    def look(path: str) -> str:
        """Looks at a file."""
        return path

    made = steward.sessions.create(tools=[look], title="a title", context_files={"AGENTS.md": "be kind"})
    assert made.name == SESSION
    (request,) = fake.asked_for(session.CreateSessionRequest)
    assert request.parent == USER
    assert request.session.title == "a title"
    assert [given.name for given in request.setup.client_tools] == ["look"]
    assert request.setup.environment.working_dir
    assert request.setup.context_files[0].path == "AGENTS.md"


def test_a_session_is_changed_in_what_is_given_and_as_it_was_read_if_asked_to(fake: Fake, steward: Steward) -> None:
    read = session.Session(name=SESSION, title="before", etag="read")
    changed = steward.sessions.update(read, model="another", etag=read.etag)
    assert changed.etag == "later"
    (request,) = fake.asked_for(session.UpdateSessionRequest)
    assert list(request.update_mask.paths) == ["model"]
    assert (request.session.name, request.session.model, request.session.etag) == (SESSION, "another", "read")
    assert request.request_id
    assert not request.client_tools

    steward.sessions.update(SESSION, title="", tools=[])
    steward.sessions.update(read, title="x")
    _, by_name, whatever = fake.asked_for(session.UpdateSessionRequest)
    assert list(by_name.update_mask.paths) == ["title", "client_tools"], "empty is a value"
    assert (by_name.session.etag, whatever.session.etag) == ("", "")
    with pytest.raises(ValueError, match="nothing to change"):
        steward.sessions.update(SESSION)


@pytest.mark.parametrize(
    ("action", "name"),
    [
        (skill_service.CreateSkill(content="x"), "create"),
        (skill_service.EditSkill(content="x"), "edit"),
        (skill_service.PatchSkill(old_text="x"), "patch"),
        (skill_service.DeleteSkill(), "delete"),
        (skill_service.WriteSkillFile(path="scripts/x"), "write_file"),
        (skill_service.RemoveSkillFile(path="scripts/x"), "remove_file"),
    ],
)
def test_each_action_on_a_skill_is_sent(fake: Fake, steward: Steward, action: object, name: str) -> None:
    steward.skills.manage("deploy", action)  # type: ignore[arg-type]
    (request,) = fake.asked_for(skill_service.ManageSkillRequest)
    assert request.WhichOneof("action") == name
    assert getattr(request, name) == action


def test_search_takes_times_with_a_zone_only(fake: Fake, steward: Steward) -> None:
    steward.recall.search("tea", sort="newest", after=datetime(2026, 1, 2, tzinfo=timezone.utc))
    (request,) = fake.asked_for(recall.SearchRequest)
    assert request.discover.sort == recall.SEARCH_SORT_NEWEST
    assert request.discover.after.ToJsonString() == "2026-01-02T00:00:00Z"
    assert not request.discover.HasField("before")
    with pytest.raises(ValueError, match="time zone"):
        steward.recall.search("tea", before=datetime(2026, 1, 2))  # noqa: DTZ001


def test_a_review_is_waited_for(fake: Fake, steward: Steward) -> None:
    fake.review_states = [
        learning.REVIEW_STATE_QUEUED,
        learning.REVIEW_STATE_RUNNING,
        learning.REVIEW_STATE_SUCCEEDED,
    ]
    assert steward.reviews.wait(SESSION, 2).state == learning.REVIEW_STATE_SUCCEEDED
    with pytest.raises(ReviewPendingError):
        steward.reviews.wait(SESSION, 3, timeout=0.0)
