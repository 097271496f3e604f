from datetime import datetime

import pytest

from gateway.domain.ids import Actor, ChatType, Place
from gateway.runtime.config import RateConfig
from gateway.runtime.pairing_codes import ALPHABET, hashed, is_of, new_code, typed
from gateway.runtime.rates import BOT_TURNS, BotLoops, Pace, Quota, Rate
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

ANNA = Actor(platform="loop", id="1")
ROBOT = Actor(platform="loop", id="9", is_bot=True)
CHAT = Place(platform="loop", chat="g", chat_type=ChatType.GROUP)


@requirement("access.rate_quota")
@pytest.mark.parametrize("limit", [1, 3, 7, 20])
def test_exactly_so_many_come_at_once_and_then_one_each_share_of_the_minute(limit: int) -> None:
    clock = ManualClock()
    rate = Rate(limit, clock)
    assert [rate.take("a") for _ in range(limit)] == [0.0] * limit
    assert rate.take("a") == pytest.approx(60 / limit)
    assert rate.take("b") == 0.0
    clock.advance(2 * 60 / limit)
    assert rate.take("a") == 0.0


def test_no_limit_is_none_and_a_flood_is_never_held_for_more_than_a_minute() -> None:
    clock = ManualClock()
    assert [Rate(0, clock).take("a") for _ in range(99)] == [0.0] * 99
    rate = Rate(2, clock)
    assert max(rate.take("a") for _ in range(99)) == 60.0


@requirement("access.rate_quota")
def test_the_chat_has_a_rate_of_its_own_and_is_told_once() -> None:
    pace = Pace(RateConfig(user_per_minute=9, chat_per_minute=2), ManualClock())
    people = [Actor(platform="loop", id=str(n)) for n in range(3)]
    assert [pace.over(person, CHAT) > 0 for person in people] == [False, False, True]
    assert "2 in one chat" in pace.news(people[2], CHAT)
    assert pace.news(people[2], CHAT) == ""


@requirement("access.bots.never_loop")
def test_bots_are_cut_off_until_a_person_speaks() -> None:
    loops = BotLoops()
    assert [loops.is_loop(ROBOT, CHAT) for _ in range(BOT_TURNS + 1)][-2:] == [False, True]
    assert not loops.is_loop(ANNA, CHAT)
    assert not loops.is_loop(ROBOT, CHAT)


class Spent:
    """Implements `Books`, as far as a quota asks."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.since: list[datetime] = []

    async def usage(self, *, since: datetime, actor: Actor | None = None) -> dict[str, int]:
        self.since.append(since)
        return {"one": self.tokens, "two": 1}

    async def audit(self, *, before: int | None = None, limit: int) -> list[object]:
        raise AssertionError("a quota asks for tokens alone")


@requirement("access.rate_quota")
@pytest.mark.anyio
async def test_the_tokens_of_a_day_are_counted_from_midnight_and_told_once_a_day() -> None:
    clock, books = ManualClock(), Spent(8)
    quota = Quota(10, books, clock)  # pyright: ignore[reportArgumentType]
    assert not await quota.is_used_up(ANNA)
    books.tokens = 9
    assert await quota.is_used_up(ANNA)
    assert books.since[0] == clock.now().replace(hour=0)
    assert [quota.is_news(ANNA), quota.is_news(ANNA)] == [True, False]
    clock.advance(24 * 3_600)
    assert quota.is_news(ANNA)


@requirement("access.pairing.code")
def test_a_code_has_eight_clear_letters_and_is_known_by_its_hash_alone() -> None:
    code = new_code()
    assert len(code) == 8
    assert set(code) <= set(ALPHABET)
    kept = hashed(code)
    assert is_of(typed(f" {code[:4].lower()}-{code[4:]} "), kept)
    assert not is_of(new_code(), kept)
    assert hashed(code).hash != kept.hash
    assert code not in repr(kept)
