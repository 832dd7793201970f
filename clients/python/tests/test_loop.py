"""The loop through the real binary, over a real port, with a token.

Needs `STEWARD_BINARY`, the path of a built `steward`; everything else is brought.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from model_server import MODEL, ModelServer, Reply, asked, learner

from steward.access.v1.access_service_pb2 import WhoAmIRequest
from steward.access.v1.access_service_pb2_grpc import AccessServiceStub
from steward.agent.v1.agent_service_pb2 import RunTurnRequest, UserMessage
from steward.agent.v1.agent_service_pb2_grpc import AgentServiceStub
from steward.agent.v1.session_service_pb2 import CreateSessionRequest
from steward.agent.v1.session_service_pb2_grpc import SessionServiceStub
from steward_client import Retry, Steward, tool
from steward_client.contract import common, learning
from steward_client.errors import NotFoundError, UnauthenticatedError, from_rpc
from steward_client.events import Completed, Started, TextDelta, TextReplaced

BINARY = os.environ.get("STEWARD_BINARY", "")
pytestmark = pytest.mark.skipif(not BINARY, reason="STEWARD_BINARY does not name a built steward")


class Installation:
    """One process of the binary with a data folder of its own."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.data = folder / "data"
        self.log = folder / "steward.log"
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("STEWARD_")} | {
            "STEWARD__AGENT__MODEL__BASE_URL": model.base_url,
            "STEWARD__AGENT__MODEL__NAME": MODEL,
            # What the README changes to.
            "STEWARD__AGENT__MODEL__OTHERS": '["another-model"]',
            "STEWARD__AGENT__NUDGES__MEMORY_TURNS": "1",
        }
        self.endpoint = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        arguments = ["--data-dir", str(self.data), "--listen", self.endpoint.removeprefix("http://"), "--json"]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [BINARY, *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("{"), f"steward did not become ready; its log:\n{self.log.read_text()}"
        self.endpoint = json.loads(line)["endpoint"]

    def kill(self) -> None:
        """Ends it at once, with nothing written or closed."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    @property
    def token(self) -> str:
        return (self.data / "agent" / "owner.token").read_text().strip()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    server = ModelServer(learner)
    yield server
    server.stop()


@pytest.fixture
def installation(tmp_path: Path, model: ModelServer) -> Iterator[Installation]:
    running = Installation(tmp_path, model)
    running.start()
    yield running
    running.kill()


@pytest.fixture
def steward(installation: Installation) -> Iterator[Steward]:
    with Steward.connect(installation.endpoint, token=installation.token) as client:
        yield client


def test_a_lesson_is_kept_and_stands_before_the_next_session(steward: Steward, model: ModelServer) -> None:
    lesson = "the staging window opens at 06:40"
    first = steward.sessions.create()
    events = list(steward.turn(first, f"Remember: {lesson}"))
    assert isinstance(events[0], Started)
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(deltas) > 1, "text comes as it is written"
    end = events[-1]
    assert isinstance(end, Completed)
    assert "".join(deltas) == end.text == f"You said: Remember: {lesson}"
    assert end.review_due
    assert end.unplanned_prefix_breaks == 0

    review = steward.reviews.wait(first, end.seq)
    assert review.state == learning.REVIEW_STATE_SUCCEEDED, review
    (entry,) = steward.memory.entries()
    assert entry.content == lesson
    assert entry.provenance.origin == common.ORIGIN_REVIEW
    assert entry.provenance.session == first.name

    second = steward.sessions.create()
    assert lesson in steward.sessions.get(second).system_prompt
    assert lesson not in steward.sessions.get(first).system_prompt, "a running session keeps its prompt"
    list(steward.turn(second, "Good morning"))
    sent = next(request for request in model.requests if asked(request) == "Good morning")
    assert lesson in sent["messages"][0]["content"]

    found = steward.recall.search("staging window")
    assert [conversation.session for conversation in found.conversations] == [first.name]
    assert [message.text for message in steward.sessions.messages(second)] == ["Good morning", "You said: Good morning"]


def test_a_client_tool_is_called_and_answered(steward: Steward, model: ModelServer) -> None:
    @tool(integrity=common.INTEGRITY_WORKSPACE)
    def weigh(item: str) -> str:
        """Weighs an item.

        Args:
            item: What to weigh.
        """
        return f"{item}: 7 kg"

    session = steward.sessions.create(tools=[weigh])
    result = steward.run_turn_with_tools(session, "Weigh parcel", [weigh], approve=lambda call: call.tool is weigh)
    assert result.text == "The scales say: parcel: 7 kg"
    assert [call.arguments for call in result.calls] == [{"item": "parcel"}]
    offered = {given["function"]["name"]: given["function"] for given in model.requests[0]["tools"]}
    assert offered["weigh"]["parameters"] == weigh.input_schema

    declined = steward.run_turn_with_tools(session, "Weigh safe", [weigh], approve=lambda _call: False)
    assert "declined" in declined.text


def test_without_a_good_token_nothing_is_answered(installation: Installation) -> None:
    with pytest.raises(UnauthenticatedError) as raised:
        Steward.connect(installation.endpoint, token="not.a.token")
    assert raised.value.reason == "CREDENTIAL_INVALID"
    with (
        grpc.insecure_channel(installation.endpoint.removeprefix("http://")) as channel,
        pytest.raises(grpc.RpcError) as bare,
    ):
        AccessServiceStub(channel).WhoAmI(WhoAmIRequest())
    assert from_rpc(bare.value).reason == "CREDENTIAL_MISSING"


def test_errors_of_the_server_are_typed(steward: Steward) -> None:
    with pytest.raises(NotFoundError) as raised:
        list(steward.turn(f"{steward.team}/sessions/0192f0c1a2b37c4d8e9fa0b1c2d3e4f5", "Hello"))
    assert raised.value.reason == "SESSION_NOT_FOUND"


def test_memory_and_skills_are_for_people_too(steward: Steward) -> None:
    steward.memory.add("speaks German", "profile")
    steward.memory.replace("German", "speaks German and Danish", "profile")
    assert [entry.content for entry in steward.memory.entries("profile")] == ["speaks German and Danish"]
    assert "Danish" in steward.memory.snapshot()
    steward.memory.remove("Danish", "profile")
    assert not list(steward.memory.entries("profile"))

    text = "---\nname: brew-tea\ndescription: Brew tea the way it works\n---\n\n# Tea\n\nBoil water first.\n"
    made = steward.skills.create("brew-tea", text)
    assert steward.skills.view("brew-tea").content == text
    assert made.name in [known.name for known in steward.skills.list()]
    steward.skills.archive(made.name)
    assert made.name not in [known.name for known in steward.skills.list()]


def test_a_client_of_nothing_but_generated_stubs_can_talk(installation: Installation) -> None:
    metadata = (("authorization", f"Bearer {installation.token}"),)
    with grpc.insecure_channel(installation.endpoint.removeprefix("http://")) as channel:
        me = AccessServiceStub(channel).WhoAmI(WhoAmIRequest(), metadata=metadata).user
        create = CreateSessionRequest(parent=me, request_id="stock-1")
        session = SessionServiceStub(channel).CreateSession(create, metadata=metadata).session
        hello = RunTurnRequest(session=session.name, request_id="stock-2", user_message=UserMessage(text="Hello"))
        events = [item.event for item in AgentServiceStub(channel).RunTurn(hello, metadata=metadata)]
    assert events[-1].completed.text == "You said: Hello"


def test_the_example_of_the_readme_works(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEWARD_ENDPOINT", installation.endpoint)
    monkeypatch.setenv("STEWARD_TOKEN", installation.token)
    monkeypatch.setattr("builtins.input", lambda _prompt: "y")
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    example = readme.split("```python\n")[1].split("```")[0]
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    printed = capsys.readouterr().out
    assert "You said: Good morning" in printed
    assert "The staging window opens at 06:40" in printed


def test_a_turn_outlives_the_process_that_ran_it(tmp_path: Path) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def slow(request: dict[str, Any]) -> Reply:
        if asked(request) == "Take your time" and not go_on.is_set():
            reached.set()
            go_on.wait()
        return learner(request)

    model = ModelServer(slow)
    installation = Installation(tmp_path, model)
    installation.start()
    try:
        patient = Retry(patience=90.0)
        with Steward.connect(installation.endpoint, token=installation.token, retry=patient) as steward:
            session = steward.sessions.create()
            events = steward.turn(session, "Take your time")
            assert isinstance(next(events), Started)
            assert reached.wait(30)
            installation.kill()
            go_on.set()
            installation.start()
            rest = list(events)
            assert isinstance(rest[-1], Completed)
            assert rest[-1].text == "You said: Take your time"
            assert not [event for event in rest if isinstance(event, (Started, TextReplaced))]
            assert len(list(steward.sessions.messages(session))) == 2
    finally:
        go_on.set()
        installation.kill()
        model.stop()
