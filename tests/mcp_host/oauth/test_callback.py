import asyncio
import socket

import httpx
import pytest

from mcp_host.oauth.callback import HEAD_BYTES, MAX_CONNECTIONS, Listener, NoPort, listening
from mcp_host.oauth.redirect import Expected, Granted, LoginRefused, WrongState
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

STATE = "s3cret"
ISSUER = "https://sign-in.example"
EXPECTED = Expected(state=STATE, issuer=ISSUER)
ANSWER = f"/callback?code=c0de&state={STATE}"
SECONDS = 5.0


async def get(
    listener: Listener, target: str, *, method: str = "GET", **headers: str
) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(trust_env=False) as browser:
        url = f"http://127.0.0.1:{listener.port}{target}"
        return await browser.request(method, url, headers=named)


async def raw(listener: Listener, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(data)
    try:
        return await reader.read()
    except ConnectionResetError:
        # Nobody read the rest of it.
        return b""
    finally:
        writer.close()


async def answer(listener: Listener) -> Granted:
    async with asyncio.timeout(SECONDS):
        return await listener.answer()


def bound() -> tuple[socket.socket, int]:
    """Take a port, as another program would."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen(1)
    return taken, taken.getsockname()[1]


@requirement("threat.s16", "oauth.login.paste_back")
async def test_the_answer_of_a_browser_is_taken_on_this_machine_alone() -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        assert addresses_of(listener) == {"127.0.0.1"}

        page = await get(listener, ANSWER)

        assert page.status_code == 200
        assert await answer(listener) == Granted(code="c0de")


def addresses_of(listener: Listener) -> set[str]:
    """Return the local addresses that listen on the port, as the kernel has them."""
    found: set[str] = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with open(f"/proc/net/{name}") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        for row in rows:
            address, port = row[1].split(":")
            if int(port, 16) == listener.port and row[3] == "0A":
                words = [address[at : at + 8] for at in range(0, len(address), 8)]
                packed = b"".join(bytes.fromhex(word)[::-1] for word in words)
                found.add(socket.inet_ntop(family, packed))
    return found


@requirement("threat.s16")
async def test_a_browser_that_takes_localhost_for_ipv6_is_heard_too() -> None:
    async with listening([0], "/callback", EXPECTED, redirect_host="localhost") as listener:
        assert addresses_of(listener) <= {"127.0.0.1", "::1"}
        async with httpx.AsyncClient(trust_env=False) as browser:
            await browser.get(f"http://localhost:{listener.port}{ANSWER}")
        assert (await answer(listener)).code == "c0de"


@requirement("threat.s16")
async def test_the_page_shows_nothing_of_what_was_sent_and_leads_nowhere() -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        sent = f"{ANSWER}&next=https://evil.example&x=<script>canary</script>"
        pages = [await get(listener, "/canary"), await get(listener, sent)]

    for page in pages:
        for part in (page.text, str(page.headers)):
            assert "canary" not in part
            assert "evil" not in part
            assert "c0de" not in part
        assert "<script" not in page.text
        assert "location" not in page.headers
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["cache-control"] == "no-store"


@requirement("threat.s16")
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost:1",
        "127.0.0.1.evil.example",
        "",
    ],
)
async def test_another_name_for_this_machine_is_not_served(host: str) -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        page = await get(listener, ANSWER, host=host.format(port=listener.port))
        assert page.status_code == 421

        named = f"LOCALHOST:{listener.port}"
        assert (await get(listener, ANSWER, host=named)).status_code == 200
        assert (await answer(listener)).code == "c0de"


@requirement("threat.s16")
async def test_the_name_of_a_proxy_that_leads_here_is_served() -> None:
    proxied = "https://Gateway.example/callback"
    async with listening([0], "/callback", EXPECTED, proxied_uri=proxied) as listener:
        other = await get(listener, ANSWER, host="gateway.example:444")
        own = await get(listener, ANSWER, host="gateway.example")

        assert (other.status_code, own.status_code) == (421, 200)


@requirement("threat.s16", "threat.s15")
@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/callback", 400),
        ("GET", "/callback?code=c0de", 400),
        ("GET", f"/callback/?code=c0de&state={STATE}", 404),
        ("GET", f"/?code=c0de&state={STATE}", 404),
        ("GET", "/favicon.ico", 404),
        ("POST", ANSWER, 405),
        ("HEAD", ANSWER, 405),
        ("OPTIONS", ANSWER, 405),
    ],
)
async def test_what_is_no_answer_leaves_the_wait_as_it_was(
    method: str, target: str, status: int
) -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        page = await get(listener, target, method=method)
        assert page.status_code == status

        await get(listener, ANSWER)
        assert (await answer(listener)).code == "c0de"


@requirement("threat.s16")
async def test_a_picture_in_a_strange_page_cannot_end_a_login() -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        strange = await get(listener, "/callback?code=c&state=guess", sec_fetch_mode="no-cors")
        assert strange.status_code == 400

        await get(listener, ANSWER, sec_fetch_mode="navigate")
        assert (await answer(listener)).code == "c0de"


@requirement("threat.s15")
async def test_another_state_ends_the_login() -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        page = await get(listener, "/callback?code=c0de&state=other")

        assert (page.status_code, "another sign-in" in page.text) == (400, True)
        with pytest.raises(WrongState):
            await answer(listener)
        with pytest.raises(httpx.ConnectError):
            await get(listener, ANSWER)


@requirement("threat.s15")
async def test_two_logins_that_swap_their_answers_both_end() -> None:
    other = Expected(state="0ther", issuer=ISSUER)
    async with (
        listening([0], "/callback", EXPECTED) as first,
        listening([0], "/callback", other) as second,
    ):
        await get(second, ANSWER)
        await get(first, "/callback?code=theirs&state=0ther")

        for listener in (first, second):
            with pytest.raises(WrongState):
                await answer(listener)


@requirement("threat.s15")
async def test_a_no_ends_the_login_with_its_reason() -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        await get(listener, f"/callback?error=access_denied&state={STATE}")

        with pytest.raises(LoginRefused, match="access_denied"):
            await answer(listener)


@requirement("threat.s16", "threat.s15")
async def test_the_first_answer_is_the_only_one() -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(f"GET {ANSWER.replace('c0de', 'second')} HTTP/1.1\r\n".encode())
        await get(listener, ANSWER)

        writer.write(f"Host: 127.0.0.1:{listener.port}\r\n\r\n".encode())
        assert b" 410 " in await reader.readline()
        writer.close()
        with pytest.raises(httpx.ConnectError):
            await get(listener, ANSWER)
        assert await answer(listener) == Granted(code="c0de")


@requirement("threat.s16")
@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        f"GET {ANSWER} HTTP/1.1\r\n\r\n".encode(),
        f"GET {ANSWER} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".encode(),
        b"GET /" + b"x" * (HEAD_BYTES + 1),
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * HEAD_BYTES,
    ],
)
async def test_what_is_no_proper_request_is_refused_and_harms_nothing(data: bytes) -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        assert b" 200 " not in await raw(listener, data)

        await get(listener, ANSWER)
        assert (await answer(listener)).code == "c0de"


@requirement("threat.s16")
async def test_connections_that_say_nothing_are_bounded_and_end_with_the_login() -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        silent = [
            await asyncio.open_connection("127.0.0.1", listener.port)
            for _ in range(MAX_CONNECTIONS + 1)
        ]
        # The last one is over the bound: it is closed at once.
        async with asyncio.timeout(SECONDS):
            assert await silent[-1][0].read() == b""
        silent[0][1].close()
        await silent[0][1].wait_closed()

    for reader, writer in silent[1:]:
        async with asyncio.timeout(SECONDS):
            assert await reader.read() == b""
        writer.close()


@requirement("threat.s16")
async def test_a_port_that_is_taken_is_named_with_the_remedy() -> None:
    taken, port = bound()
    with taken, pytest.raises(NoPort, match=rf"port {port} \(.+\): free it, or set oauth\."):
        async with listening([port], "/callback", EXPECTED):
            pass


@requirement("threat.s16", "oauth.cimd.ports")
async def test_the_next_port_is_taken_when_one_is_held_and_held_until_the_answer() -> None:
    taken, first = bound()
    spare, second = bound()
    spare.close()
    with taken:
        ports = (first, second)
        async with listening(ports, "/callback", EXPECTED) as listener:
            assert listener.port == second
            with pytest.raises(NoPort):
                async with listening(ports, "/callback", EXPECTED):
                    pass
            async with listening([*ports, 0], "/callback", EXPECTED) as another:
                assert another.port not in {first, second, 0}
            await get(listener, ANSWER)
        async with listening(ports, "/callback", EXPECTED) as again:
            assert again.port == second


@requirement("threat.s16")
async def test_an_end_without_an_answer_leaves_nothing_behind() -> None:
    async with listening([0], "/callback", EXPECTED) as listener:
        waiting = asyncio.create_task(listener.answer())
        port = listener.port
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with listening([port], "/callback", EXPECTED) as again:
        assert again.port == port
