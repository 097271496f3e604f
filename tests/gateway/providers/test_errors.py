import traceback
from dataclasses import replace

import pytest

from gateway.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelUnauthorized,
    ModelUnavailable,
)
from gateway.providers.config import ProviderName, parse_model
from gateway.providers.models import open_model
from tests.gateway.providers.asking import LOOK_UP, SECRET, request, scene
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
WIRE = pytest.mark.parametrize("wire", [ProviderName.OPENAI, ProviderName.OPENAI_RESPONSES])

FAULTS: list[tuple[str, type[ModelError], str]] = [
    ("rate_limited", ModelRateLimited, "rate limited"),
    ("quota", ModelRejected, "quota"),
    ("overloaded", ModelUnavailable, "overloaded"),
    ("unavailable", ModelUnavailable, "503"),
    ("server_error", ModelUnavailable, "500"),
    ("unauthorized", ModelUnauthorized, "key was refused"),
    ("rejected", ModelRejected, "temperature is not supported"),
    ("no_such_model", ModelRejected, "no such model"),
    ("context_too_long", ContextTooLong, "longer than its context"),
    ("garbage", ModelUnavailable, "read"),
    ("cut", ModelUnavailable, "broke"),
    ("ends", ModelUnavailable, "broke"),
]


@requirement("model.errors", "fault.f35")
@WIRE
@STREAMED
@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS, ids=[fault[0] for fault in FAULTS])
async def test_each_failure_has_its_class_and_is_tried_once(
    wire: ProviderName, fault: str, kind: type[ModelError], words: str, *, streamed: bool
) -> None:
    async with scene(wire) as at:
        at.fake.script.fail(fault, text="Half of an answer")
        with pytest.raises(ModelError) as caught:
            await at.ask(streamed=streamed)

    assert type(caught.value) is kind
    assert caught.value.model == f"{wire.value}:m"
    assert words in str(caught.value)
    assert len(at.fake.requests) == 1
    everything = "".join(traceback.format_exception(caught.value))
    assert SECRET not in everything
    assert SECRET not in caught.value.public_message


@requirement("model.errors")
@pytest.mark.parametrize(("said", "wait"), [(2, 2.0), (0.5, None), (None, None)])
async def test_a_rate_limit_carries_the_wait_the_provider_asked_for(
    said: float | None, wait: float | None
) -> None:
    async with scene() as at:
        at.fake.script.fail("rate_limited", retry_after=said)
        with pytest.raises(ModelRateLimited) as caught:
            await at.ask(streamed=False)

    assert caught.value.retry_after == wait


@requirement("fault.f35")
@WIRE
async def test_an_error_in_the_middle_of_a_stream_is_a_failure(wire: ProviderName) -> None:
    async with scene(wire) as at:
        at.fake.script.fail("stream_error", text="Half of an answer")
        with pytest.raises(ModelUnavailable):
            await at.ask(streamed=True)


@requirement("fault.f35")
@STREAMED
async def test_a_service_that_says_nothing_is_given_up(*, streamed: bool) -> None:
    async with scene(read_timeout=0.05) as at:
        at.fake.script.fail("slow")
        with pytest.raises(ModelUnavailable, match="no answer in time"):
            await at.ask(streamed=streamed)


async def test_a_service_that_is_not_there_cannot_be_reached() -> None:
    section = {"provider": "openai", "name": "m", "base_url": "http://127.0.0.1:9/v1"}
    async with open_model(parse_model(section)) as model:
        with pytest.raises(ModelUnavailable, match="could not be reached"):
            await model.complete(request())


async def test_the_cause_is_kept_when_it_holds_no_key() -> None:
    async with scene() as at:
        at.fake.script.fail("server_error")
        with pytest.raises(ModelUnavailable) as caught:
            await at.ask(streamed=False)

    assert caught.value.__cause__ is not None


async def test_a_function_whose_schema_cannot_be_sent_is_named() -> None:
    broken = replace(LOOK_UP, parameters={"type": "object", "properties": {"a": 7}})
    async with scene() as at:
        with pytest.raises(ModelRejected, match="look_up"):
            await at.ask(replace(request(), functions=(broken,)), streamed=False)
