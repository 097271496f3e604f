"""The methods of the Web API this server has, with the scopes each needs; all others are violations."""

from typing import Final

from tests.fakes.slack.methods import accounts, chat, files, history, surfaces
from tests.fakes.slack.methods.call import Asked, Method

__all__ = ["METHODS", "Asked", "Method"]

_HISTORY: Final = frozenset({"channels:history", "groups:history", "im:history", "mpim:history"})
_READ: Final = frozenset({"channels:read", "groups:read", "im:read", "mpim:read"})

METHODS: Final[dict[str, tuple[frozenset[str], Method]]] = {
    "auth.test": (frozenset(), accounts.auth_test),
    "users.info": (frozenset({"users:read"}), accounts.users_info),
    "users.conversations": (_READ, accounts.users_conversations),
    "conversations.info": (_READ, accounts.conversations_info),
    "conversations.open": (frozenset({"im:write"}), accounts.conversations_open),
    "conversations.history": (_HISTORY, history.history),
    "conversations.replies": (_HISTORY, history.replies),
    "chat.postMessage": (frozenset({"chat:write"}), chat.post_message),
    "chat.postEphemeral": (frozenset({"chat:write"}), chat.post_ephemeral),
    "chat.update": (frozenset({"chat:write"}), chat.update),
    "chat.delete": (frozenset({"chat:write"}), chat.remove),
    "chat.startStream": (frozenset({"chat:write"}), chat.start_stream),
    "chat.appendStream": (frozenset({"chat:write"}), chat.append_stream),
    "chat.stopStream": (frozenset({"chat:write"}), chat.stop_stream),
    "files.getUploadURLExternal": (frozenset({"files:write"}), files.get_upload_url),
    "files.completeUploadExternal": (frozenset({"files:write"}), files.complete_upload),
    "files.info": (frozenset({"files:read"}), files.info),
    "views.open": (frozenset(), surfaces.views_open),
    "views.update": (frozenset(), surfaces.views_update),
    "reactions.add": (frozenset({"reactions:write"}), surfaces.add_reaction),
    "reactions.remove": (frozenset({"reactions:write"}), surfaces.remove_reaction),
    "assistant.threads.setStatus": (frozenset({"assistant:write"}), surfaces.set_status),
    "assistant.threads.setSuggestedPrompts": (
        frozenset({"assistant:write"}),
        surfaces.set_prompts,
    ),
    "assistant.threads.setTitle": (frozenset({"assistant:write"}), surfaces.set_title),
}
