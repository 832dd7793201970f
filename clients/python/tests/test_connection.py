"""Where a client goes and which token it takes, without any server."""

from __future__ import annotations

from pathlib import Path

import pytest

from steward_client.connection import Target, default_data_dir, find_token, parse_endpoint, targets
from steward_client.contract import agent, memory, skill_service
from steward_client.methods import method_of


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("http://127.0.0.1:7400", Target("127.0.0.1:7400", secure=False, local=True)),
        ("localhost:7400", Target("localhost:7400", secure=False, local=True)),
        ("http://[::1]:7400/", Target("[::1]:7400", secure=False, local=True)),
        ("https://steward.example.org", Target("steward.example.org:443", secure=True, local=False)),
        ("unix:/run/steward.sock", Target("unix:/run/steward.sock", secure=False, local=True)),
    ],
)
def test_endpoints_are_read(endpoint: str, target: Target) -> None:
    assert parse_endpoint(endpoint) == target


@pytest.mark.parametrize("endpoint", ["", "ftp://x:1", "http://", "http://x:port", "http://x:1/path"])
def test_other_texts_are_no_endpoints(endpoint: str) -> None:
    with pytest.raises(ValueError, match="is not an endpoint"):
        parse_endpoint(endpoint)


def test_the_environment_names_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEWARD_ENDPOINT", "http://10.0.0.7:7400")
    assert targets(None, None)[""].address == "10.0.0.7:7400"
    assert targets("http://10.0.0.8:7400", None)[""].address == "10.0.0.8:7400"


def test_unknown_packages_are_refused() -> None:
    with pytest.raises(ValueError, match="no package 'memories'"):
        targets(None, {"memories": "http://x:1"})


def test_a_token_is_found_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEWARD_DATA_DIR", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"owner\.token.*start `steward` once"):
        find_token(None, None)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "owner.token").write_text("owner\n")
    assert find_token(None, None) == "owner"
    monkeypatch.setenv("STEWARD_TOKEN", "environment")
    assert find_token(None, None) == "environment"
    (tmp_path / "mine").write_text("file\n")
    assert find_token(None, tmp_path / "mine") == "file"
    assert find_token("given", None) == "given"


@pytest.mark.parametrize("token", ["", " ", "two words", "line\nbreak", "schlüssel"])
def test_other_texts_are_no_tokens(token: str) -> None:
    with pytest.raises(ValueError, match="visible ASCII"):
        find_token(token, None)


def test_a_token_and_a_file_are_one_too_many() -> None:
    with pytest.raises(ValueError, match="not both"):
        find_token("a", "b")


def test_the_data_folder_is_the_one_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEWARD_DATA_DIR")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "/data/home")
    assert default_data_dir() == Path("/data/home/steward")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_data_dir() == Path.home() / ".local" / "share" / "steward"


def test_the_contract_says_what_may_be_repeated() -> None:
    assert method_of(agent.RunTurnRequest).path == "/steward.agent.v1.AgentService/RunTurn"
    assert method_of(memory.ApplyRequest).idempotent
    assert not method_of(skill_service.ViewSkillRequest).idempotent
    with pytest.raises(TypeError, match="not the request of a method"):
        method_of(agent.UserMessage)
