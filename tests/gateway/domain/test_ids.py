import re
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.domain.ids import THREADED, Actor, ChatType, Place
from tests.support.requirement import requirement

# Few signs, so that keys would really meet if the encoding let them.
tricky = st.text(alphabet="a:%3A25@", max_size=5)
named = tricky.filter(bool)
platforms = st.sampled_from(["telegram", "slack", "discord"])


@st.composite
def places(draw: st.DrawFn) -> Place:
    chat_type = draw(st.sampled_from(ChatType))
    return Place(
        platform=draw(platforms),
        account=draw(tricky),
        chat=draw(named),
        chat_type=chat_type,
        thread=draw(named) if chat_type in THREADED else "",
        participant=draw(tricky),
    )


@requirement("conversation.key.shape")
@pytest.mark.parametrize(
    ("place", "key"),
    [
        (
            Place(platform="telegram", chat="42", chat_type=ChatType.DM),
            "agent:main:telegram:dm:42",
        ),
        (
            Place(platform="slack", chat="C1", chat_type=ChatType.CHANNEL, participant="U1"),
            "agent:main:slack:channel:C1:U1",
        ),
        (
            Place(platform="telegram", chat="-5", chat_type=ChatType.TOPIC, thread="9"),
            "agent:main:telegram:topic:-5:9",
        ),
        (
            Place(platform="discord", chat="1", chat_type=ChatType.THREAD, thread="2"),
            "agent:main:discord:thread:1:2",
        ),
        (
            Place(
                platform="telegram",
                account="work",
                chat="-7",
                chat_type=ChatType.GROUP,
                participant="8",
            ),
            "agent:main:telegram@work:group:-7:8",
        ),
        (
            Place(platform="terminal", chat="a:b%c", chat_type=ChatType.DM),
            "agent:main:terminal:dm:a%3Ab%25c",
        ),
    ],
)
def test_a_session_key_names_the_place_part_by_part(place: Place, key: str) -> None:
    assert place.session_key == key


@requirement("conversation.key.shape")
@given(places())
def test_every_session_key_has_the_documented_shape(place: Place) -> None:
    parts = place.session_key.split(":")

    assert parts[:2] == ["agent", "main"]
    assert parts[2].partition("@")[0] == place.platform
    assert parts[3] in {"dm", "group", "channel", "thread", "topic"}
    assert [unquote(part) for part in parts[4:]] == [
        part for part in (place.chat, place.thread, place.participant) if part
    ]
    assert all(re.fullmatch(r"(?:[^:%]|%25|%3A)+", part) for part in parts[4:])


@requirement("conversation.key.never_collide")
@given(places(), places())
@example(
    Place(platform="p", chat="1:2", chat_type=ChatType.GROUP),
    Place(platform="p", chat="1", chat_type=ChatType.GROUP, participant="2"),
)
@example(
    Place(platform="p", chat="1%3A2", chat_type=ChatType.GROUP),
    Place(platform="p", chat="1:2", chat_type=ChatType.GROUP),
)
@example(
    Place(platform="p", chat="1", chat_type=ChatType.TOPIC, thread="2"),
    Place(platform="p", chat="1", chat_type=ChatType.GROUP, participant="2"),
)
@example(
    Place(platform="p", account="a", chat="1", chat_type=ChatType.DM),
    Place(platform="p", account="b", chat="1", chat_type=ChatType.DM),
)
def test_two_places_share_a_session_key_only_when_they_are_the_same(one: Place, two: Place) -> None:
    assert (one.session_key == two.session_key) == (one == two)


@pytest.mark.parametrize(
    ("chat_type", "thread"),
    [
        (ChatType.DM, "9"),
        (ChatType.GROUP, "9"),
        (ChatType.CHANNEL, "9"),
        (ChatType.THREAD, ""),
        (ChatType.TOPIC, ""),
    ],
)
def test_a_thread_id_goes_with_threads_and_topics_alone(chat_type: ChatType, thread: str) -> None:
    with pytest.raises(ValueError, match="do not agree"):
        Place(platform="telegram", chat="1", chat_type=chat_type, thread=thread)


@pytest.mark.parametrize(("platform", "chat"), [("", "1"), ("telegram", "")])
def test_a_place_without_platform_or_chat_is_refused(platform: str, chat: str) -> None:
    with pytest.raises(ValueError, match="platform and a chat"):
        Place(platform=platform, chat=chat, chat_type=ChatType.DM)


@given(platform=st.text(alphabet="abc@", min_size=1, max_size=4), identifier=tricky)
def test_an_actor_is_read_back_from_its_text(platform: str, identifier: str) -> None:
    actor = Actor(platform=platform, id=identifier)

    assert Actor.parse(str(actor)) == actor


def test_a_part_of_ours_is_an_actor_without_an_id() -> None:
    assert Actor.parse("agent", name="Hermes") == Actor(platform="agent", id="", name="Hermes")
