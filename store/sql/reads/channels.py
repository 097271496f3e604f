"""Places to send to, and home channels."""

from typing import Final

from store.sql.columns import place
from store.sql.lines import lines

_CHANNEL: Final = lines(
    "SELECT id, platform, account, chat_type, chat_key, thread_key, '' AS participant, name,",
    "  parent_name FROM directory WHERE gone_at IS NULL",
)
CHANNELS: Final = _CHANNEL
AND_CHANNEL_PLATFORM: Final = "\n  AND platform = :platform"
AND_CHANNEL_SEARCH: Final = "\n  AND (instr(name_folded, :search) > 0 OR chat_key = :search_key)"
AND_CHANNEL_BEHIND: Final = (
    "\n  AND (platform, name_folded, id) > (:last_platform, :last_name, :last_id)"
)
# Also of one that is gone since: the next page begins behind where it was.
CHANNEL_POSITION: Final = lines(
    "SELECT id, platform, name_folded FROM directory",
    "WHERE platform = :platform AND account = :account AND chat_key = :chat",
    "  AND thread_key = :thread",
)
BY_NAME: Final = "\nORDER BY platform, name_folded, id LIMIT :limit"
CHANNEL_BY_NAME: Final = _CHANNEL + (
    "\n  AND platform = :platform AND name_folded = :name ORDER BY id LIMIT :limit"
)
CHANNEL_BY_PREFIX: Final = _CHANNEL + lines(
    "",
    "  AND platform = :platform AND name_folded >= :name AND name_folded < :name || char(1114111)",
    "ORDER BY name_folded, id LIMIT :limit",
)
# Known by the directory, else by a conversation that took place there.
CHANNEL_BY_ID: Final = _CHANNEL + lines(
    "",
    "  AND platform = :platform AND chat_key = :chat AND thread_key = :thread",
    "ORDER BY account LIMIT :limit",
)
PLACE_BY_ID: Final = lines(
    "SELECT v.id, v.platform, v.account, v.chat_type, v.chat_key, v.thread_key,",
    "  '' AS participant, coalesce(nullif(t.title, ''), v.display_name) AS name, '' AS parent_name",
    "FROM conversation v JOIN chat t ON t.id = v.chat_id",
    "WHERE v.platform = :platform AND v.chat_key = :chat AND v.thread_key = :thread",
    "GROUP BY v.account ORDER BY v.account LIMIT :limit",
)
HOMES: Final = lines(
    "SELECT platform, account, chat_key, thread_key FROM home_channel",
    "WHERE platform = :platform ORDER BY account LIMIT :limit",
)
DIRECT: Final = lines(
    "SELECT v.id,",
    place("v"),
    "FROM conversation v",
    "WHERE v.platform = :platform AND v.chat_type = 'dm' AND EXISTS (SELECT 1 FROM message m",
    "  WHERE m.conversation_id = v.id AND m.author = :person)",
    "ORDER BY v.last_at DESC, v.id DESC LIMIT :limit",
)
