"""The secrets of a sign-in, from its first request to its end, and all that is written meanwhile."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.e2e.house import House
from tests.e2e.signing_in import come_back, event_in, signing_in
from tests.fakes.oauth.process import OAuthProcess, oauth_process
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

CLIENT_SECRET = "caNary-client-secret-0123456789"
KNOWN = {"client_id": "ours", "secret": CLIENT_SECRET, "method": "client_secret_basic"}
READY = "box: connecting -> ready"

_TELLS_ALL = "import os, sys; sys.stderr.write(f'{sys.argv} {dict(os.environ)}\\n'); sys.exit(3)"


def secrets_of(world: OAuthProcess) -> set[str]:
    """Return every secret that went over the wire."""
    found = {CLIENT_SECRET}
    requests: list[dict[str, dict[str, str]]] = world.do("seen")
    for seen in requests:
        form = seen["form"]
        found |= {form.get(name, "") for name in ("code", "code_verifier", "refresh_token")}
        scheme, _, token = seen["headers"].get("authorization", "").partition(" ")
        found |= {token} if scheme in {"Bearer", "Basic"} else set()
    return found - {""}


def written(home: Path) -> Iterator[tuple[str, bytes]]:
    """Return everything in a home but what is there to hold secrets."""
    for path in home.rglob("*"):
        place = path.relative_to(home).parts
        if path.is_file() and place[0] not in {"mcp-tokens", "config.yaml", ".env"}:
            yield str(path), path.read_bytes()


@requirement("oauth.tokens.bound")
def test_no_secret_of_a_sign_in_is_in_a_log_an_event_an_error_or_a_child(house: House) -> None:
    with oauth_process(clients=[KNOWN]) as world:
        oauth = {"client_id": "ours", "client_secret": CLIENT_SECRET}
        house.servers["box"] = {
            "url": world.url, "auth": "oauth", "trust": "full", "oauth": oauth,
        }  # fmt: skip
        house.servers["tells"] = {"command": sys.executable, "args": ["-S", "-c", _TELLS_ALL]}
        house.configure(logging={"level": "debug"})
        shown: list[str] = []
        with signing_in(house.path, "--json", command=("login", "box")) as running:
            event = event_in(running)
            back = str(world.do("approve", url=event["url"]))
            come_back(back.replace("state=", "state=x", 1))
            running.wait()
            shown.append(running.seen)
        with signing_in(house.path, "--json", command=("login", "box")) as running:
            event = event_in(running)
            back = str(world.do("approve", url=event["url"]))
            come_back(back)
            assert event_in(running)["ok"]
            assert running.wait() == 0
            shown.append(running.seen)
        with Gateway(house.path) as gateway, house.chat() as chat:
            eventually(lambda: house.log.count(READY) >= 2, what="the server")
            chat.say('call echo {"text": "one"}')
            chat.expect("Got: one")
            world.do("expire")
            chat.say('call echo {"text": "two"}')
            chat.expect("Got: two")
            world.do("trouble", status=500, error="invalid_grant")
            world.do("expire")
            chat.say('call echo {"text": "three"}')
            chat.expect("Got: ")
            world.do("revoke")
            world.do("expire")
            chat.say('call echo {"text": "four"}')
            eventually(lambda: "hermes mcp login box" in house.log, what="the end of the sign-in")
            chat.say("/mcp box")
            chat.expect("needs login")
            assert chat.end() == 0
            shown.append(chat.seen)
            assert gateway.end() == 0
            shown.append(house.log)
        for command in (("mcp", "list", "--json"), ("mcp", "test", "box"), ("config", "show")):
            done = hermes(house.path, *command)
            shown += [done.stdout, done.stderr]

        secrets = secrets_of(world)
        codes = parse_qs(urlsplit(back).query)["code"]
        secrets |= set(codes)
    assert len(secrets) >= 6
    texts = [("a screen", text.encode()) for text in shown]
    leaks = [
        (place, secret[:12])
        for place, text in [*texts, *written(house.path)]
        for secret in secrets
        if secret.encode() in text
    ]
    assert leaks == []
    kept = json.loads((house.path / "mcp-tokens" / "box.json").read_text())
    assert CLIENT_SECRET not in json.dumps(kept)
