"""The manifest of our app: what a workspace has to allow, as Slack's own form takes it. Pure."""

import json
from typing import Any, Final

from adapters.slack.config import Mode

SCOPES: Final = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:write",
    "users:read",
)
EVENTS: Final = (
    "app_mention",
    "assistant_thread_started",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
)
COMMAND: Final = "/hermes"
MAX_NAME: Final = 35


def manifest(*, name: str = "Hermes", mode: Mode = Mode.SOCKET, url: str = "") -> dict[str, Any]:
    """Return the manifest; `url` is where Slack posts in HTTP mode, such as https://…/slack/events."""
    posted = {} if mode is Mode.SOCKET else {"request_url": url}
    command: dict[str, Any] = {
        "command": COMMAND,
        "description": "Talk to Hermes, or give it a command",
        "usage_hint": "help | new | stop | status | tools | approve ID | deny ID",
        "should_escape": True,
    }
    if mode is Mode.HTTP:
        command["url"] = url
    return {
        "display_information": {"name": name[:MAX_NAME]},
        "features": {
            "app_home": {"messages_tab_enabled": True, "messages_tab_read_only_enabled": False},
            "assistant_view": {"assistant_description": "Answers, and runs tools you allow."},
            "bot_user": {"display_name": name[:MAX_NAME], "always_online": True},
            "slash_commands": [command],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {"bot_events": list(EVENTS), **posted},
            "interactivity": {"is_enabled": True, **posted},
            "org_deploy_enabled": False,
            "socket_mode_enabled": mode is Mode.SOCKET,
            "token_rotation_enabled": False,
        },
    }


def as_json(document: dict[str, Any]) -> str:
    """Return a manifest as people paste it."""
    return json.dumps(document, indent=2)
