"""The document that says who we are: printed for whoever hosts it, and looked at where it is."""

import json
import re
from pathlib import Path

import pytest

from gateway.cli.main import main
from mcp_host.oauth.cimd import document
from mcp_host.oauth.config import OAuthConfig
from tests.support.certificates import make_certificates
from tests.support.chat import ROOT, hermes
from tests.support.hosted import hosted
from tests.support.requirement import requirement

URL = "https://me.example/oauth/client.json"


@requirement("oauth.cimd.validation")
def test_the_document_is_printed_for_a_url(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "client-document", URL]) == 0

    assert json.loads(capsys.readouterr().out) == document(URL)


@requirement("oauth.cimd.validation")
@pytest.mark.parametrize("option", [(), ("--check",)])
def test_a_url_that_will_not_do_is_refused_with_the_rule(
    option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "client-document", "https://me.example/", *option]) == 1

    said = capsys.readouterr().err
    assert said == "hermes: https://me.example/ must have a path behind its host\n"


@requirement("oauth.cimd.validation")
def test_what_is_hosted_is_looked_at_and_a_broken_rule_named(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    env = {"SSL_CERT_FILE": str(certificates.authority)}

    def checked(url: str) -> tuple[int, str]:
        done = hermes(tmp_path, "mcp", "client-document", url, "--check", env=env)
        return done.returncode, done.stdout + done.stderr

    with hosted(certificates.context(wants_client=False)) as (origin, pages):
        url = f"{origin}/client.json"
        pages["/client.json"] = (200, document(url))
        pages["/other.json"] = (200, document(url))
        pages["/moved.json"] = (302, {})

        assert checked(url) == (0, f"{url} can be a client id\n")
        code, said = checked(f"{origin}/other.json")
        assert (code, "must have its own URL as client_id" in said) == (1, True)
        code, said = checked(f"{origin}/moved.json")
        assert (code, "redirects (HTTP 302)" in said) == (1, True)
        code, said = checked(f"{origin}/gone.json")
        assert (code, "answers HTTP 404" in said) == (1, True)


def test_the_guide_names_every_key_of_a_sign_in() -> None:
    text = (ROOT / "docs" / "oauth.md").read_text(encoding="utf-8")
    table = text.partition("## Keys")[2]

    rows = re.findall(r"^\| (`.+`) \|", table, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.partition("|")[0])]
    assert sorted(named) == sorted(OAuthConfig.model_fields)
