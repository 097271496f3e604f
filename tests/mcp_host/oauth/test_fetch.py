"""The requests of a sign-in against servers that set traps, on real sockets."""

import asyncio
import ipaddress
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.errors import ServerUnavailable, ToolHostError
from mcp_host.oauth.addresses import Address
from mcp_host.oauth.fetch import METADATA_BYTES, Fetched, Fetcher
from mcp_host.server_config import ServerConfig
from tests.fakes.loopback_http import Answer, Handler, Loopback, Request, serve
from tests.fakes.oauth.hostile import (
    Hostile,
    Trap,
    bomb,
    dripping,
    endless,
    hostile_server,
    plain,
    redirecting,
)
from tests.support.certificates import make_certificates
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

MB = 1 << 20
GB = 1 << 30
DOCUMENT = b'{"issuer": "x"}'
Ask = Callable[[Fetcher, str], Awaitable[Fetched]]


def fetcher(
    server: str = "http://127.0.0.1:1/mcp",
    *,
    environ: Mapping[str, str] | None = None,
    resolve: "Changing | None" = None,
    **fields: Any,
) -> Fetcher:
    """One for a server that is on this machine, so that it may name this machine."""
    config = ServerConfig.model_validate({"url": server, **fields})
    return Fetcher("s", config, environ or {"NO_PROXY": "*"}, resolve=resolve)


class Changing:
    """Resolves every name to one address after the other, and to the last for ever."""

    def __init__(self, *addresses: str) -> None:
        self._left = list(addresses)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        address = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        return [ipaddress.ip_address(address)]


def get(asking: Fetcher, url: str) -> Awaitable[Fetched]:
    return asking.get(url)


def look(asking: Fetcher, url: str) -> Awaitable[Fetched]:
    return asking.look(url)


def post(asking: Fetcher, url: str) -> Awaitable[Fetched]:
    return asking.post(url, form={"a": "b"})


@asynccontextmanager
async def trapped(make: Callable[[Hostile], Trap]) -> AsyncGenerator[tuple[Hostile, Fetcher]]:
    async with hostile_server(make) as hostile, fetcher() as asking:
        yield hostile, asking


@asynccontextmanager
async def ordinary() -> AsyncGenerator[Loopback]:
    def make(_: Loopback) -> Handler:
        async def handle(request: Request, answer: Answer) -> None:
            await answer.json(200, {"path": request.path, "body": request.raw.decode()})

        return handle

    async with serve(make) as loopback:
        yield loopback


async def test_a_document_is_read_whole_with_who_asks_and_nothing_else() -> None:
    secret = {"Authorization": "Bearer secret", "X-Key": "secret"}
    async with ordinary() as loopback, fetcher(headers=secret) as asking:
        fetched = await asking.get(f"{loopback.url}/x?y=1", {"x-asked": "this"})
    (request,) = loopback.requests

    assert (fetched.status, fetched.json_object()) == (200, {"path": "/v1/x?y=1", "body": ""})
    assert request.headers["user-agent"] == "hermes-gateway"
    assert request.headers["x-asked"] == "this"
    assert "secret" not in str(request.headers)


async def test_a_form_and_json_arrive_as_they_are() -> None:
    async with ordinary() as loopback, fetcher() as asking:
        form = await asking.post(loopback.url, form={"a": "b c&d"}, headers={"user-agent": "me"})
        await asking.post(loopback.url, json={"a": [1]})
    first, second = loopback.requests

    assert form.json_object() == {"path": "/v1", "body": "a=b+c%26d"}
    assert first.headers["user-agent"] == "me"
    assert second.body == {"a": [1]}


@requirement("threat.s14")
@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "https://evil.example/x",
        "http://169.254.169.254/latest/meta-data",
        "//evil.example/x",
        "http://127.0.0.1:1/x",
        "http://localhost/x",
        "http://127.0.0.1:99999/x",
        "http://[::1/x",
        "data:application/json,{}",
    ],
)
async def test_a_redirect_to_another_origin_is_not_followed(location: str) -> None:
    async with trapped(lambda _: redirecting(location)) as (hostile, asking):
        with pytest.raises(ToolHostError, match="redirects to another origin") as refused:
            await asking.get(f"{hostile.origin}/x?secret=1")
        assert len(hostile.heads) == 1

    assert "secret" not in str(refused.value)


@requirement("threat.s14")
async def test_three_redirects_within_an_origin_are_followed_and_no_fourth() -> None:
    async with ordinary() as loopback, fetcher() as asking:
        assert (await asking.get(f"{loopback.url}/last")).status == 200
    async with trapped(lambda _: redirecting("/1", "2", "?3", "/4")) as (hostile, asking):
        with pytest.raises(ToolHostError, match="redirects too often"):
            await asking.get(f"{hostile.origin}/x")
        paths = [head.split()[1] for head in hostile.heads]

    assert paths == ["/x", "/1", "/2", "/2?3"]


