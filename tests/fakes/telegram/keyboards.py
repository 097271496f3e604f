"""What may hang under a message: checks of inline keyboards, forced replies and the rest."""

from typing import Final

from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.state import Json

MAX_DATA_BYTES: Final = 64
MAX_BUTTONS: Final = 100
MAX_PER_ROW: Final = 8
MAX_PLACEHOLDER: Final = 64
_STYLES: Final = frozenset({"primary", "success", "danger"})
_LINKS: Final = ("http://", "https://", "tg://")


def is_inline(markup: Json | None) -> bool:
    return markup is not None and "inline_keyboard" in markup


def checked(markup: Json | None, problems: list[str]) -> Json | None:
    """Return the markup as it is stored, None when there is nothing to show.

    Raises:
        ApiError: Telegram would refuse it.
    """
    if not markup:
        return None
    if "inline_keyboard" in markup:
        return _inline(markup["inline_keyboard"], problems)
    if "force_reply" in markup:
        placeholder = markup.get("input_field_placeholder", "")
        if len(placeholder) > MAX_PLACEHOLDER:
            raise bad_request("input field placeholder is too long")
        return markup
    if "keyboard" in markup or "remove_keyboard" in markup:
        return markup
    raise bad_request("can't parse reply keyboard markup JSON object")


def _inline(rows: list[list[Json]], problems: list[str]) -> Json | None:
    kept = [row for row in rows if row]
    if sum(map(len, kept)) > MAX_BUTTONS:
        raise bad_request("REPLY_MARKUP_TOO_LONG")
    for row in kept:
        if len(row) > MAX_PER_ROW:
            problems.append(f"{len(row)} buttons in a row; no client shows more than {MAX_PER_ROW}")
        for button in row:
            _button(button, problems)
    return {"inline_keyboard": kept} if kept else None


def _button(button: Json, problems: list[str]) -> None:
    if not str(button.get("text", "")).strip():
        raise bad_request("can't parse inline keyboard button: Text must be non-empty")
    style = button.get("style")
    if style is not None and style not in _STYLES:
        raise bad_request("can't parse inline keyboard button: invalid button style specified")
    if "callback_data" in button:
        if not 1 <= len(str(button["callback_data"]).encode()) <= MAX_DATA_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")
    elif "url" in button:
        if not str(button["url"]).startswith(_LINKS):
            raise bad_request("BUTTON_URL_INVALID")
    elif set(button) - {"text", "style", "icon_custom_emoji_id"}:
        problems.append(f"a kind of button this server does not know: {sorted(button)}")
    else:
        raise bad_request(
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
        )
