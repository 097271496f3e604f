import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.conversation import Ambiguous, Channel
from gateway.domain.ids import ChatType, Place
from store.readers import OpenReaders
from store.readers.channels import target_of
from tests.store.rows import Rows

pytestmark = pytest.mark.anyio


def name(found: Channel | Ambiguous | None) -> str | None:
    assert not isinstance(found, Ambiguous)
    return None if found is None else found.name


async def test_channels_are_listed_by_platform_and_name(readers: OpenReaders, rows: Rows) -> None:
    rows.channel("#ops", "C2")
    rows.channel("#Dev", "C1")
    rows.channel("#gone", "C3", gone_at=1)
    rows.channel("news", "-9", platform="telegram")
    page = readers.ports.channels.page

    assert [channel.name for channel in await page(limit=9)] == ["#Dev", "#ops", "news"]
    assert [channel.name for channel in await page(platform="slack", limit=1)] == ["#Dev"]
    assert [channel.name for channel in await page(search="#OP", limit=9)] == ["#ops"]
    assert [channel.name for channel in await page(search="C1", limit=9)] == ["#Dev"]


async def test_a_listed_target_resolves_to_the_channel_itself(
    readers: OpenReaders, rows: Rows
) -> None:
    rows.channel("#a", "C1:%3A", account="work")
    rows.channel("topic", "-5", platform="telegram", chat_type="topic", thread_key="9")
    rows.channel("room", "!r:server", platform="matrix")

    for channel in await readers.ports.channels.page(limit=9):
        assert await readers.ports.channels.resolve(channel.target) == channel


async def test_a_platform_alone_is_its_home_channel(readers: OpenReaders, rows: Rows) -> None:
    rows.channel("#home", "C1")
    rows.insert("home_channel", platform="slack", chat_key="C1", set_by="cli:0", set_at=0)
    resolve = readers.ports.channels.resolve

    assert name(await resolve("slack")) == "#home"
    assert await resolve("telegram") is None
    assert await resolve("slack:nowhere") is None, "never the home channel instead"
    assert await resolve("slack:") is None


async def test_homes_of_two_accounts_are_told_apart_by_account(
    readers: OpenReaders, rows: Rows
) -> None:
    for account in ("a", "b"):
        rows.insert(
            "home_channel",
            platform="slack",
            account=account,
            chat_key="C1",
            set_by="config",
            set_at=0,
        )
    resolve = readers.ports.channels.resolve

    assert await resolve("slack") == Ambiguous(candidates=("slack@a:C1", "slack@b:C1"))
    found = await resolve("slack@b")
    assert isinstance(found, Channel)
    assert found.place == Place(
        platform="slack", account="b", chat="C1", chat_type=ChatType.CHANNEL
    )


async def test_an_id_comes_before_a_name_and_a_name_before_a_prefix(
    readers: OpenReaders, rows: Rows
) -> None:
    rows.channel("by id", "ops")
    rows.channel("#ops", "C1")
    rows.channel("#ops-night", "C2")
    resolve = readers.ports.channels.resolve

    assert name(await resolve("slack:ops")) == "by id"
    assert name(await resolve("slack:#OPS")) == "#ops"
    assert name(await resolve("slack:ops-")) == "#ops-night"
    assert await resolve("slack:op") == Ambiguous(candidates=("slack:C1", "slack:C2"))
    assert await resolve("slack:ops-night-shift") is None


async def test_two_of_one_name_are_told_apart_by_their_parent(
    readers: OpenReaders, rows: Rows
) -> None:
    rows.channel("#general", "1", platform="discord", parent_name="Guild A")
    rows.channel("#general", "2", platform="discord", parent_name="Guild B")
    resolve = readers.ports.channels.resolve

    assert await resolve("discord:#general") == Ambiguous(candidates=("discord:1", "discord:2"))
    found = await resolve("discord:guild b/general")
    assert isinstance(found, Channel)
    assert found.place.chat == "2"


async def test_a_name_with_a_thread_leads_to_the_thread(readers: OpenReaders, rows: Rows) -> None:
    rows.channel("Forum", "-5", platform="telegram", chat_type="group")
    rows.channel("Bugs", "-5", platform="telegram", chat_type="topic", thread_key="9")
    resolve = readers.ports.channels.resolve

    assert name(await resolve("telegram:forum:9")) == "Bugs"
    assert name(await resolve("telegram:-5:9")) == "Bugs"
    assert await resolve("telegram:forum:10") is None


async def test_a_chat_that_only_talked_to_us_is_known_by_its_id(
    readers: OpenReaders, rows: Rows
) -> None:
    for participant in ("7", "8"):
        place = Place(
            platform="telegram", chat="-1", chat_type=ChatType.GROUP, participant=participant
        )
        rows.conversation(place, chat_title="Friends")

    found = await readers.ports.channels.resolve("telegram:-1")

    assert found == Channel(
        target="telegram:-1",
        platform="telegram",
        name="Friends",
        chat_type="group",
        place=Place(platform="telegram", chat="-1", chat_type=ChatType.GROUP),
    )
    assert await readers.ports.channels.resolve("slack:-1") is None


@given(
    chat=st.text(alphabet="a:%3A/#@", min_size=1, max_size=6),
    thread=st.text(alphabet="a:%3A", max_size=4),
)
def test_two_places_of_an_account_never_share_a_target(chat: str, thread: str) -> None:
    kind = ChatType.THREAD if thread else ChatType.GROUP
    place = Place(platform="p", chat=chat, chat_type=kind, thread=thread)

    parts = target_of(place).split(":")

    assert len(parts) == (3 if thread else 2)
    plain = [part.replace("%3A", ":").replace("%25", "%") for part in parts]
    assert plain == ["p", chat, *([thread] if thread else [])]
