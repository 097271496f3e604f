"""Forms, on every platform: asked, explained, reviewed, and ended in each of their ways."""

from pathlib import Path

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.form import FieldKind, Form, FormAnswer, FormField, Option
from gateway.ports import Approver, FormRequest
from tests.adapters.conformance.gateway import ADD, hosting
from tests.adapters.conformance.platform import Ability, Platform, Scene
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.tools import FakeTools
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

WRITE = Form(
    message="What shall I write?",
    fields=(
        FormField(name="title", kind=FieldKind.TEXT, label="Title", maximum=9),
        FormField(name="loud", kind=FieldKind.BOOLEAN, label="Loud"),
        FormField(
            name="size",
            kind=FieldKind.CHOICE,
            label="Size",
            options=(Option(value="s", label="Small"), Option(value="l", label="Large")),
        ),
        FormField(name="tag", kind=FieldKind.TEXT, label="Tag", required=False),
    ),
)
CONFIRM = Form(message="Really delete it?")


def asking(form: Form, answers: list[FormAnswer]) -> FakeTools:
    """Return a server whose one tool asks a form and notes how it was answered."""

    async def run(arguments: CanonicalJson, approver: Approver) -> str:
        del arguments
        request = FormRequest(server="demo", server_sha="s", tool=ADD.name, form=form)
        answers.append(await approver.elicit(request))
        return f"the answer was {answers[-1].action.value}"

    tools = FakeTools()
    tools.add(ADD, run)
    return tools


def writing() -> ScriptedModel:
    return ScriptedModel([calls((ADD.alias, {})), says("Over.")])


@requirement("elicitation.form.surfaces", "elicitation.form.invalid", "design.forms.skip")
async def test_a_form_is_asked_a_mistake_explained_and_what_was_reviewed_is_submitted(
    scene: Scene, tmp_path: Path
) -> None:
    ana = scene.person("Ana")
    chat, answers = scene.direct(ana), list[FormAnswer]()
    async with hosting(tmp_path, scene, writing(), asking(WRITE, answers), people=[ana]):
        await chat.say("write")
        assert "at most 9 characters" in await chat.mistake("Title", "far too long for it")
        await chat.fill({"Title": "milk", "Loud": "Yes", "Size": "Large", "Tag": None})
        review = await chat.card("Submit")
        assert [line in review.text for line in ("Title: milk", "Loud: Yes", "Size: Large")] == [
            True,
            True,
            True,
        ]
        assert list(review.labels) == ["Submit", "Edit", "Decline", "Cancel"]
        await chat.press("Submit")
        await chat.reply("Over.")
        await chat.until(lambda: not review.labels, what="the closed card")

    assert [answer.content for answer in answers] == [{"title": "milk", "loud": True, "size": "l"}]
    assert "Submitted by Ana" in review.text


@requirement("elicitation.outcomes", "case.el9")
@pytest.mark.parametrize("label", ["Decline", "Cancel"])
@pytest.mark.parametrize("form", [WRITE, CONFIRM], ids=["fields", "confirmation"])
async def test_declining_and_cancelling_are_two_answers(
    scene: Scene, tmp_path: Path, form: Form, label: str
) -> None:
    ana = scene.person("Ana")
    chat, answers = scene.direct(ana), list[FormAnswer]()
    async with hosting(tmp_path, scene, writing(), asking(form, answers), people=[ana]):
        await chat.say("write")
        card = await chat.card(label)
        await chat.press(label)
        await chat.reply("Over.")
        await chat.until(lambda: not card.labels, what="the closed card")

    assert [(a.action.value, a.content) for a in answers] == [(label.lower(), None)]
    assert f"{label.removesuffix('e')}" in card.text


async def test_a_confirmation_is_its_own_review(scene: Scene, tmp_path: Path) -> None:
    ana = scene.person("Ana")
    chat, answers = scene.direct(ana), list[FormAnswer]()
    async with hosting(tmp_path, scene, writing(), asking(CONFIRM, answers), people=[ana]):
        await chat.say("write")
        card = await chat.card("Submit")
        assert list(card.labels) == ["Submit", "Decline", "Cancel"]
        await chat.press("Submit")
        await chat.reply("Over.")

    assert [(a.action.value, a.content) for a in answers] == [("accept", {})]


async def test_a_form_of_one_person_takes_no_answer_of_another(
    scene: Scene, tmp_path: Path
) -> None:
    ana, ben = scene.person("Ana"), scene.person("Ben")
    chat, answers = scene.group(ana, ben), list[FormAnswer]()
    async with hosting(tmp_path, scene, writing(), asking(CONFIRM, answers), people=[ana, ben]):
        await chat.say("write")
        card = await chat.card("Submit")
        told = [await (await chat.press(label, by=ben)).told() for label in card.labels]
        assert all("can answer" in text or "can decide" in text for text in told)
        assert answers == []
        await chat.press("Submit", by=ana)
        await chat.reply("Over.")

    assert [answer.action.value for answer in answers] == ["accept"]


@requirement("elicitation.form.surfaces", "approval.card.orphans_closed")
async def test_a_half_filled_form_goes_on_after_a_restart(
    platform: Platform, scene: Scene, tmp_path: Path
) -> None:
    ana = scene.person("Ana")
    chat, answers = scene.direct(ana), list[FormAnswer]()
    form = Form(message=WRITE.message, fields=WRITE.fields[:2])
    # The call that asked is gone with the process, and its question with it.
    async with hosting(tmp_path, scene, writing(), asking(form, answers), people=[ana], crash=True):
        await chat.say("write")
        await chat.fill({"Title": "milk"})
        # A native form is filled in as a whole.
        label = "Submit" if platform.has(Ability.MODALS) else "Yes"
        card = await chat.card(label)
        button = card.button(label)
        await scene.heard()
    async with hosting(tmp_path, scene, ScriptedModel(), asking(form, answers), people=[ana]):
        await chat.until(lambda: not card.labels, what="the closed card")
        assert "No longer waiting" in card.text
        assert await (await button.press()).told()

    assert answers == []


@requirement("threat.s23", "case.el12")
async def test_a_form_that_names_people_notifies_none_of_them(
    platform: Platform, scene: Scene, tmp_path: Path
) -> None:
    ana, ben = scene.person("Ana"), scene.person("Ben")
    chat, answers = scene.group(ana, ben), list[FormAnswer]()
    loud = f"Hear {' '.join(platform.everybody)}"
    field = FormField(name="title", kind=FieldKind.TEXT, label=loud, help=loud)
    form = Form(message=loud, fields=(field,))
    async with hosting(tmp_path, scene, writing(), asking(form, answers), people=[ana]):
        await chat.say("write")
        await chat.fill({"Hear": f"milk for {platform.everybody[0]}"})
        review = await chat.card("Submit")
        await chat.press("Submit")
        await chat.reply("Over.")
        await chat.until(lambda: not review.labels, what="the closed card")

    # A prompt may call the person who is asked.
    assert {who for message in chat.shown if message.ours for who in message.pings} <= {ana.id}
