import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.control.client import SocketClient
from gateway.control.http import exchange
from gateway.control.protocol import MAX_CONNECTIONS
from gateway.domain.errors import GatewayNotRunning, GatewayRefused
from tests.fakes.office import open_office
from tests.support.chat import ROOT
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

CONNECT = (
    "import os, socket, sys; os.setuid(65534);"
    "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
    "s.sendall(b'GET /v1/status HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n');"
    "sys.stdout.buffer.write(s.recv(100))"
)


async def said_to(path: Path, data: bytes) -> bytes:
    """Send raw bytes; return everything that comes back."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(data)
    try:
        async with asyncio.timeout(8):
            return await reader.read()
    finally:
        writer.close()


@requirement("threat.s17")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
async def test_another_user_gets_no_answer_even_where_the_file_lets_them(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        for place in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            place.chmod(0o711)
        # As if its mode had not kept the other user out.
        office.path.chmod(0o666)
        other = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", CONNECT, str(office.path)],
            capture_output=True,
            check=False,
        )
        ours = await said_to(office.path, b"GET /v1/status HTTP/1.0\r\n\r\n")

    assert other.stdout == b""
    assert b"Permission" not in other.stderr
    assert ours.startswith(b"HTTP/1.1 200")


async def test_nobody_listening_is_said_at_once(tmp_path: Path) -> None:
    client = SocketClient(tmp_path / "gateway.sock")
    started = time.monotonic()

    with pytest.raises(GatewayNotRunning):
        await client.status()
    (tmp_path / "gateway.sock").write_text("no socket")
    with pytest.raises(GatewayNotRunning):
        await client.stop()

    assert time.monotonic() - started < 1


@pytest.mark.parametrize("target", ["/v1/sung", "/v2/status", "/"])
async def test_a_route_this_gateway_lacks_means_that_it_is_older(
    tmp_path: Path, target: str
) -> None:
    async with open_office(tmp_path) as office, exchange(office.path, "GET", target) as answer:
        body = await answer.json()

    assert answer.status == 404
    assert body["code"] == "no_route"


async def test_a_client_says_that_the_gateway_is_older(tmp_path: Path) -> None:
    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nNot Found")
        writer.close()

    server = await asyncio.start_unix_server(old, tmp_path / "s")
    async with server:
        with pytest.raises(GatewayRefused, match="the running gateway is older: restart it"):
            await SocketClient(tmp_path / "s").reload()


async def test_a_gateway_that_dies_in_an_answer_is_said(tmp_path: Path) -> None:
    async def dying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{")
        writer.close()

    server = await asyncio.start_unix_server(dying, tmp_path / "s")
    async with server:
        with pytest.raises(GatewayRefused, match="ended before it answered"):
            await SocketClient(tmp_path / "s").status()


@requirement("threat.s21")
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"x" * 1_000_001, 413, "too_large"),
        (b"{", 400, "invalid_arguments"),
        (b"[1]", 400, "invalid_arguments"),
        (b"[" * 100_000, 400, "invalid_arguments"),
        (b"\xff\xfe", 400, "invalid_arguments"),
        (b'{"target": 5, "message": "x"}', 400, "invalid_arguments"),
        (b'{"target": "loop", "message": "x", "wait_ms": true}', 400, "invalid_arguments"),
        (b"", 400, "invalid_arguments"),
    ],
)
async def test_a_request_that_is_none_is_refused_with_a_sentence(
    tmp_path: Path, body: bytes, status: int, code: str
) -> None:
    head = f"POST /v1/send HTTP/1.0\r\ncontent-length: {len(body)}\r\n\r\n".encode()

    async with open_office(tmp_path) as office:
        raw = await said_to(office.path, head + body)

    first, _, rest = raw.partition(b"\r\n")
    answer = json.loads(rest.partition(b"\r\n\r\n")[2])
    assert first.split()[1] == str(status).encode()
    assert answer["code"] == code
    assert answer["error"]


async def test_too_many_connections_are_refused_and_the_others_stay(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        held = [await asyncio.open_unix_connection(office.path) for _ in range(MAX_CONNECTIONS)]
        with pytest.raises(GatewayRefused, match="too many connections"):
            await office.client.status()
        held[0][1].write(b"GET /v1/status HTTP/1.0\r\n\r\n")
        answered = await held[0][0].read()
        for _, writer in held:
            writer.close()
            await writer.wait_closed()

    assert answered.startswith(b"HTTP/1.1 200")


async def test_a_request_that_never_ends_is_dropped(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        slow = await asyncio.gather(
            said_to(office.path, b""),
            said_to(office.path, b"GET /v1/status HTTP/1.1\r\nhost:"),
            said_to(
                office.path, b"POST /v1/send HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{"
            ),
            return_exceptions=True,
        )

    assert all(answer == b"" or isinstance(answer, OSError) for answer in slow)


async def test_a_fault_of_ours_is_an_answer_without_detail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_office(tmp_path) as office:
        office.store_health.clear()
        with pytest.raises(GatewayRefused, match="something went wrong on our side"):
            await office.client.status()

    assert "IndexError" in caplog.text


def test_the_client_loads_no_web_framework() -> None:
    code = (
        "import sys, gateway.control.client;"
        "sys.exit(repr({'starlette', 'uvicorn', 'pydantic', 'sqlalchemy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.stderr.strip() == "set()"
