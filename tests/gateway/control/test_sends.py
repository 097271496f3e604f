import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.delivery import Delivery, Origin
from gateway.domain.errors import DeliveryDeferred, DeliveryRejected, GatewayRefused
from gateway.domain.health import Health, HealthState
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.operations.upkeep import SetHome
from gateway.ports import SendRequest
from gateway.runtime.sending import BRIDGE_PER_MINUTE
from mcp_host.bridge.config import BridgeConfig
from tests.fakes.house import rows
from tests.fakes.loopback import PLATFORM, chat
from tests.fakes.office import Office, open_office
from tests.support.clock import NOON
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

TOPIC = Place(platform=PLATFORM, chat="g", chat_type=ChatType.TOPIC, thread="7")


async def known(office: Office) -> None:
    """Let the gateway see Anna's chat and a topic, and give the platform a home channel."""
    await office.say("hello")
    await office.say("hello", place=TOPIC)
    await office.chat.until(lambda: len(office.chat.texts()) == 2)
    home = chat(5)
    await office.store.set_home(SetHome(place=home, by=Actor(platform="config", id="x")))


async def refused(office: Office, request: SendRequest) -> GatewayRefused:
    with pytest.raises(GatewayRefused) as caught:
        await office.client.send(request)
    return caught.value


def outbox(office: Office) -> list[tuple[object, ...]]:
    found = rows(office.path.parent / "state.db", "SELECT body FROM delivery WHERE origin = 'send'")
    return [row[0] for row in found]


@requirement("target.forms")
@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("loop", chat(5)),
        ("loop:1", chat(1)),
        ("loop:g:7", TOPIC),
        ("loop:@Anna", chat(1)),
        ("loop:#anna", chat(1)),
    ],
)
async def test_each_form_of_a_target_reaches_its_chat(
    tmp_path: Path, target: str, place: Place
) -> None:
    async with open_office(tmp_path) as office:
        await known(office)
        sent = await office.client.send(SendRequest(target=target, text="ping"))

    delivery = office.chat.sent[-1]
    assert (delivery.body, delivery.place) == ("ping", place)
    assert (sent.platform, sent.chat, sent.thread) == (PLATFORM, place.chat, place.thread)
    assert sent.message_ids == ("m2",)


@requirement("target.never_home_fallback", "cli.send.nothing_queued")
@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("loop:999", "unresolved_target"),
        ("loop:#nobody", "unresolved_target"),
        ("loop:g:8", "unresolved_target"),
        ("slack", "unknown_platform"),
        ("slack:C1", "unknown_platform"),
        ("nonsense with spaces", "unknown_platform"),
    ],
)
async def test_what_resolves_to_nothing_is_an_error_and_leaves_nothing(
    tmp_path: Path, target: str, code: str
) -> None:
    async with open_office(tmp_path) as office:
        await known(office)
        error = await refused(office, SendRequest(target=target, text="ping"))
        assert outbox(office) == []

    assert error.code == code
    assert len(office.chat.sent) == 2


