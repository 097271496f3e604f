import os

import httpx
import pytest
from telegram import error as sdk

from adapters.telegram.errors import translate
from gateway.domain.errors import (
    AdapterError,
    AdapterUnauthorized,
    DeliveryDeferred,
    DeliveryRejected,
    DeliveryUnsure,
)
from tests.support.requirement import requirement

# What the client sets as well: the library warns otherwise.
os.environ.setdefault("PTB_TIMEDELTA", "true")

URL = "https://api.telegram.org/bot123456:AAAA-secret/sendMessage"


def failed(error: sdk.TelegramError, cause: Exception | None) -> sdk.TelegramError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sdk.RetryAfter(30), DeliveryDeferred),
        (sdk.InvalidToken("Unauthorized"), AdapterUnauthorized),
        (sdk.Forbidden("Forbidden: bot was blocked by the user"), DeliveryRejected),
        (sdk.BadRequest("Bad Request: chat not found"), DeliveryRejected),
        (sdk.ChatMigrated(-1005), DeliveryRejected),
        (failed(sdk.NetworkError("x"), httpx.ConnectError("x")), DeliveryDeferred),
        (failed(sdk.TimedOut(), httpx.ConnectTimeout("x")), DeliveryDeferred),
        (failed(sdk.TimedOut(), httpx.PoolTimeout("x")), DeliveryDeferred),
        (failed(sdk.TimedOut(), httpx.ReadTimeout("x")), DeliveryUnsure),
        (failed(sdk.NetworkError("x"), httpx.ReadError("x")), DeliveryUnsure),
        (failed(sdk.NetworkError("x"), httpx.RemoteProtocolError("x")), DeliveryUnsure),
        (sdk.NetworkError("Bad Gateway"), DeliveryUnsure),
        (sdk.TelegramError("Invalid server response"), DeliveryUnsure),
    ],
)
def test_every_failure_of_a_call_has_one_meaning(
    error: sdk.TelegramError, kind: type[AdapterError]
) -> None:
    assert type(translate(error)) is kind


@requirement("case.t25")
@pytest.mark.parametrize("cause", [httpx.ReadError, httpx.ReadTimeout, httpx.ConnectError])
def test_the_address_of_a_call_is_in_no_error(cause: type[httpx.HTTPError]) -> None:
    error = failed(sdk.NetworkError(f"httpx.{cause.__name__}: {URL}"), cause(URL))

    assert "AAAA" not in str(translate(error))
