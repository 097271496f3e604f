from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.errors import GatewayRefused
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.operations.pairing import OfferPairing
from gateway.runtime.pairing_codes import hashed
from tests.fakes.office import Office, open_office
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

CODE = "ABCDEFGH"


async def offer(office: Office, platform: str) -> None:
    now = office.desk.clock.now()
    await office.store.offer_pairing(
        OfferPairing(
            place=Place(platform=platform, chat="7", chat_type=ChatType.DM),
            user=Actor(platform=platform, id="7"),
            code=hashed(CODE),
            expires_at=now + timedelta(hours=1),
            not_since=now - timedelta(minutes=10),
            most_pending=9,
            parts=(Part(kind=DeliveryKind.TEXT, body="a code"),),
        )
    )


@requirement("design.pairing.approve")
async def test_a_code_or_person_of_two_platforms_is_asked_about_and_taken_with_the_platform(
    tmp_path: Path,
) -> None:
    async with open_office(tmp_path) as office:
        for platform in ("one", "two"):
            await offer(office, platform)
        with pytest.raises(GatewayRefused, match="say which of one, two") as asked:
            await office.client.pair({"action": "approve", "code": CODE})
        assert asked.value.code == "ambiguous_target"

        done = await office.client.pair({"action": "approve", "platform": "two", "code": CODE})

        assert (done["pairing"]["platform"], done["pairing"]["state"]) == ("two", "approved")
        with pytest.raises(GatewayRefused, match="say which of one, two"):
            await office.client.pair({"action": "revoke", "user": "7"})
        done = await office.client.pair({"action": "revoke", "user": "two:7"})
        assert done["pairing"]["state"] == "revoked"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"action": "approve", "code": "NOTHINGS"}, "not_found"),
        ({"action": "revoke", "user": "7"}, "not_found"),
        ({"action": "dance"}, "invalid_arguments"),
        ({"action": "approve"}, "invalid_arguments"),
    ],
)
async def test_what_cannot_be_done_is_said_with_its_reason(
    tmp_path: Path, change: dict[str, str], code: str
) -> None:
    async with open_office(tmp_path) as office:
        with pytest.raises(GatewayRefused) as refused:
            await office.client.pair(change)
        assert refused.value.code == code
