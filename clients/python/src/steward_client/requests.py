"""Requests as helpers make them, shared by the blocking and the asyncio client. Nothing here talks to anyone."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from google.protobuf.field_mask_pb2 import FieldMask

from .contract import agent, memory, recall, session, skill, skill_service
from .tools import Tool, environment

SessionName: TypeAlias = "str | session.Session"
Target: TypeAlias = str
"""A memory store: `notes` or `profile` of the caller, or a full name such as `teams/{team}/memory/notes`."""
Sort: TypeAlias = Literal["relevance", "newest", "oldest"]
_SORTS: Mapping[str, recall.SearchSort] = {
    "relevance": recall.SEARCH_SORT_RELEVANCE,
    "newest": recall.SEARCH_SORT_NEWEST,
    "oldest": recall.SEARCH_SORT_OLDEST,
}


def new_request_id() -> str:
    """Gives an id under which a request may be repeated."""
    return uuid.uuid4().hex


def team_of(user: str) -> str:
    """Gives `teams/{team}` of `teams/{team}/users/{user}`."""
    return user.split("/users/", maxsplit=1)[0]


def named(given: SessionName) -> str:
    """Gives the full name of a session."""
    return given if isinstance(given, str) else given.name


def store_of(user: str, target: Target) -> str:
    """Gives the full name of a memory store."""
    return f"{user}/memory/{target}" if target in {"notes", "profile"} else target


def create_session(
    user: str,
    *,
    tools: Sequence[Tool],
    system_message: str,
    context_files: Mapping[str, str],
    platform_hint: str,
    title: str,
    project: str,
    model: str,
    skip_review: bool,
    request_id: str | None,
) -> session.CreateSessionRequest:
    """See `Sessions.create`."""
    setup = session.SessionSetup(
        system_message=system_message,
        context_files=[session.ContextFile(path=path, text=text) for path, text in context_files.items()],
        client_tools=[tool.definition() for tool in tools],
        environment=environment() if tools else None,
        platform_hint=platform_hint,
    )
    return session.CreateSessionRequest(
        parent=user,
        session=session.Session(title=title, project=project, model=model, skip_review=skip_review),
        setup=setup,
        request_id=request_id or new_request_id(),
    )


def update_session(
    given: SessionName,
    *,
    title: str | None,
    model: str | None,
    tools: Sequence[Tool] | None,
    etag: str,
    request_id: str | None,
) -> session.UpdateSessionRequest:
    """See `Sessions.update`."""
    changes = {"title": title, "model": model, "client_tools": tools}
    paths = [path for path, value in changes.items() if value is not None]
    if not paths:
        raise ValueError("nothing to change: give a title, a model or tools")
    return session.UpdateSessionRequest(
        session=session.Session(name=named(given), title=title or "", model=model or "", etag=etag),
        update_mask=FieldMask(paths=paths),
        client_tools=[tool.definition() for tool in tools or ()],
        request_id=request_id or new_request_id(),
    )


def user_message(
    given: SessionName, text: str, attachments: Iterable[agent.Attachment], request_id: str | None, *, steer: bool
) -> agent.RunTurnRequest:
    """See `Steward.turn`."""
    message = agent.UserMessage(text=text, attachments=attachments)
    request_id = request_id or new_request_id()
    return agent.RunTurnRequest(session=named(given), request_id=request_id, user_message=message, steer=steer)


def tool_results(
    given: SessionName, results: Iterable[agent.ToolResult], request_id: str | None
) -> agent.RunTurnRequest:
    """See `Steward.answer`."""
    answers = agent.ToolResults(results=results)
    return agent.RunTurnRequest(session=named(given), request_id=request_id or new_request_id(), tool_results=answers)


def add(content: str) -> memory.Operation:
    """Adds an entry; one that is there already is a success that changes nothing."""
    return memory.Operation(add=memory.AddEntry(content=content))


def replace(old_text: str, content: str) -> memory.Operation:
    """Replaces the whole entry that contains a text."""
    return memory.Operation(replace=memory.ReplaceEntry(old_text=old_text, content=content))


def remove(old_text: str) -> memory.Operation:
    """Removes the entry that contains a text."""
    return memory.Operation(remove=memory.RemoveEntry(old_text=old_text))


def apply(
    user: str,
    target: Target,
    operations: Iterable[memory.Operation],
    etag: str,
    reason: str,
    request_id: str | None,
) -> memory.ApplyRequest:
    """See `Memory.apply`."""
    return memory.ApplyRequest(
        store=store_of(user, target),
        operations=operations,
        etag=etag,
        reason=reason,
        request_id=request_id or new_request_id(),
    )


SkillAction: TypeAlias = (
    skill_service.CreateSkill
    | skill_service.EditSkill
    | skill_service.PatchSkill
    | skill_service.DeleteSkill
    | skill_service.WriteSkillFile
    | skill_service.RemoveSkillFile
)


def manage_skill(
    user: str,
    name: str,
    action: SkillAction,
    *,
    base_revision: str,
    reason: str,
    validate_only: bool,
    request_id: str | None,
) -> skill_service.ManageSkillRequest:
    """See `Skills.manage`."""
    request = skill_service.ManageSkillRequest(
        parent=user,
        skill=name,
        base_revision=base_revision,
        reason=reason,
        validate_only=validate_only,
        request_id=request_id or new_request_id(),
    )
    match action:
        case skill_service.CreateSkill():
            request.create.CopyFrom(action)
        case skill_service.EditSkill():
            request.edit.CopyFrom(action)
        case skill_service.PatchSkill():
            request.patch.CopyFrom(action)
        case skill_service.DeleteSkill():
            request.delete.CopyFrom(action)
        case skill_service.WriteSkillFile():
            request.write_file.CopyFrom(action)
        case _:
            request.remove_file.CopyFrom(action)
    return request


def create_skill(content: str, category: str, *, team: bool) -> skill_service.CreateSkill:
    """See `Skills.create`."""
    scope = skill.SKILL_SCOPE_TEAM if team else skill.SKILL_SCOPE_USER
    return skill_service.CreateSkill(content=content, category=category, scope=scope)


def discover(
    user: str,
    query: str,
    *,
    limit: int,
    sort: Sort,
    after: datetime | None,
    before: datetime | None,
    current_session: SessionName,
) -> recall.SearchRequest:
    """See `Recall.search`."""
    shape = recall.Discover(query=query, limit=limit, sort=_SORTS[sort])
    if after is not None:
        shape.after.FromDatetime(_aware(after))
    if before is not None:
        shape.before.FromDatetime(_aware(before))
    return recall.SearchRequest(parent=user, discover=shape, current_session=named(current_session))


def _aware(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise ValueError("a time needs a time zone")
    return time
