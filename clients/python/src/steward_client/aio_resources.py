"""What the asyncio client offers beside turns: `resources` once more; a test holds the two together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar, cast

from google.protobuf.message import Message

from . import requests
from .contract import learning, memory, recall, session, skill, skill_service
from .errors import ReviewPendingError
from .requests import SessionName, SkillAction, Sort, Target
from .resources import POLL, ended
from .tools import Tool

M = TypeVar("M", bound=Message)


class AsyncCaller(Protocol):
    """What a resource needs of its client."""

    user: str
    """`teams/{team}/users/{user}`."""

    async def call(self, request: Message, answer: type[M]) -> M:
        """Makes a call."""
        ...


class AsyncResource:
    """Base of all resources."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    @property
    def _user(self) -> str:
        return self._caller.user

    async def _pages(self, request: Message, answer: type[M]) -> AsyncIterator[M]:
        while True:
            page = await self._caller.call(request, answer)
            yield page
            token = cast("Any", page).next_page_token
            if not token:
                return
            cast("Any", request).page_token = token


class AsyncSessions(AsyncResource):
    """Conversations."""

    async def create(
        self,
        *,
        tools: Sequence[Tool] = (),
        system_message: str = "",
        context_files: Mapping[str, str] | None = None,
        platform_hint: str = "",
        title: str = "",
        project: str = "",
        model: str = "",
        skip_review: bool = False,
        request_id: str | None = None,
    ) -> session.Session:
        """Begins a session: its prompt and tools are frozen from here on. `context_files` maps paths to texts."""
        request = requests.create_session(
            self._user,
            tools=tools,
            system_message=system_message,
            context_files=context_files or {},
            platform_hint=platform_hint,
            title=title,
            project=project,
            model=model,
            skip_review=skip_review,
            request_id=request_id,
        )
        return (await self._caller.call(request, session.CreateSessionResponse)).session

    async def get(self, name: SessionName) -> session.Session:
        """Gives a session with its frozen prompt."""
        request = session.GetSessionRequest(name=requests.named(name))
        return (await self._caller.call(request, session.GetSessionResponse)).session

    async def update(
        self,
        name: SessionName,
        *,
        title: str | None = None,
        model: str | None = None,
        tools: Sequence[Tool] | None = None,
        etag: str = "",
        request_id: str | None = None,
    ) -> session.Session:
        """Changes a session between two turns, and gives it as it is then; what is `None` stays.

        Another model or other tools (all that there are from now on; an empty sequence takes all away) assemble the
        prompt anew. With the `etag` of a session that was read, it is only changed while it is still as it was read.
        """
        request = requests.update_session(name, title=title, model=model, tools=tools, etag=etag, request_id=request_id)
        return (await self._caller.call(request, session.UpdateSessionResponse)).session

    async def list(self) -> AsyncIterator[session.Session]:
        """Gives the caller's sessions, most recently active first."""
        async for page in self._pages(session.ListSessionsRequest(parent=self._user), session.ListSessionsResponse):
            for item in page.sessions:
                yield item

    async def messages(self, name: SessionName) -> AsyncIterator[session.SessionMessage]:
        """Gives what was said, in order."""
        request = session.ListSessionMessagesRequest(parent=requests.named(name))
        async for page in self._pages(request, session.ListSessionMessagesResponse):
            for item in page.messages:
                yield item


