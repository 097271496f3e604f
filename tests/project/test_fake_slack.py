"""The Slack the tests work with: judged by Slack's own client library, never the adapter."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import aiohttp.web
import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import Fault, Limits, Town, Trouble, limit, refuse, slack_server
from tests.fakes.slack.state import Json

pytestmark = pytest.mark.anyio

ACTIONS: Json = {
    "type": "actions",
    "elements": [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": "Allow"},
            "action_id": "allow",
            "value": "v1",
        }
    ],
}


def client_of(town: Town, team: str = "T1") -> Any:
    return AsyncWebClient(token=town.team(team).token, base_url=town.base_url, retry_handlers=[])


@asynccontextmanager
async def listening(town: Town, seen: list[Json], *, fail: bool = False) -> AsyncGenerator[None]:
    """Run Slack's own framework on the server, with a middleware that notes what comes."""
    app: Any = AsyncApp(
        client=client_of(town), signing_secret="x", ignoring_self_events_enabled=False
    )

    @app.middleware
    async def persist(body: Json) -> BoltResponse:
        seen.append(body)
        if fail:
            raise RuntimeError("not today")
        return BoltResponse(status=200)

    handler = AsyncSocketModeHandler(app, town.app_token, web_client=app.client)
    await handler.connect_async()
    await town.connected()
    try:
        yield
    finally:
        await handler.close_async()


def events(seen: list[Json], kind: str) -> list[Json]:
    return [body["event"] for body in seen if body.get("event", {}).get("type") == kind]


def answer_of(error: Any) -> Any:
    # The SDK does not type what it got.
    return error.response


