"""The tools that change something: both ask the running gateway, which has the last word."""

import asyncio

from gateway.domain.delivery import Origin
from gateway.domain.question import Action, Surface
from gateway.ports import GatewayClient, SendRequest
from mcp_host.bridge import arguments, shapes
from mcp_host.bridge.folders import Folders


class Acting:
    """Sends and decides. What the gateway refuses is raised as it said it."""

    def __init__(self, gateway: GatewayClient, folders: Folders) -> None:
        self._gateway = gateway
        self._folders = folders

    async def messages_send(self, given: arguments.MessagesSend) -> shapes.Sent:
        """Post a message as the bot; the platform has it when this returns.

        Raises:
            Problem: A file may not be sent.
            GatewayNotRunning: At once; nothing is queued.
            GatewayRefused: Why it was not sent, or is not known to be.
        """
        files = [await asyncio.to_thread(self._folders.checked, path) for path in given.attachments]
        sent = await self._gateway.send(
            SendRequest(
                target=given.target,
                text=given.message,
                attachments=tuple(files),
                idempotency_key=given.idempotency_key,
                origin=Origin.BRIDGE,
            )
        )
        answer = shapes.Sent(
            success=True,
            platform=sent.platform,
            chat_id=sent.chat,
            message_id=sent.message_ids[0],
        )
        if len(sent.message_ids) > 1:
            answer["message_ids"] = list(sent.message_ids)
        return answer

    async def permissions_respond(self, given: arguments.PermissionsRespond) -> shapes.Resolved:
        """Decide what waits; the first decision wins, whoever made it.

        Raises:
            GatewayNotRunning: At once.
            GatewayRefused: It was decided before, has expired, or is none; who was first is told.
        """
        decided = await self._gateway.decide(
            given.id,
            action=Action(given.decision),
            surface=Surface.BRIDGE,
            reason=given.reason or "",
        )
        answer = shapes.Resolved(
            resolved=not decided.votes_needed,
            approval_id=decided.question,
            decision=decided.action.value,
        )
        if decided.votes_needed:
            answer["votes_needed"] = decided.votes_needed
        return answer
