from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake import TOKEN, Fake

from steward_client import Retry, Steward

QUICK = Retry(attempts=3, first_wait=0.001, longest_wait=0.01, patience=10.0)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keeps this machine's own Steward out of the tests."""
    for name in ("STEWARD_ENDPOINT", "STEWARD_TOKEN", "STEWARD_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEWARD_DATA_DIR", str(tmp_path / "no-installation"))


@pytest.fixture
def fake() -> Iterator[Fake]:
    server = Fake()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def steward(fake: Fake) -> Iterator[Steward]:
    with Steward.connect(fake.endpoint, token=TOKEN, retry=QUICK) as client:
        yield client