async def test_a_redirect_that_names_its_own_origin_is_followed_to_the_document() -> None:
    def make(hostile: Hostile) -> Trap:
        there, here = redirecting(f"{hostile.origin}/b"), plain(DOCUMENT)

        async def answer(writer: asyncio.StreamWriter) -> None:
            await (there if len(hostile.heads) == 1 else here)(writer)

        return answer

    async with trapped(make) as (hostile, asking):
        fetched = await asking.get(f"{hostile.origin}/a")

    assert (fetched.url, fetched.body) == (f"{hostile.origin}/b", DOCUMENT)


@requirement("threat.s14")
@pytest.mark.parametrize("ask", [look, post])
async def test_a_look_and_a_post_follow_no_redirect_at_all(ask: Ask) -> None:
    async with trapped(lambda _: redirecting("/elsewhere")) as (hostile, asking):
        fetched = await ask(asking, f"{hostile.origin}/x")
        assert len(hostile.heads) == 1

    assert (fetched.status, fetched.headers["location"]) == (302, "/elsewhere")


@requirement("threat.s14", "threat.s21")
@pytest.mark.parametrize("ask", [get, look, post])
async def test_of_a_body_of_a_gigabyte_only_the_beginning_is_taken(ask: Ask) -> None:
    async with trapped(lambda hostile: endless(hostile, GB)) as (hostile, asking):
        with pytest.raises(ToolHostError, match="answers with more than 64 KB"):
            await ask(asking, f"{hostile.origin}/x")
        await eventually_async(hostile.left.is_set)
        # What the sockets of both sides hold is on its way already.
        assert hostile.sent < 32 * MB


@requirement("threat.s14", "threat.s21")
async def test_a_small_body_that_unpacks_to_a_large_one_is_not_unpacked() -> None:
    async with trapped(lambda _: bomb(256 * MB)) as (hostile, asking):
        tracemalloc.start()
        try:
            with pytest.raises(ToolHostError, match="answers with more than 64 KB"):
                await asking.get(f"{hostile.origin}/x")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert peak < 16 * MB


async def test_a_body_at_the_limit_is_taken_and_one_above_is_not() -> None:
    async with trapped(lambda _: plain(b"x" * METADATA_BYTES)) as (hostile, asking):
        assert len((await asking.get(f"{hostile.origin}/x")).body) == METADATA_BYTES
    async with trapped(lambda _: plain(b"x" * (METADATA_BYTES + 1))) as (hostile, asking):
        with pytest.raises(ToolHostError, match="more than 64 KB"):
            await asking.get(f"{hostile.origin}/x")


@requirement("threat.s14")
async def test_an_answer_that_drips_ends_after_five_seconds_all_in_all() -> None:
    async with (
        trapped(dripping) as (body, of_body),
        trapped(lambda hostile: dripping(hostile, in_head=True)) as (head, of_head),
    ):
        begun = asyncio.get_running_loop().time()
        failures = await asyncio.gather(
            of_body.get(f"{body.origin}/x"),
            of_body.look(f"{body.origin}/x"),
            of_head.get(f"{head.origin}/x"),
            return_exceptions=True,
        )
        assert asyncio.get_running_loop().time() - begun < 30

    for failure in failures:
        assert isinstance(failure, ServerUnavailable)
        assert "did not answer within 5 s" in str(failure)


@requirement("threat.s14")
async def test_a_name_that_moves_after_it_was_judged_is_reached_where_it_was_judged() -> None:
    moving = Changing("127.0.0.1", "169.254.169.254")
    async with ordinary() as loopback, fetcher(resolve=moving) as asking:
        there = f"http://localhost:{loopback.port}/x"
        fetched = await asking.get(there)
        with pytest.raises(ToolHostError, match="localhost is at an address that is not public"):
            await asking.get(there)
        (request,) = loopback.requests

    assert fetched.status == 200
    assert request.headers["host"] == f"localhost:{loopback.port}"
    assert len(moving.asked) == 2


@requirement("threat.s14")
async def test_a_name_that_moves_between_two_hops_is_judged_at_each() -> None:
    moving = Changing("127.0.0.1", "10.0.0.5")
    async with (
        hostile_server(lambda _: redirecting("/next")) as hostile,
        fetcher(resolve=moving) as asking,
    ):
        with pytest.raises(ToolHostError, match="localhost is at an address that is not public"):
            await asking.get(f"http://localhost:{hostile.port}/x")
        assert len(hostile.heads) == 1


