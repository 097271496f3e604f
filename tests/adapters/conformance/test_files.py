"""Files both ways, on every platform: what people send is seen, what is sent to them arrives."""

import os
from pathlib import Path

import pytest

from gateway.domain.model import UserSaid
from gateway.ports import SendRequest
from gateway.runtime.sending import SendRefused
from tests.adapters.conformance.gateway import hosting
from tests.adapters.conformance.platform import Platform, Scene
from tests.fakes.model import ScriptedModel, says
from tests.fakes.pictures import png
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


async def test_a_text_and_a_picture_that_people_send_are_seen_by_the_model(
    scene: Scene, tmp_path: Path
) -> None:
    ana = scene.person("Ana")
    chat, model = scene.direct(ana), ScriptedModel()
    async with hosting(tmp_path, scene, model, people=[ana]):
        await chat.attach("list.txt", b"milk and eggs", saying="read this")
        await chat.reply("read this")
        await chat.attach("square.png", png())
        # Not every platform names a picture.
        await chat.reply("attached image")

    first, second = (request.history[-1] for request in model.requests)
    assert "milk and eggs" in first.text
    assert isinstance(second, UserSaid)
    assert [picture.data for picture in second.pictures] == [png()]


@requirement("threat.s21")
async def test_a_file_that_is_too_large_is_not_taken_and_the_reason_is_told(
    scene: Scene, tmp_path: Path
) -> None:
    ana = scene.person("Ana")
    chat, model = scene.direct(ana), ScriptedModel([says("I see.")])
    async with hosting(tmp_path, scene, model, people=[ana]):
        await chat.attach("film.mp4", b"x", saying="look", size=3_000_000_000)
        await chat.reply("I see.")

    told = model.requests[0].history[-1].text
    assert "film.mp4" in told
    assert "MB" in told
    assert os.listdir(tmp_path / "media") == []


async def test_files_are_sent_with_their_text_and_notify_nobody_by_it(
    platform: Platform, scene: Scene, tmp_path: Path
) -> None:
    ana = scene.person("Ana")
    chat, target = scene.direct(ana), f"{platform.name}:{scene.direct(ana).id}"
    files = {"report.pdf": b"%PDF-1.4 report", "square.png": png()}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    async with hosting(tmp_path / "home", scene, ScriptedModel(), people=[ana]) as sending:
        await chat.say("hello")
        await chat.reply("hello")
        for name in files:
            text = f"Here is {name} {platform.everybody[0]}"
            await sending.send(
                SendRequest(target=target, text=text, attachments=(str(tmp_path / name),))
            )

    sent = [message for message in chat.shown if message.ours and message.files]
    assert [data for message in sent for _, data in message.files] == list(files.values())
    assert next(name for message in sent for name, _ in message.files) == "report.pdf"
    assert [message.pings for message in sent] == [[], []]
    assert all("Here is" in message.text for message in sent)


async def test_a_file_beyond_the_limit_of_the_platform_is_refused_before_anything_is_sent(
    platform: Platform, scene: Scene, tmp_path: Path
) -> None:
    limits = platform.renderer.capabilities.files
    assert limits is not None
    ana = scene.person("Ana")
    chat, target = scene.direct(ana), f"{platform.name}:{scene.direct(ana).id}"
    with (tmp_path / "film.mp4").open("wb") as film:
        film.truncate(limits.file + 1)
    async with hosting(tmp_path / "home", scene, ScriptedModel(), people=[ana]) as sending:
        await chat.say("hello")
        await chat.reply("hello")
        asked = SendRequest(target=target, text="look", attachments=(str(tmp_path / "film.mp4"),))
        refused = await sending.send(asked)

    assert isinstance(refused, SendRefused)
    assert refused.code == "too_large"
    assert "film.mp4" in refused.sentence
    assert len(chat.texts) == 1
