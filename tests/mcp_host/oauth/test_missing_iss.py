"""Who may leave out the issuer of a redirect that it says it sends: one server, and no other."""

import pytest

from mcp_host.oauth.browser_flow import expected_from
from mcp_host.oauth.discovery import AuthorizationServer
from mcp_host.oauth.redirect import LoginRefused, read_redirect
from tests.support.requirement import requirement

FIGMA = "https://api.figma.com"


def server(issuer: str) -> AuthorizationServer:
    return AuthorizationServer.model_validate(
        {
            "issuer": issuer,
            "token_endpoint": f"{issuer}/token",
            "authorization_response_iss_parameter_supported": True,
        }
    )


@requirement("oauth.figma")
def test_figma_is_let_by_without_iss_and_with_a_warning() -> None:
    expected = expected_from(server(FIGMA))

    granted = read_redirect(expected, f"code=c&state={expected.state}")

    assert granted.code == "c"
    assert granted.warning.startswith(f"{FIGMA} left out iss")


@requirement("oauth.figma")
def test_figma_may_not_name_another_issuer() -> None:
    expected = expected_from(server(FIGMA))

    with pytest.raises(LoginRefused, match="iss differs"):
        read_redirect(expected, f"code=c&state={expected.state}&iss=https%3A%2F%2Fwww.figma.com")


@requirement("oauth.figma")
@pytest.mark.parametrize(
    "issuer",
    [
        "https://as.example",
        "https://api.figma.com.as.example",
        "https://api.figma.com:444",
        "https://api.figma.com/other",
        "http://api.figma.com",
        "https://www.figma.com",
    ],
)
def test_nobody_else_may_leave_it_out(issuer: str) -> None:
    expected = expected_from(server(issuer))

    with pytest.raises(LoginRefused, match="iss is missing"):
        read_redirect(expected, f"code=c&state={expected.state}")


def test_each_sign_in_has_a_state_of_its_own() -> None:
    assert expected_from(server(FIGMA)).state != expected_from(server(FIGMA)).state
