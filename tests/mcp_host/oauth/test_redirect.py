import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_host.oauth.redirect import (
    Expected,
    Granted,
    LoginRefused,
    NotOurs,
    WrongState,
    pasted_query,
    read_redirect,
)
from tests.support.requirement import requirement

ISSUER = "https://sign-in.example"
PLAIN = Expected(state="s3cret", issuer=ISSUER)
STRICT = Expected(state="s3cret", issuer=ISSUER, iss_advertised=True)
LENIENT = Expected(state="s3cret", issuer=ISSUER, iss_advertised=True, iss_may_lack=True)
QUERY = "code=c%2F1&state=s3cret"
RIGHT_ISS = "&iss=https%3A%2F%2Fsign-in.example"
WRONG_ISS = "&iss=https%3A%2F%2Fevil.example"


@pytest.mark.parametrize("expected", [PLAIN, STRICT, LENIENT])
def test_a_fitting_answer_grants_its_code(expected: Expected) -> None:
    assert read_redirect(expected, QUERY + RIGHT_ISS) == Granted(code="c/1")


def test_who_does_not_say_that_it_sends_iss_need_not() -> None:
    assert read_redirect(PLAIN, QUERY) == Granted(code="c/1")


@requirement("threat.s15")
@pytest.mark.parametrize(
    "query",
    ["", "code=c", "state=", "code=c&state=", "STATE=s3cret&code=c", "x" * 20_000, "a=1&" * 100],
)
def test_what_has_no_state_is_nobodys_answer(query: str) -> None:
    with pytest.raises(NotOurs):
        read_redirect(STRICT, query)


@requirement("threat.s15")
@pytest.mark.parametrize(
    "state", ["other", "s3cre", "s3cret2", "S3CRET", "%00", "s3cret%20", "%FF%FE", "ü"]
)
def test_another_state_is_another_login(state: str) -> None:
    with pytest.raises(WrongState):
        read_redirect(STRICT, f"code=c&state={state}{RIGHT_ISS}")


@requirement("threat.s15")
@pytest.mark.parametrize("expected", [PLAIN, STRICT, LENIENT])
@pytest.mark.parametrize("rest", ["", "&error=access_denied&error_description=Call+555"])
def test_a_differing_iss_is_always_refused_and_nothing_of_it_shown(
    expected: Expected, rest: str
) -> None:
    with pytest.raises(LoginRefused, match="another authorization server") as refused:
        read_redirect(expected, QUERY + WRONG_ISS + rest)
    assert "evil" not in str(refused.value)
    assert "555" not in str(refused.value)


@requirement("threat.s15")
@pytest.mark.parametrize("iss", [f"{ISSUER}/", ISSUER.upper(), f"{ISSUER}:443", ""])
def test_iss_is_compared_letter_by_letter(iss: str) -> None:
    with pytest.raises(LoginRefused, match="iss differs"):
        read_redirect(PLAIN, f"{QUERY}&iss={iss}")


@requirement("threat.s15")
def test_an_advertised_iss_must_be_there() -> None:
    with pytest.raises(LoginRefused, match="iss is missing"):
        read_redirect(STRICT, QUERY)
    with pytest.raises(LoginRefused, match="iss is missing"):
        read_redirect(STRICT, "error=access_denied&state=s3cret")


@requirement("oauth.figma")
def test_one_that_may_leave_it_out_is_let_by_with_a_warning() -> None:
    granted = read_redirect(LENIENT, QUERY)

    assert granted.code == "c/1"
    assert granted.warning.startswith(f"{ISSUER} left out iss")


@pytest.mark.parametrize("name", ["state", "code", "iss", "error"])
def test_nothing_is_named_twice(name: str) -> None:
    query = f"{QUERY}{RIGHT_ISS}&{name}=a&{name}=b"
    with pytest.raises(LoginRefused, match="twice"):
        read_redirect(STRICT, query)


def test_a_refusal_is_told_by_its_name_and_what_it_means() -> None:
    query = f"error=access_denied&error_description=Pay+here&state=s3cret{RIGHT_ISS}"
    with pytest.raises(LoginRefused) as refused:
        read_redirect(STRICT, query)
    assert str(refused.value) == "the sign-in was refused: access_denied (you, or it, said no)"


def test_a_strange_refusal_cannot_steer_a_terminal() -> None:
    with pytest.raises(LoginRefused) as refused:
        read_redirect(PLAIN, "error=%1B%5B2J%0Ahi" + "x" * 500 + "&state=s3cret")
    assert "\x1b" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_an_answer_without_a_code_ends_the_login() -> None:
    with pytest.raises(LoginRefused, match="no code"):
        read_redirect(PLAIN, "state=s3cret")


def test_a_code_and_a_state_are_in_no_log_of_a_value() -> None:
    assert "c/1" not in repr(read_redirect(PLAIN, QUERY))
    assert "s3cret" not in repr(PLAIN)


@requirement("oauth.login.paste_back")
@pytest.mark.parametrize(
    "text",
    [
        f"http://127.0.0.1:4711/callback?{QUERY}",
        f"  http://localhost:4711/callback?{QUERY}#_=_ \n",
        f"https://proxy.example/cb?{QUERY}",
        f"?{QUERY}",
        QUERY,
        f'"{QUERY}"',
        f"<http://127.0.0.1/callback?{QUERY}>",
        "http://127.0.0.1:1/callback?code=c%2F1&sta\n te=s3cret",
    ],
)
def test_a_pasted_url_or_query_is_taken_as_the_browser_has_it(text: str) -> None:
    assert read_redirect(PLAIN, pasted_query(text)) == Granted(code="c/1")


@requirement("oauth.login.paste_back")
@pytest.mark.parametrize(
    "text", ["", "hello", "c/1", "https://sign-in.example/authorize", "?", "#"]
)
def test_something_else_that_is_pasted_is_no_answer(text: str) -> None:
    with pytest.raises(NotOurs):
        read_redirect(PLAIN, pasted_query(text))


@given(st.text())
def test_no_text_at_all_signs_anybody_in_or_fails_otherwise(text: str) -> None:
    for query in (text, pasted_query(text), f"state={text}", f"{text}&state=s3cret"):
        try:
            granted = read_redirect(STRICT, query)
        except (NotOurs, WrongState, LoginRefused):
            continue
        raise AssertionError(granted)