class AsyncMemory(AsyncResource):
    """What is remembered. A target is `notes`, `profile`, or the full name of a store."""

    async def entries(self, target: Target = "notes") -> AsyncIterator[memory.Entry]:
        """Gives the entries of a store in their order."""
        request = memory.ListEntriesRequest(parent=requests.store_of(self._user, target))
        async for page in self._pages(request, memory.ListEntriesResponse):
            for item in page.entries:
                yield item

    async def apply(
        self,
        operations: Iterable[memory.Operation],
        target: Target = "notes",
        *,
        etag: str = "",
        reason: str = "",
        request_id: str | None = None,
    ) -> memory.ApplyResponse:
        """Does all of the operations or none; make them with `operation.add`, `.replace` and `.remove`."""
        request = requests.apply(self._user, target, operations, etag, reason, request_id)
        return await self._caller.call(request, memory.ApplyResponse)

    async def add(self, content: str, target: Target = "notes", *, reason: str = "") -> memory.ApplyResponse:
        """Adds an entry; one that is there already is a success that changes nothing."""
        return await self.apply([requests.add(content)], target, reason=reason)

    async def replace(
        self, old_text: str, content: str, target: Target = "notes", *, reason: str = ""
    ) -> memory.ApplyResponse:
        """Replaces the whole entry that contains `old_text`."""
        return await self.apply([requests.replace(old_text, content)], target, reason=reason)

    async def remove(self, old_text: str, target: Target = "notes", *, reason: str = "") -> memory.ApplyResponse:
        """Removes the entry that contains `old_text`."""
        return await self.apply([requests.remove(old_text)], target, reason=reason)

    async def revisions(self, entry: str) -> AsyncIterator[memory.EntryRevision]:
        """Gives the revisions of an entry, newest first."""
        request = memory.ListEntryRevisionsRequest(parent=entry)
        async for page in self._pages(request, memory.ListEntryRevisionsResponse):
            for item in page.revisions:
                yield item

    async def revert(self, entry: str, revision: int, *, etag: str = "", request_id: str | None = None) -> memory.Entry:
        """Makes an earlier revision the present one, as a new revision."""
        request_id = request_id or requests.new_request_id()
        request = memory.RevertEntryRequest(name=entry, revision=revision, etag=etag, request_id=request_id)
        return (await self._caller.call(request, memory.RevertEntryResponse)).entry

    async def snapshot(self, project: str = "") -> str:
        """Gives what a new session is shown."""
        request = memory.GetSnapshotRequest(user=self._user, project=project)
        return (await self._caller.call(request, memory.GetSnapshotResponse)).text

    async def proposals(self) -> AsyncIterator[memory.Proposal]:
        """Gives the team's proposals that wait, oldest first."""
        request = memory.ListProposalsRequest(parent=requests.team_of(self._user))
        async for page in self._pages(request, memory.ListProposalsResponse):
            for item in page.proposals:
                yield item

    async def approve(self, proposal: str) -> memory.Proposal:
        """Applies a proposal."""
        request = memory.ApproveProposalRequest(name=proposal)
        return (await self._caller.call(request, memory.ApproveProposalResponse)).proposal

    async def reject(self, proposal: str, reason: str) -> memory.Proposal:
        """Rejects a proposal."""
        request = memory.RejectProposalRequest(name=proposal, reason=reason)
        return (await self._caller.call(request, memory.RejectProposalResponse)).proposal


class AsyncSkills(AsyncResource):
    """What is known of kinds of work. `view` and `manage` take bare names; everything else takes full names."""

    async def list(self, *, category: str = "", archived: bool = False) -> AsyncIterator[skill.Skill]:
        """Gives the usable skills, or the archived ones."""
        request = skill_service.ListSkillsRequest(parent=self._user, category=category, archived=archived)
        async for page in self._pages(request, skill_service.ListSkillsResponse):
            for item in page.skills:
                yield item

    async def get(self, name: str) -> skill.Skill:
        """Gives a skill without its text; no use is counted."""
        return (await self._caller.call(skill_service.GetSkillRequest(name=name), skill_service.GetSkillResponse)).skill

    async def view(self, name: str, path: str = "") -> skill_service.ViewSkillResponse:
        """Gives SKILL.md and the list of files, or one file; counts as a use."""
        request = skill_service.ViewSkillRequest(parent=self._user, skill=name, path=path)
        return await self._caller.call(request, skill_service.ViewSkillResponse)

    async def set_secret(self, variable: str, value: str) -> skill_service.Secret:
        """Keeps a value for the team's skills that declare the variable (maintainers). No list gives it back."""
        request = skill_service.SetSecretRequest(parent=self._user, secret=variable, value=value)
        return (await self._caller.call(request, skill_service.SetSecretResponse)).secret

    async def manage(
        self,
        name: str,
        action: SkillAction,
        *,
        base_revision: str = "",
        reason: str = "",
        validate_only: bool = False,
        request_id: str | None = None,
    ) -> skill_service.ManageSkillResponse:
        """Applies one action, for example `PatchSkill(old_text=…, new_text=…)`: all of it or none."""
        request = requests.manage_skill(
            self._user,
            name,
            action,
            base_revision=base_revision,
            reason=reason,
            validate_only=validate_only,
            request_id=request_id,
        )
        return await self._caller.call(request, skill_service.ManageSkillResponse)

    async def create(self, name: str, content: str, *, category: str = "", team: bool = False) -> skill.Skill:
        """Makes a skill of a whole SKILL.md, for the caller or for the team."""
        return (await self.manage(name, requests.create_skill(content, category, team=team))).skill

    async def archive(self, name: str) -> skill.Skill:
        """Takes a skill out of listings; it can be restored."""
        request = skill_service.ArchiveSkillRequest(name=name)
        return (await self._caller.call(request, skill_service.ArchiveSkillResponse)).skill

    async def restore(self, name: str) -> skill.Skill:
        """Puts an archived skill back."""
        request = skill_service.RestoreSkillRequest(name=name)
        return (await self._caller.call(request, skill_service.RestoreSkillResponse)).skill

    async def pin(self, name: str, *, pinned: bool = True) -> skill.Skill:
        """Pins or unpins a skill: a pinned one is never deleted, nor changed by automatic processes."""
        request = skill_service.PinSkillRequest(name=name, pinned=pinned)
        return (await self._caller.call(request, skill_service.PinSkillResponse)).skill

    async def revisions(self, name: str) -> AsyncIterator[skill.SkillRevision]:
        """Gives the revisions of a skill, newest first."""
        request = skill_service.ListRevisionsRequest(parent=name)
        async for page in self._pages(request, skill_service.ListRevisionsResponse):
            for item in page.revisions:
                yield item

    async def diff(self, name: str, from_revision: str, to_revision: str = "") -> str:
        """Compares two revisions as a unified diff; empty `to_revision` is the present one."""
        request = skill_service.DiffRevisionsRequest(name=name, from_revision=from_revision, to_revision=to_revision)
        return (await self._caller.call(request, skill_service.DiffRevisionsResponse)).diff

    async def restore_revision(self, name: str, revision: str, *, request_id: str | None = None) -> skill.Skill:
        """Makes an earlier revision the present one, as a new revision."""
        request_id = request_id or requests.new_request_id()
        request = skill_service.RestoreRevisionRequest(name=name, revision=revision, request_id=request_id)
        return (await self._caller.call(request, skill_service.RestoreRevisionResponse)).skill


