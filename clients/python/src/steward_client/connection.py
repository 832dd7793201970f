"""How a client finds its server and its token, the same way as the command line does.

Endpoint: given, else `STEWARD_ENDPOINT`, else 127.0.0.1:7400. Token: given, else `STEWARD_TOKEN`, else the owner's
token that the first start left in the data folder of this machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_ENDPOINT = "http://127.0.0.1:7400"
PACKAGES = frozenset({"access", "agent", "learning", "memory", "recall", "skill"})
_MAX_MESSAGE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Target:
    """Where a channel goes."""

    address: str
    """As gRPC wants it."""
    secure: bool
    """Whether it is TLS."""
    local: bool
    """Whether it stays on this machine."""


def parse_endpoint(endpoint: str) -> Target:
    """Reads `http://host:port`, `https://host:port`, `host:port` or `unix:/path`."""
    if endpoint.startswith("unix:/"):
        return Target(endpoint, secure=False, local=True)
    parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
    wrong = ValueError(f"{endpoint!r} is not an endpoint such as {DEFAULT_ENDPOINT}")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path not in {"", "/"}:
        raise wrong
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise wrong from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    local = parts.hostname in {"localhost", "::1"} or parts.hostname.startswith("127.")
    return Target(f"{host}:{port}", secure=parts.scheme == "https", local=local)


def targets(endpoint: str | None, services: Mapping[str, str] | None) -> dict[str, Target]:
    """Gives the target of each package; the one under the empty name serves all that are not named."""
    named = dict(services or {})
    if unknown := sorted(named.keys() - PACKAGES):
        raise ValueError(f"no package {unknown[0]!r}; there are {', '.join(sorted(PACKAGES))}")
    default = endpoint or os.environ.get("STEWARD_ENDPOINT") or DEFAULT_ENDPOINT
    return {"": parse_endpoint(default)} | {package: parse_endpoint(url) for package, url in named.items()}


def channel_options(target: Target) -> list[tuple[str, int]]:
    """Gives limits, signs of life, and quick reconnection: a restarted server is found again within seconds."""
    options = [
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    return [*options, ("grpc.enable_http_proxy", 0)] if target.local else options


def default_data_dir() -> Path:
    """Gives the data folder of this user, where none is given."""
    if given := os.environ.get("STEWARD_DATA_DIR"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "dev.steward.steward"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", str(Path.home()))) / "steward" / "steward" / "data"
    shared = os.environ.get("XDG_DATA_HOME", "")
    # The base directory specification ignores a relative one.
    return (Path(shared) if Path(shared).is_absolute() else Path.home() / ".local" / "share") / "steward"


def find_token(token: str | None, token_file: str | os.PathLike[str] | None) -> str:
    """Gives the token, or says where it looked."""
    if token is not None and token_file is not None:
        raise ValueError("give a token or a token file, not both")
    text = token
    if text is None and token_file is None:
        text = os.environ.get("STEWARD_TOKEN") or None
    if text is None:
        file = Path(token_file) if token_file is not None else default_data_dir() / "agent" / "owner.token"
        try:
            text = file.read_text(encoding="ascii")
        except OSError as error:
            raise FileNotFoundError(
                f"cannot read the token in {file} ({error.strerror}); start `steward` once on this machine, or give a "
                "token, a token file or STEWARD_TOKEN"
            ) from error
        except UnicodeDecodeError:
            text = ""
    text = text.strip()
    if not text or not all("!" <= character <= "~" for character in text):
        raise ValueError("a token consists of visible ASCII characters")
    return text