async def test_a_platform_without_a_home_says_how_to_set_one(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        error = await refused(office, SendRequest(target="loop", text="ping"))

    assert error.code == "no_home_channel"
    assert "platforms.loop.home_channel" in str(error)


async def test_a_name_of_several_channels_names_them(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        await office.say("hello")
        await office.say("hello", place=chat(2))
        await office.chat.until(lambda: len(office.chat.texts()) == 2)
        error = await refused(office, SendRequest(target="loop:@anna", text="ping"))

    assert error.code == "ambiguous_target"
    assert error.details["candidates"] == ["loop:1", "loop:2"]


@requirement("cli.send.waits_for_id")
async def test_a_send_returns_only_with_the_platforms_id(tmp_path: Path) -> None:
    waits: list[str] = []

    def late(delivery: Delivery) -> None:
        if delivery.body == "ping" and not waits:
            waits.append(delivery.body)
            raise DeliveryDeferred(PLATFORM, 0.05)

    async with open_office(tmp_path) as office:
        await known(office)
        office.chat.on_send = late
        sent = await office.client.send(SendRequest(target="loop:1", text="ping"))
        messages = await office.readers.conversations.find(chat(1).session_key)

    assert waits == ["ping"]
    assert sent.message_ids == ("m2",)
    assert messages is not None
    assert messages.last_message is not None
    assert (messages.last_message.role, messages.last_message.text) == ("note", "ping")


async def test_what_is_not_confirmed_in_time_is_named_and_stays_under_way(tmp_path: Path) -> None:
    def never(delivery: Delivery) -> None:
        raise DeliveryDeferred(PLATFORM, 1000)

    async with open_office(tmp_path) as office:
        await known(office)
        office.chat.on_send = never
        error = await refused(office, SendRequest(target="loop:1", text="ping", wait_ms=50))

    assert error.code == "not_confirmed"
    assert str(error.details["delivery_id"]).isdecimal()


async def test_what_the_platform_refuses_is_told_with_its_reason(tmp_path: Path) -> None:
    def refuse(delivery: Delivery) -> None:
        raise DeliveryRejected(PLATFORM, "chat not found")

    async with open_office(tmp_path) as office:
        await known(office)
        office.chat.on_send = refuse
        error = await refused(office, SendRequest(target="loop:1", text="ping"))

    assert error.code == "rejected"
    assert "chat not found" in str(error)


@requirement("cli.send.nothing_queued")
@pytest.mark.parametrize("state", [HealthState.UNAUTHORIZED, HealthState.OFF])
async def test_a_platform_that_is_down_for_good_gets_nothing_queued(
    tmp_path: Path, state: HealthState
) -> None:
    async with open_office(tmp_path) as office:
        await known(office)
        office.health[(PLATFORM, "")] = Health(state=state, since=NOON, reason="bad token")
        error = await refused(office, SendRequest(target="loop:1", text="ping"))
        assert outbox(office) == []

    assert error.code == "platform_down"
    assert "bad token" in str(error)


async def test_the_same_key_again_sends_nothing_new(tmp_path: Path) -> None:
    request = SendRequest(target="loop:1", text="ping", idempotency_key="k1")

    async with open_office(tmp_path) as office:
        await known(office)
        first = await office.client.send(request)
        again = await office.client.send(request)
        other = await office.client.send(replace(request, idempotency_key="k2"))
        bridge = await office.client.send(replace(request, origin=Origin.BRIDGE))

    assert first == again
    assert len({first.delivery, other.delivery, bridge.delivery}) == 3
    assert [item.body for item in office.chat.sent[2:]] == ["ping"] * 3
    assert [item.origin for item in office.chat.sent[2:]] == ["send", "send", "bridge"]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (SendRequest(target="loop:1", text="  "), "message is missing"),
        (SendRequest(target="", text="x"), "target is missing"),
    ],
)
async def test_an_empty_message_is_never_sent(
    tmp_path: Path, request_: SendRequest, says: str
) -> None:
    async with open_office(tmp_path) as office:
        error = await refused(office, request_)

    assert error.code == "invalid_arguments"
    assert says in str(error)


async def test_many_sends_at_once_are_each_confirmed(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        await known(office)
        sent = await asyncio.gather(
            *(office.client.send(SendRequest(target="loop:1", text=f"n{n}")) for n in range(20))
        )

    assert len({item.message_ids for item in sent}) == 20


@requirement("case.ap14")
@pytest.mark.parametrize(
    ("pattern", "target", "sent"),
    [
        ("loop:1", "loop:1", True),
        ("loop:1", "loop:@anna", True),
        ("LOOP:#ann*", "loop:1", True),
        ("loop:g*", "loop:1", False),
        ("loop:g*", "loop:g:7", True),
        ("telegram:*", "loop:1", False),
    ],
)
async def test_other_agents_send_only_where_the_policy_lets_them(
    tmp_path: Path, pattern: str, target: str, *, sent: bool
) -> None:
    async with open_office(tmp_path, bridge=BridgeConfig(targets=(pattern,))) as office:
        await known(office)
        request = SendRequest(target=target, text="ping", origin=Origin.BRIDGE)
        if sent:
            assert (await office.client.send(request)).message_ids
        else:
            assert (await refused(office, request)).code == "not_allowed"
        # The owner's own shell is not bound by it.
        assert (await office.client.send(SendRequest(target="loop:1", text="own"))).message_ids

    bodies = [delivery.body for delivery in office.chat.sent]
    assert bodies.count("ping") == sent
    assert bodies[-1] == "own"


@requirement("bridge.messages_send")
async def test_an_agent_that_runs_wild_is_held_at_a_rate(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        await known(office)
        one = SendRequest(
            target="loop:1", text="ping", idempotency_key="same", origin=Origin.BRIDGE
        )
        for _ in range(BRIDGE_PER_MINUTE):
            await office.client.send(one)
        error = await refused(office, one)
        own = await office.client.send(SendRequest(target="loop:1", text="own"))

    assert error.code == "rate_limited"
    assert own.message_ids
    assert [delivery.body for delivery in office.chat.sent].count("ping") == 1
