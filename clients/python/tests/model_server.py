"""A scripted model behind the OpenAI-compatible protocol: a pure function of each request, so it needs no state."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "scripted-model"


@dataclass
class Reply:
    """What the model says: text, or calls as (tool, arguments)."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


Script = Callable[[dict[str, Any]], Reply]


def asked(request: dict[str, Any]) -> str:
    """The last message of the person."""
    return next(message["content"] for message in reversed(request["messages"]) if message["role"] == "user")


def since_asked(request: dict[str, Any]) -> list[dict[str, Any]]:
    """What the model itself has done since."""
    messages = request["messages"]
    last = max(index for index, message in enumerate(messages) if message["role"] == "user")
    return messages[last + 1 :]


def learner(request: dict[str, Any]) -> Reply:
    """Echoes, weighs what it is asked to weigh, and as a reviewer keeps what stands after `Remember: `."""
    text, since = asked(request), since_asked(request)
    if "</review_data>" in text:
        return _review(request, text, since)
    if text.startswith("Weigh ") and not since:
        return Reply("Let me see. ", [("weigh", {"item": text.removeprefix("Weigh ")})])
    if since:
        return Reply(f"The scales say: {since[-1]['content']}")
    return Reply(f"You said: {text}")


def _review(request: dict[str, Any], text: str, since: list[dict[str, Any]]) -> Reply:
    verdict = {"result": "changed", "writes": [], "used_skills": [], "rejected": []}
    if since:
        return Reply(json.dumps(verdict))
    said = [message["content"] for message in request["messages"] if message["role"] == "user"]
    lessons = [words.split("Remember: ")[1] for words in said if words.startswith("Remember: ")]
    data = text[text.index("<review_data>") :].splitlines()
    spans = [line.split()[0] for line in data if line.startswith("s") and "Remember:" in line]
    if not lessons or not spans:
        rejected = [{"candidate": "the small talk", "reason": "nothing lasting"}]
        return Reply(json.dumps(verdict | {"result": "no_change", "rejected": rejected}))
    why = "Next time, when this comes up, the agent will know instead of asking."
    cited = {"evidence": [spans[0]], "basis": "stated", "why": why}
    return Reply(calls=[("memory", {"action": "add", "target": "notes", "content": lessons[0]} | cited)])


class ModelServer:
    """Serves a script on a free port of this machine."""

    def __init__(self, script: Script) -> None:
        self.requests: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(request)
                body = "".join(f"data: {event}\n\n" for event in _stream(script(request), len(request["messages"])))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _stream(reply: Reply, salt: int) -> Iterator[str]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return json.dumps({"object": "chat.completion.chunk", "model": MODEL, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for word in re.findall(r"\S*\s*", reply.text):
        yield chunk({"content": word})
    for index, (tool, arguments) in enumerate(reply.calls):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"index": index, "id": f"call_{salt}_{index}", "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
    yield chunk({}, "tool_calls" if reply.calls else "stop")
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    yield json.dumps({"object": "chat.completion.chunk", "model": MODEL, "choices": [], "usage": usage})
    yield "[DONE]"
