from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from gateway.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelUnauthorized,
    ModelUnavailable,
)
from gateway.domain.model import Finish, ModelReply, ModelRequest, Usage, UserSaid
from gateway.providers.fallback import first_answer
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(system="", history=(UserSaid(text="hello"),))


@dataclass(kw_only=True)
class ScriptedModel:
    """Answers with its text, or fails after saying `begins`."""

    name: str
    text: str = "fine"
    fails: ModelError | None = None
    begins: str = ""
    context_window: int | None = None
    asks_person: bool = False
    asked: int = 0
    listened: list[bool] = field(default_factory=list[bool])

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        self.asked += 1
        self.listened.append(on_text is not None)
        if on_text is not None and self.begins:
            on_text(self.begins)
        if self.fails is not None:
            raise self.fails
        return ModelReply(
            text=self.text, calls=(), usage=Usage(), finish=Finish.STOP, model=self.name
        )


@requirement("model.config")
@pytest.mark.parametrize(
    "error",
    [
        ModelRateLimited("a", 3),
        ModelUnavailable("a", "overloaded"),
        ModelUnauthorized("a", "the key was refused"),
        ModelRejected("a", "no such model"),
    ],
)
async def test_fallbacks_are_tried_in_order(error: ModelError) -> None:
    first = ScriptedModel(name="a", fails=error)
    second = ScriptedModel(name="b", fails=error)
    third, fourth = ScriptedModel(name="c"), ScriptedModel(name="d")

    reply = await first_answer([first, second, third, fourth], REQUEST)

    assert reply.model == "c"
    assert [model.asked for model in (first, second, third, fourth)] == [1, 1, 1, 0]


async def test_a_working_model_is_the_only_one_asked() -> None:
    first, second = ScriptedModel(name="a"), ScriptedModel(name="b")

    await first_answer([first, second], REQUEST)

    assert second.asked == 0


async def test_a_request_too_long_goes_only_to_a_larger_window() -> None:
    too_long = ContextTooLong("a")
    models = [
        ScriptedModel(name="a", fails=too_long, context_window=8_000),
        ScriptedModel(name="same", context_window=8_000),
        ScriptedModel(name="unknown"),
        ScriptedModel(name="large", context_window=100_000),
    ]

    reply = await first_answer(models, REQUEST)

    assert reply.model == "large"
    assert [model.asked for model in models] == [1, 0, 0, 1]


async def test_a_request_too_long_is_said_when_no_window_is_larger() -> None:
    too_long = ContextTooLong("a")
    models = [
        ScriptedModel(name="a", fails=too_long, context_window=8_000),
        ScriptedModel(name="large", fails=ModelUnavailable("b", "down"), context_window=9_000),
    ]

    with pytest.raises(ContextTooLong):
        await first_answer(models, REQUEST)


@requirement("fault.f35")
async def test_an_empty_answer_is_asked_of_the_next_model() -> None:
    models = [ScriptedModel(name="a", text=" "), ScriptedModel(name="b")]

    assert (await first_answer(models, REQUEST)).model == "b"


async def test_an_empty_answer_is_returned_when_there_is_no_better_one() -> None:
    models = [
        ScriptedModel(name="a", text=""),
        ScriptedModel(name="b", fails=ModelUnavailable("b", "down")),
    ]

    assert (await first_answer(models, REQUEST)).model == "a"


async def test_what_may_work_later_is_raised_before_what_never_will() -> None:
    later = ModelRateLimited("b", 5)
    models = [
        ScriptedModel(name="a", fails=ModelUnauthorized("a", "the key was refused")),
        ScriptedModel(name="b", fails=later),
        ScriptedModel(name="c", fails=ModelRejected("c", "no such model")),
    ]

    with pytest.raises(ModelRateLimited) as caught:
        await first_answer(models, REQUEST)

    assert caught.value is later


async def test_the_preferred_models_failure_is_raised_when_none_can_answer_later() -> None:
    models = [
        ScriptedModel(name="a", fails=ModelUnauthorized("a", "the key was refused")),
        ScriptedModel(name="b", fails=ModelRejected("b", "no such model")),
    ]

    with pytest.raises(ModelUnauthorized):
        await first_answer(models, REQUEST)


@requirement("fault.f35")
async def test_half_an_answer_is_not_continued_by_another_model() -> None:
    heard: list[str] = []
    models = [
        ScriptedModel(name="a", begins="Half of", fails=ModelUnavailable("a", "broke")),
        ScriptedModel(name="b", begins="A whole", text="A whole answer"),
    ]

    reply = await first_answer(models, REQUEST, on_text=heard.append)

    assert heard == ["Half of"]
    assert reply.text == "A whole answer"


async def test_a_listener_hears_the_fallback_when_nothing_was_shown_before() -> None:
    heard: list[str] = []
    models = [
        ScriptedModel(name="a", fails=ModelUnavailable("a", "overloaded")),
        ScriptedModel(name="b", begins="A whole"),
    ]

    await first_answer(models, REQUEST, on_text=heard.append)

    assert heard == ["A whole"]
