"""Private authorities and client certificates, in real handshakes."""

from pathlib import Path
from typing import Any

import pytest

from gateway.domain.tools import CallState, ServerState
from mcp_host.server_config import ServerConfig
from tests.fakes.mcp.http_server import HttpServer, mcp_server
from tests.mcp_host.hosting import Running, running
from tests.support.certificates import PASSWORD, Certificates, make_certificates
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def at(server: HttpServer, **keys: Any) -> ServerConfig:
    url = f"https://127.0.0.1:{server.loopback.port}/mcp"
    return ServerConfig.model_validate({"url": url, **keys})


async def why_not(host: Running) -> str:
    host.host.connect()
    await eventually_async(lambda: bool(host.status().reason))
    return host.status().reason


def shapes(files: Certificates) -> dict[str, dict[str, Any]]:
    """Return the documented ways to name a client certificate, by name."""
    certificate, key = str(files.certificate), str(files.key)
    return {
        "one file": {"client_cert": [str(files.combined)]},
        "two files": {"client_cert": [certificate, key]},
        "two keys": {"client_cert": [certificate], "client_key": key},
        "with a password": {"client_cert": [certificate, str(files.locked), PASSWORD]},
    }


@requirement("case.mh12")
@pytest.mark.parametrize("shape", ["one file", "two files", "two keys", "with a password"])
async def test_a_client_certificate_is_shown_to_a_server_of_a_private_authority(
    files: Certificates, shape: str
) -> None:
    keys = {"ssl_verify": str(files.authority), **shapes(files)[shape]}
    async with (
        mcp_server(tls=files.context(wants_client=True)) as server,
        running(at(server, **keys)) as host,
    ):
        assert (await host.call("echo", "hi")).state is CallState.OK


@requirement("case.mh12")
async def test_without_its_authority_a_server_is_not_believed(files: Certificates) -> None:
    async with (
        mcp_server(tls=files.context(wants_client=False)) as server,
        running(at(server), ready=False) as host,
    ):
        assert "its certificate is not accepted" in await why_not(host)
        assert server.requests == []


@requirement("case.mh12")
async def test_without_verification_any_certificate_will_do(files: Certificates) -> None:
    async with (
        mcp_server(tls=files.context(wants_client=False)) as server,
        running(at(server, ssl_verify=False)) as host,
    ):
        assert (await host.call("echo", "hi")).state is CallState.OK


@requirement("case.mh12")
async def test_without_a_certificate_of_ours_such_a_server_turns_us_away(
    files: Certificates,
) -> None:
    async with (
        mcp_server(tls=files.context(wants_client=True)) as server,
        running(at(server, ssl_verify=str(files.authority)), ready=False) as host,
    ):
        assert await why_not(host)
        assert host.host.tools() == ()


@requirement("mcp.http.file_paths")
@pytest.mark.parametrize("key", ["ssl_verify", "client_cert", "client_key"])
async def test_a_file_that_is_missing_is_named_and_parks_that_server_alone(
    files: Certificates, tmp_path: Path, key: str
) -> None:
    missing = str(tmp_path / "nothing.pem")
    keys: dict[str, Any] = {
        "ssl_verify": str(files.authority),
        "client_cert": [str(files.certificate)],
        "client_key": str(files.key),
    }
    keys[key] = [missing] if key == "client_cert" else missing
    async with mcp_server(tls=files.context(wants_client=True)) as server:
        good = at(server, ssl_verify=str(files.authority), client_cert=[str(files.combined)])
        async with running({"bad": at(server, **keys), "good": good}) as host:
            assert host.status("bad").state is ServerState.PARKED
            assert host.status("bad").reason == f"{key}: the file {missing} does not exist"
            assert host.status("good").state is ServerState.READY


@requirement("mcp.http.file_paths")
async def test_the_home_of_the_user_is_understood_in_every_path(
    files: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(files.authority.parent))
    keys = {
        "ssl_verify": "~/authority.pem",
        "client_cert": ["~/client.crt"],
        "client_key": "~/client.key",
    }
    async with (
        mcp_server(tls=files.context(wants_client=True)) as server,
        running(at(server, **keys)) as host,
    ):
        assert (await host.call("echo", "hi")).state is CallState.OK


@requirement("mcp.http.file_paths")
async def test_a_file_that_holds_something_else_is_named(
    files: Certificates, tmp_path: Path
) -> None:
    (tmp_path / "junk.pem").write_text("not a certificate")
    async with (
        mcp_server(tls=files.context(wants_client=False)) as server,
        running(at(server, ssl_verify=str(tmp_path / "junk.pem")), ready=False) as host,
    ):
        reason = await why_not(host)
        assert reason.startswith(f"ssl_verify: the file {tmp_path / 'junk.pem'} cannot be used: ")
