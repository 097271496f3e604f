import pytest

from gateway.telemetry.secrets import is_secret, secrets_of
from tests.support.requirement import requirement


@requirement("threat.s13")
@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"args": ["--token", "one", "two", "--my-key=three"]}, {"one", "three"}),
        ({"args": ["--api-key=one", "-v", "two"]}, {"one"}),
        ({"args": ["--password", "--token", "one"]}, {"one"}),
        ({"args": ["postgres://me:one@host/x"]}, {"one"}),
        ({"env": {"API_TOKEN": "one", "MODE": "two", "DSN": "amqp://u:three@h"}}, {"one", "three"}),
        ({"headers": {"X-Mine": "one", "Accept": "two"}}, {"one"}),
        ({"headers": {"Authorization": "Bearer one"}}, {"Bearer one", "one"}),
        ({"client_cert": ["cert", "key", "one"]}, {"one"}),
        ({"oauth": {"client_id": "two", "client_secret": "one"}}, {"one"}),
        ({"max_tokens": "5", "client_key": "/path", "api_key": "one"}, {"one"}),
    ],
)
def test_secrets_are_told_by_their_names_and_places(document: object, found: set[str]) -> None:
    assert set(secrets_of(document)) == found


def test_a_document_itself_is_no_secret() -> None:
    assert not is_secret(())