class AsyncRecall(AsyncResource):
    """Word-for-word search of past sessions."""

    async def search(
        self,
        query: str,
        *,
        limit: int = 0,
        sort: Sort = "relevance",
        after: datetime | None = None,
        before: datetime | None = None,
        current_session: SessionName = "",
    ) -> recall.SearchResponse:
        """Finds conversations by words, "phrases", AND OR NOT, prefix*. Times need a time zone."""
        request = requests.discover(
            self._user,
            query,
            limit=limit,
            sort=sort,
            after=after,
            before=before,
            current_session=current_session,
        )
        return await self._caller.call(request, recall.SearchResponse)

    async def read(self, name: SessionName, *, from_seq: int = 0, limit: int = 0) -> recall.SearchResponse:
        """Reads a session from a message on; `next_seq` goes on."""
        shape = recall.Read(session=requests.named(name), from_seq=from_seq, limit=limit)
        return await self._caller.call(recall.SearchRequest(parent=self._user, read=shape), recall.SearchResponse)

    async def browse(self, *, limit: int = 0) -> recall.SearchResponse:
        """Lists recent conversations."""
        shape = recall.Browse(limit=limit)
        return await self._caller.call(recall.SearchRequest(parent=self._user, browse=shape), recall.SearchResponse)

    async def scroll(self, name: SessionName, around_seq: int, *, window: int = 0) -> recall.SearchResponse:
        """Looks around one message."""
        shape = recall.Scroll(session=requests.named(name), around_seq=around_seq, window=window)
        return await self._caller.call(recall.SearchRequest(parent=self._user, scroll=shape), recall.SearchResponse)


class AsyncReviews(AsyncResource):
    """What became of each look back at a turn."""

    async def list(self, name: SessionName = "") -> AsyncIterator[learning.Review]:
        """Gives the caller's reviews, or those of one session, newest first."""
        request = learning.ListReviewsRequest(parent=self._user, session=requests.named(name))
        async for page in self._pages(request, learning.ListReviewsResponse):
            for item in page.reviews:
                yield item

    async def get(self, name: str) -> learning.Review:
        """Gives a review."""
        return (await self._caller.call(learning.GetReviewRequest(name=name), learning.GetReviewResponse)).review

    async def retry(self, name: str) -> learning.Review:
        """Puts a failed, dead or cancelled review back into the queue. Never repeated by itself."""
        return (await self._caller.call(learning.RetryReviewRequest(name=name), learning.RetryReviewResponse)).review

    async def cancel(self, name: str) -> learning.Review:
        """Cancels a review that waits, or asks a running one to stop."""
        return (await self._caller.call(learning.CancelReviewRequest(name=name), learning.CancelReviewResponse)).review

    async def wait(self, name: SessionName, seq: int, *, timeout: float = 60.0) -> learning.Review:
        """Gives the review that looked at message `seq` (of `Completed`) once it has ended; it was due, or none comes.

        ReviewPendingError after `timeout` seconds.
        """
        end = time.monotonic() + timeout
        pause = POLL[0]
        while True:
            if (review := ended([review async for review in self.list(name)], seq)) is not None:
                return review
            if time.monotonic() + pause > end:
                raise ReviewPendingError(f"no review of message {seq} has ended within {timeout} s")
            await asyncio.sleep(pause)
            pause = min(pause * 2, POLL[1])
