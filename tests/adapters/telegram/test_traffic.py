import pytest

from adapters.telegram.traffic import GROUP_CALLS, PRIVATE_CALLS, TYPING_SECONDS, Traffic
from tests.support.clock import ManualClock
from tests.support.requirement import requirement


@requirement("case.t15")
@pytest.mark.parametrize(("chat", "most"), [("111", PRIVATE_CALLS), ("-1001", GROUP_CALLS)])
def test_a_chat_takes_so_many_calls_a_minute_and_then_waits(chat: str, most: int) -> None:
    clock = ManualClock()
    traffic = Traffic(clock.monotonic)
    for _ in range(most):
        assert traffic.wait(chat) == 0
        traffic.note(chat)
        clock.advance(0.5)

    wait = traffic.wait(chat)
    assert 0 < wait <= 60
    assert traffic.wait("999") == 0
    clock.advance(wait)
    assert traffic.wait(chat) == 0


@requirement("delivery.cosmetic_shed")
def test_typing_is_shown_again_only_when_the_last_one_fades() -> None:
    clock = ManualClock()
    traffic = Traffic(clock.monotonic)

    assert traffic.may_type("111")
    assert not traffic.may_type("111")
    assert traffic.may_type("222")
    clock.advance(TYPING_SECONDS)
    assert traffic.may_type("111")


@requirement("delivery.cosmetic_shed", "case.t13")
def test_a_chat_that_must_be_left_alone_is_not_typed_in() -> None:
    clock = ManualClock()
    traffic = Traffic(clock.monotonic)
    traffic.park("111", 1000)
    traffic.park("111", 5)

    clock.advance(999)
    assert not traffic.may_type("111")
    assert traffic.may_type("222")
    clock.advance(1)
    assert traffic.may_type("111")


@requirement("delivery.cosmetic_shed")
def test_typing_gives_way_in_a_busy_chat() -> None:
    clock = ManualClock()
    traffic = Traffic(clock.monotonic)
    for _ in range(GROUP_CALLS // 2):
        traffic.note("-1001")

    assert not traffic.may_type("-1001")