async def refused(call: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    response = answer_of(caught.value)
    return str(response["error"])


async def test_a_message_reaches_the_app_and_its_reply_the_channel() -> None:
    seen: list[Json] = []
    async with slack_server() as town, listening(town, seen):
        team = town.team()
        channel = team.channel("C1", team.user("U1", "Ana"))
        said = channel.say("hello", calling=True)
        await town.until(lambda: not town.pending)
        client = client_of(town)
        answer = await client.chat_postMessage(channel="C1", text="hi", thread_ts=said.ts)
        await town.until(lambda: not town.pending)

    assert [m.text for m in channel.inside(said).replies] == ["hi"]
    # A mention comes twice, and what the app writes comes back to it.
    assert [e["ts"] for e in events(seen, "message")] == [said.ts, answer["ts"]]
    assert [e["ts"] for e in events(seen, "app_mention")] == [said.ts]
    assert events(seen, "message")[1]["bot_id"] == "BBOTT1"


async def test_an_event_that_is_not_acknowledged_comes_again_and_then_no_more() -> None:
    seen: list[Json] = []
    limits = Limits(ack_seconds=0.1, retry_seconds=(0.01, 0.01))
    async with slack_server(limits=limits) as town, listening(town, seen, fail=True):
        team = town.team()
        team.direct(team.user("U1", "Ana")).say("hello")
        await town.until(lambda: town.service.outbox.lost)

    assert len({body["event_id"] for body in seen}) == 1
    assert len(seen) == 3


async def test_what_happens_with_no_socket_open_is_lost() -> None:
    async with slack_server(limits=Limits(retry_seconds=(0.01,))) as town:
        team = town.team()
        chat = team.direct(team.user("U1", "Ana"))
        chat.say("hello")
        await town.until(lambda: town.service.outbox.lost)
        found = await client_of(town).conversations_history(channel=chat.id)

    assert [m["text"] for m in found["messages"]] == ["hello"]


async def test_a_press_is_acknowledged_and_opens_a_modal_within_its_time() -> None:
    seen: list[Json] = []
    view: Json = {
        "type": "modal",
        "title": {"type": "plain_text", "text": "Form"},
        "submit": {"type": "plain_text", "text": "Go"},
        "callback_id": "form",
        "blocks": [
            {
                "type": "input",
                "block_id": "name",
                "label": {"type": "plain_text", "text": "Name"},
                "element": {"type": "plain_text_input", "action_id": "value"},
            }
        ],
    }
    async with slack_server() as town:
        app: Any = AsyncApp(client=client_of(town), signing_secret="x")

        @app.action("allow")
        async def press(ack: Any, body: Json, client: Any) -> None:
            await ack()
            seen.append(body)
            await client.views_open(trigger_id=body["trigger_id"], view=view)

        @app.view("form")
        async def submit(ack: Any, body: Json) -> None:
            seen.append(body)
            await ack(response_action="errors", errors={"name": "Too short."})

        handler = AsyncSocketModeHandler(app, town.app_token, web_client=app.client)
        await handler.connect_async()
        await town.connected()
        team = town.team()
        chat = team.direct(team.user("U1", "Ana"))
        await client_of(town).chat_postMessage(channel=chat.id, text="card", blocks=[ACTIONS])
        await chat.press("Allow").acknowledged()
        modal = await chat.modal()
        answer = await chat.submit(modal, {"Name": "x"})
        late = await refused(
            client_of(town).views_open(trigger_id=seen[0]["trigger_id"], view=view)
        )
        await handler.close_async()

    assert seen[0]["actions"][0]["value"] == "v1"
    assert answer == {"response_action": "errors", "errors": {"name": "Too short."}}
    assert modal.open
    assert late == "invalid_trigger_id"


@pytest.mark.parametrize(
    ("blocks", "error"),
    [
        ([{"type": "markdown", "text": "x" * 12_001}], "invalid_blocks"),
        ([{"type": "section", "text": {"type": "mrkdwn", "text": "y" * 3_001}}], "invalid_blocks"),
        ([{"type": "divider"}] * 51, "invalid_blocks"),
        ([{"type": "no such block"}], "invalid_blocks"),
        (
            [{"type": "table", "rows": [[{"type": "raw_text", "text": "a"}]]}] * 2,
            "invalid_attachments",
        ),
        (
            [{"type": "section", "text": {"type": "plain_text", "text": "z" * 3000}}] * 5,
            "msg_blocks_too_long",
        ),
        (
            [ACTIONS | {"elements": [ACTIONS["elements"][0] | {"value": "v" * 2001}]}],
            "invalid_blocks",
        ),
    ],
)
async def test_blocks_beyond_a_limit_are_refused(blocks: list[Json], error: str) -> None:
    async with slack_server() as town:
        town.team().channel("C1")
        call = client_of(town).chat_postMessage(channel="C1", text="t", blocks=blocks)
        assert await refused(call) == error


async def test_an_edit_takes_less_text_than_a_post() -> None:
    async with slack_server() as town:
        town.team().channel("C1")
        client = client_of(town)
        posted = await client.chat_postMessage(channel="C1", text="x" * 39_000)
        call = client.chat_update(channel="C1", ts=str(posted["ts"]), text="x" * 4_001)
        assert await refused(call) == "msg_too_long"


async def test_what_an_app_may_not_do_is_refused_in_slacks_words() -> None:
    async with slack_server() as town:
        team = town.team(scopes=frozenset({"chat:write"}))
        team.channel("C1", member=False)
        client, other = client_of(town), client_of(town)
        other.token = "xoxb-wrong"
        assert await refused(client.chat_postMessage(channel="C1", text="t")) == "not_in_channel"
        assert await refused(client.chat_postMessage(channel="U1", text="t")) == "channel_not_found"
        assert await refused(client.conversations_open(users="U1")) == "missing_scope"
        assert await refused(other.auth_test()) == "invalid_auth"


async def test_a_channel_takes_one_post_a_second_and_says_when_the_next() -> None:
    async with slack_server() as town:
        town.team().channel("C1")
        client = client_of(town)
        for n in range(3):
            await client.chat_postMessage(channel="C1", text=str(n))
        with pytest.raises(SlackApiError) as caught:
            await client.chat_postMessage(channel="C1", text="3")
        response = answer_of(caught.value)
        assert (response.status_code, response.headers["Retry-After"]) == (429, "1")
        town.advance(1)
        await client.chat_postMessage(channel="C1", text="3")


async def test_a_file_is_uploaded_in_three_steps_and_downloaded_with_the_token_alone() -> None:
    async with slack_server() as town:
        channel = town.team().channel("C1")
        client = client_of(town)
        await client.files_upload_v2(channel="C1", content=b"bytes", filename="a.txt")
        found = await client.conversations_history(channel="C1")
        address = found["messages"][0]["files"][0]["url_private"]
        async with aiohttp.ClientSession() as session:
            async with session.get(address) as page:
                assert (page.status, page.content_type) == (200, "text/html")
            bearer = {"Authorization": f"Bearer {client.token}"}
            async with session.get(address, headers=bearer) as file:
                assert await file.read() == b"bytes"

    assert len(channel.replies) == 1


async def test_a_stream_grows_until_it_is_stopped() -> None:
    async with slack_server() as town:
        team = town.team()
        chat = team.direct(team.user("U1", "Ana"))
        said, client = chat.say("tell me"), client_of(town)
        begun = await client.chat_startStream(channel=chat.id, thread_ts=said.ts)
        ts = str(begun["ts"])
        await client.chat_appendStream(channel=chat.id, ts=ts, markdown_text="one ")
        call = client.chat_update(channel=chat.id, ts=ts, text="no")
        assert await refused(call) == "streaming_state_conflict"
        await client.chat_stopStream(channel=chat.id, ts=ts, markdown_text="two")
        call = client.chat_appendStream(channel=chat.id, ts=ts, markdown_text="x")
        assert await refused(call) == "message_not_in_streaming_state"

    assert chat.inside(said).texts == ["one two"]


async def test_faults_meet_the_calls_they_are_for() -> None:
    async with slack_server() as town:
        channel = town.team().channel("C1")
        client = client_of(town)
        town.fail(refuse("chat.postMessage", "fatal_error"))
        town.fail(limit("chat.postMessage", 7))
        town.fail(Fault(trouble=Trouble.CUT_AFTER, method="chat.postMessage"))
        assert await refused(client.chat_postMessage(channel="C1", text="1")) == "fatal_error"
        assert await refused(client.chat_postMessage(channel="C1", text="2")) == "ratelimited"
        with pytest.raises(aiohttp.ClientError):
            await client.chat_postMessage(channel="C1", text="3")

    assert channel.texts == ["3"]


async def test_an_unknown_method_fails_the_test() -> None:
    async with slack_server(allow_violations=["team.info: not modelled here"]) as town:
        town.team()
        assert await refused(client_of(town).team_info()) == "unknown_method"
        assert town.service.violations == ["team.info: not modelled here"]


async def test_posts_are_signed_as_slack_signs_them() -> None:
    seen: list[Json] = []
    async with slack_server() as town:
        app: Any = AsyncApp(client=client_of(town), signing_secret=town.signing_secret)

        @app.middleware
        async def persist(body: Json) -> BoltResponse:
            seen.append(body)
            return BoltResponse(status=200)

        runner = aiohttp.web.AppRunner(app.web_app())
        await runner.setup()
        await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
        town.service.outbox.request_url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
        team = town.team()
        team.direct(team.user("U1", "Ana")).say("hello")
        await town.until(lambda: not town.pending)
        town.service.outbox.forge = {"X-Slack-Signature": "v0=00"}
        town.service.outbox.give("slash_commands", {"text": "help"})
        await town.until(lambda: not town.pending)
        await runner.cleanup()
        await asyncio.sleep(0)

    assert [json.dumps(body["event"]["text"]) for body in seen] == ['"hello"']
    assert len(town.service.outbox.lost) == 1
