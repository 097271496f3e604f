"""Whom a server's certificate must come from, and what we show of ourselves."""

import os
import ssl

import httpx2

from gateway.domain.errors import ToolHostError
from mcp_host.errors import reason_of
from mcp_host.server_config import ServerConfig


def ssl_context(server: str, config: ServerConfig) -> ssl.SSLContext:
    """Return the context of every connection to the server.

    Raises:
        ToolHostError: A file is missing or holds something else; it names server and path.
    """
    context = _verifying(server, config.ssl_verify)
    if config.client_cert:
        _show_certificate(server, config, context)
    return context


def trusting(server: str, config: ServerConfig, *, own_host: bool) -> ssl.SSLContext:
    """Return the context of connections that show nothing of ourselves, for a sign-in to the server.

    On the server's own host it is believed as for the server; elsewhere a private authority of the
    entry is believed beside the public ones, and nobody is believed unseen.

    Raises:
        ToolHostError: A file is missing or holds something else; it names server and path.
    """
    if own_host:
        return _verifying(server, config.ssl_verify)
    context = httpx2.create_ssl_context()
    if isinstance(config.ssl_verify, str):
        path = _existing(server, "ssl_verify", config.ssl_verify)
        place = {"capath" if os.path.isdir(path) else "cafile": path}
        try:
            context.load_verify_locations(**place)
        except (OSError, ValueError) as error:
            raise _unusable(server, "ssl_verify", path, error) from error
    return context


def _verifying(server: str, verify: bool | str) -> ssl.SSLContext:
    if verify is True:
        return httpx2.create_ssl_context()
    context = ssl.create_default_context()
    if verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    path = _existing(server, "ssl_verify", verify)
    try:
        # Only these: the system's authorities must not speak for a private one.
        if os.path.isdir(path):
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:
        raise _unusable(server, "ssl_verify", path, error) from error


def _show_certificate(server: str, config: ServerConfig, context: ssl.SSLContext) -> None:
    certificate, key, password = (*config.client_cert, None, None)[:3]
    path = _existing(server, "client_cert", certificate or "")
    key_name = "client_cert" if key else "client_key"
    key = key or config.client_key
    key_path = _existing(server, key_name, key) if key else None
    try:
        # Without a password an encrypted key must fail here, not ask at a terminal.
        context.load_cert_chain(path, key_path, password or "")
    except (OSError, ValueError) as error:
        raise _unusable(server, "client_cert", path, error) from error


def _existing(server: str, key: str, path: str) -> str:
    expanded = os.path.abspath(os.path.expanduser(path))
    if not os.path.exists(expanded):
        raise ToolHostError(server, f"{key}: the file {expanded} does not exist")
    return expanded


def _unusable(server: str, key: str, path: str, error: Exception) -> ToolHostError:
    why = reason_of(error)
    if isinstance(error, ssl.SSLError) and error.reason:
        why = error.reason.lower().replace("_", " ")
    return ToolHostError(server, f"{key}: the file {path} cannot be used: {why}")
