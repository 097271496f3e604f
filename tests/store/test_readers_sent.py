import json

import pytest

from gateway.domain.delivery import DeliveryKind, KnownId, Neighbours, SentMessage
from gateway.domain.ids import ChatType, DeliveryId, Place
from store.readers import OpenReaders
from tests.store.rows import DM, Rows

pytestmark = pytest.mark.anyio

OTHER = Place(platform="telegram", chat="200", chat_type=ChatType.DM)
ELSEWHERE = Place(platform="telegram", account="b", chat="100", chat_type=ChatType.DM)


async def test_a_sent_message_is_found_by_any_of_its_possible_ids(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    rows.delivery(conversation, kind="card", state="sent", native_id="41+42", payload='{"reply":1}')
    other = rows.conversation(OTHER)
    rows.delivery(other, kind="card", state="sent", native_id="42")

    found = await readers.ports.sent.find("telegram", "", DM.chat, ["42", "41+42"])

    assert found == SentMessage(
        place=DM, kind=DeliveryKind.CARD, native_id="41+42", payload='{"reply":1}'
    )
    assert await readers.ports.sent.find("telegram", "", DM.chat, ["43"]) is None
    assert await readers.ports.sent.find("telegram", "b", DM.chat, ["42", "41+42"]) is None


async def test_the_neighbours_of_a_send_say_what_was_known_when_it_began(
    readers: OpenReaders, rows: Rows
) -> None:
    mine, other, foreign = (rows.conversation(place) for place in (DM, OTHER, ELSEWHERE))
    rows.delivery(other, state="sent", native_id="10", sent_at=1_000)
    rows.delivery(other, state="sent", native_id="13", sent_at=3_000)
    rows.delivery(foreign, state="sent", native_id="99", sent_at=1_000)
    rows.message(mine, native_id="11", created_at=2_000)
    rows.message(mine, native_id="14", created_at=4_000)
    rows.inbound(mine, json.dumps({"native_id": "9"}), received_at=1_500)
    rows.inbound(mine, json.dumps({"native_id": "q1"}), kind="press", received_at=1_500)
    rows.delivery(other, state="sending", sending_at=2_500)
    lost = rows.delivery(mine, state="uncertain", sending_at=2_000)

    found = await readers.ports.sent.neighbours(DeliveryId(lost))

    assert found == Neighbours(
        known=(
            KnownId(chat="200", native_id="13", earlier=False),
            KnownId(chat="200", native_id="10", earlier=True),
            KnownId(chat="100", native_id="14", earlier=False),
            KnownId(chat="100", native_id="11", earlier=True),
            KnownId(chat="100", native_id="9", earlier=True),
        ),
        unsettled=2,
    )


async def test_the_message_a_reply_answers_is_the_newest_its_turn_took(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    message = rows.message(conversation, native_id="21")
    payload = json.dumps({"native_id": "22"})
    rows.inbound(conversation, "{}", kind="message", lane="turn", turn_id=5, message_id=message)
    rows.inbound(conversation, payload, lane="turn", turn_id=5)
    reply = rows.delivery(conversation, turn_id=5)
    notice = rows.delivery(conversation)

    assert await readers.ports.sent.answered(DeliveryId(reply)) == "22"
    assert await readers.ports.sent.answered(DeliveryId(notice)) is None