@requirement("threat.s14")
@pytest.mark.parametrize(
    "url",
    [
        "https://169.254.169.254/x",
        "https://[::ffff:127.0.0.1]/x",
        "https://2130706433/x",
        "https://0177.0.0.1/x",
        "http://93.184.215.14/x",
        "file:///etc/passwd",
        "https://as.example:99999/x",
        "https://127.0.0.1/\x01",
        "https://[::1/x",
    ],
)
@pytest.mark.parametrize("ask", [get, look, post])
async def test_what_may_not_be_reached_is_refused_in_one_sentence(url: str, ask: Ask) -> None:
    async with fetcher() as asking:
        with pytest.raises(ToolHostError, match="its sign-in leads where none may: ") as refused:
            await ask(asking, url)

    assert not isinstance(refused.value, ServerUnavailable)


async def test_a_name_is_held_to_the_certificate_even_on_a_connection_that_is_open(
    tmp_path: Path,
) -> None:
    made = make_certificates(tmp_path)

    def make(_: Loopback) -> Handler:
        async def handle(_: Request, answer: Answer) -> None:
            await answer.whole(200, DOCUMENT)

        return handle

    async with (
        serve(make, tls=made.context(wants_client=False)) as loopback,
        fetcher(
            f"https://127.0.0.1:{loopback.port}/mcp",
            ssl_verify=str(made.authority),
            resolve=Changing("127.0.0.1"),
        ) as asking,
    ):
        assert (await asking.get(f"https://127.0.0.1:{loopback.port}/x")).body == DOCUMENT
        with pytest.raises(ServerUnavailable, match="certificate is not accepted"):
            await asking.get(f"https://as.example:{loopback.port}/x")
        assert len(loopback.requests) == 1


async def test_the_certificate_of_nobody_is_believed_beyond_the_servers_own_host(
    tmp_path: Path,
) -> None:
    made = make_certificates(tmp_path)

    def make(_: Loopback) -> Handler:
        async def handle(_: Request, answer: Answer) -> None:
            await answer.whole(200, DOCUMENT)

        return handle

    async with (
        serve(make, tls=made.context(wants_client=False)) as loopback,
        fetcher(
            f"https://localhost:{loopback.port}/mcp",
            ssl_verify=False,
            resolve=Changing("127.0.0.1"),
        ) as asking,
    ):
        assert (await asking.get(f"https://localhost:{loopback.port}/x")).status == 200
        with pytest.raises(ServerUnavailable, match="certificate is not accepted"):
            await asking.get(f"https://127.0.0.1:{loopback.port}/x")


async def test_a_port_where_nobody_listens_and_a_name_of_nobody_can_be_tried_again() -> None:
    async with ordinary() as loopback:
        port = loopback.port

    class Nobody(Changing):
        async def __call__(self, host: str, port: int) -> Sequence[Address]:
            raise OSError(-2, "Name or service not known")

    async with fetcher() as asking:
        with pytest.raises(ServerUnavailable, match="connection refused") as refused:
            await asking.get(f"http://127.0.0.1:{port}/x?secret")
    async with fetcher(resolve=Nobody("127.0.0.1")) as asking:
        with pytest.raises(ServerUnavailable, match="name or service not known"):
            await asking.get("http://localhost/x")

    assert "secret" not in str(refused.value)
    assert not refused.value.sent


async def test_a_bad_proxy_is_named_and_a_proxy_is_used() -> None:
    async with fetcher(environ={"http_proxy": "nonsense://x"}) as asking:
        with pytest.raises(ToolHostError, match="the proxy in http_proxy is none of"):
            await asking.get("http://127.0.0.1/x")
    async with ordinary() as loopback:
        proxy = {"http_proxy": f"http://127.0.0.1:{loopback.port}"}
        async with fetcher(environ=proxy) as asking:
            await asking.get("http://127.0.0.1:9/x")
        (request,) = loopback.requests

    assert request.path == "http://127.0.0.1:9/x"


async def test_an_answer_that_does_not_unpack_or_is_no_object_is_said_to_be_so() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 x\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n"
        writer.write(head + b"junk")
        await writer.drain()

    async with trapped(lambda _: answer) as (hostile, asking):
        with pytest.raises(ToolHostError, match="something that does not unpack"):
            await asking.get(f"{hostile.origin}/x")
    for body in (b"[]", b"{", b"\xff", b"[" * 10_000):
        async with trapped(lambda _, body=body: plain(body)) as (hostile, asking):
            assert (await asking.get(f"{hostile.origin}/x")).json_object() is None
