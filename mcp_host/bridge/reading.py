"""The tools that read conversations, messages, channels and what waits for a decision."""

import base64
from typing import Final

from gateway.domain.conversation import Channel, ConversationView
from gateway.domain.errors import FileUnreadable
from gateway.domain.files import FileState, in_words
from gateway.domain.ids import MessageId
from gateway.domain.message import Attachment
from mcp_host.bridge import arguments, rendering, shapes
from mcp_host.bridge.config import BridgeConfig
from mcp_host.bridge.ports import BridgePorts
from mcp_host.bridge.problems import Problem

MAX_APPROVALS: Final = 500
MAX_DATA: Final = 5_000_000
"""Bytes of a file that are returned; a larger one is read from its path."""
MAX_ID: Final = 2**63 - 1


class Reading:
    """Answers from the store alone; no gateway needs to run."""

    def __init__(self, ports: BridgePorts, config: BridgeConfig) -> None:
        self._ports = ports
        self._config = config
        self._conversations = ports.conversations

    async def conversations_list(
        self, given: arguments.ConversationsList
    ) -> shapes.ConversationList:
        """Return conversations, newest first."""
        try:
            page = await self._conversations.page(
                platform=given.platform,
                search=given.search,
                before=given.before,
                limit=given.limit,
            )
        except ValueError as error:
            raise _no_page() from error
        found = [rendering.conversation(view) for view in page.conversations]
        answer = shapes.ConversationList(count=len(found), conversations=found)
        if page.next is not None:
            answer["next"] = page.next
        return answer

    async def conversation_get(self, given: arguments.ConversationGet) -> shapes.WholeConversation:
        """Return one conversation."""
        return rendering.whole_conversation(await self._found(given.session_key))

    async def messages_read(self, given: arguments.MessagesRead) -> shapes.MessageList:
        """Return messages of the current session, or of the one a bound belongs to."""
        view = await self._found(given.session_key)
        before = _message_id("before_id", given.before_id)
        after = _message_id("after_id", given.after_id)
        session, total = view.session, view.message_count
        bound = before if before is not None else after
        if bound is not None:
            named = await self._conversations.session_of(view.id, bound)
            if named is None:
                raise Problem("not_found", f"there is no message {bound} in this conversation")
            session, total = named.id, named.message_count
        rows = await self._conversations.messages(
            session, before=before, after=after, limit=given.limit + 1
        )
        more = len(rows) > given.limit
        if more:
            rows = rows[-given.limit :] if after is None else rows[: given.limit]
        answer = shapes.MessageList(
            session_key=view.session_key,
            count=len(rows),
            total_in_session=total,
            messages=[rendering.message(row) for row in rows],
        )
        if more:
            answer["next"] = str(rows[0].id if after is None else rows[-1].id)
        return answer

    async def attachments_fetch(self, given: arguments.AttachmentsFetch) -> shapes.AttachmentList:
        """Return the files of a message, with their bytes when that is asked for."""
        view = await self._found(given.session_key)
        identifier = _message_id("message_id", given.message_id)
        message = None
        if identifier is not None:
            message = await self._conversations.message(view.id, identifier)
        if message is None:
            sentence = f"there is no message {given.message_id} in this conversation"
            raise Problem("not_found", sentence)
        files = [
            await self._fetched(item, include_data=given.include_data)
            for item in message.attachments
        ]
        return shapes.AttachmentList(
            message_id=str(message.id), count=len(files), attachments=files
        )

    async def channels_list(self, given: arguments.ChannelsList) -> shapes.ChannelList:
        """Return places to send to: those that are allowed."""
        found, before, more = list[Channel](), given.before, True
        while more and len(found) <= given.limit:
            try:
                rows = await self._ports.channels.page(
                    platform=given.platform,
                    search=given.search,
                    before=before,
                    limit=given.limit + 1,
                )
            except ValueError as error:
                raise _no_page() from error
            found += [row for row in rows if self._config.allows(row)]
            more = len(rows) > given.limit
            before = rows[-1].target if rows else before
        shown = [rendering.channel(row) for row in found[: given.limit]]
        answer = shapes.ChannelList(count=len(shown), channels=shown)
        if len(found) > given.limit:
            answer["next"] = shown[-1]["target"]
        return answer

    async def permissions_list_open(
        self, given: arguments.PermissionsListOpen
    ) -> shapes.ApprovalList:
        """Return what waits for a decision, oldest first."""
        del given
        questions = await self._ports.questions.open(limit=MAX_APPROVALS)
        found = [
            rendering.approval(
                question,
                None if question.arguments is None else self._ports.shown(question.arguments),
            )
            for question in questions
        ]
        return shapes.ApprovalList(count=len(found), approvals=found)

    async def _fetched(self, item: Attachment, *, include_data: bool) -> shapes.FetchedAttachment:
        found = shapes.FetchedAttachment(**rendering.attachment(item))
        if item.state is not FileState.STORED:
            found["error"] = item.problem or f"it is {item.state.value}"
            return found
        media = self._ports.media
        found["path"] = str(media.path(item.key))
        if include_data:
            try:
                data = await media.read(item.key, limit=MAX_DATA + 1)
            except FileUnreadable as error:
                found["error"] = error.public_message
                return found
            if len(data) <= MAX_DATA:
                found["data"] = base64.b64encode(data).decode("ascii")
            else:
                found["error"] = f"it is larger than {in_words(MAX_DATA)}: read it from its path"
        return found

    async def _found(self, session_key: str) -> ConversationView:
        view = await self._conversations.find(session_key)
        if view is None:
            raise Problem("not_found", f"there is no conversation {session_key}")
        return view


def _message_id(name: str, text: str | None) -> MessageId | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX_ID):
        raise Problem("invalid_arguments", f"{name} is no message id")
    return MessageId(int(text))


def _no_page() -> Problem:
    return Problem("invalid_arguments", "before is no `next` of an earlier page")
