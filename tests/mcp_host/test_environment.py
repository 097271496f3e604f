from hypothesis import given
from hypothesis import strategies as st

from mcp_host.environment import child_environment

OURS = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C",
    "XDG_RUNTIME_DIR": "/run/user/1",
    "FOO_TOKEN": "secret",
    "TELEGRAM_BOT_TOKEN": "secret",
    "PATHOLOGICAL": "x",
}


def test_a_child_gets_the_safe_baseline_and_nothing_else() -> None:
    child = child_environment(OURS, configured={})

    assert set(child.variables) == {"PATH", "HOME", "LC_ALL", "XDG_RUNTIME_DIR"}


def test_what_the_entry_configures_comes_on_top_of_the_baseline() -> None:
    child = child_environment(OURS, configured={"FOO_TOKEN": "mine", "PATH": "/opt/bin"})

    assert child.variables["FOO_TOKEN"] == "mine"
    assert child.variables["PATH"] == "/opt/bin"


def test_the_names_that_were_withheld_are_known_and_sorted() -> None:
    child = child_environment(OURS, configured={"FOO_TOKEN": "mine"})

    assert child.withheld == ("PATHOLOGICAL", "TELEGRAM_BOT_TOKEN")


def test_a_variable_that_holds_a_shell_function_is_withheld() -> None:
    child = child_environment({"TERM": "() { :; }; rm -rf /"}, configured={})

    assert child.variables == {}
    assert child.withheld == ("TERM",)


@given(st.dictionaries(st.text(min_size=1), st.text()), st.dictionaries(st.text(), st.text()))
def test_every_variable_of_ours_is_passed_replaced_or_named(
    ours: dict[str, str], configured: dict[str, str]
) -> None:
    child = child_environment(ours, configured=configured)

    assert set(ours) | set(configured) == set(child.variables) | set(child.withheld)
    assert not set(child.variables) & set(child.withheld)
