"""`hermes chat -q`: one line in, only the reply on stdout, an exit code that says how it went."""

from tests.e2e.house import House
from tests.support.chat import hermes
from tests.support.requirement import requirement


@requirement(
    "approval.gate.never_runs_undecided", "case.in5", "cli.contract.exit_codes", "threat.s8"
)
def test_only_the_reply_is_printed_and_what_needs_approval_is_refused_with_the_reason(
    house: House,
) -> None:
    house.serve()
    house.configure()
    done = hermes(house.path, "chat", "-q", 'call write {"text": "x"}')
    assert done.stdout.startswith("Got: ")
    assert "mcp__box__write was not run: nobody can be asked on terminal: an admin" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert (done.returncode, done.stderr) == (0, "")
    assert not house.runs


@requirement("config.unknown_key.warns", "case.in5")
def test_a_slash_command_is_answered_too_while_warnings_stay_on_stderr(house: House) -> None:
    house.configure(guided=True, gateway={"max_round": 3})
    done = hermes(house.path, "chat", "-q", "/whoami")
    assert done.stdout == "You are you (`terminal:local`), role **admin**.\n"
    assert "gateway.max_round" in done.stderr
    assert "max_rounds" in done.stderr
    assert done.returncode == 0


@requirement("cli.contract.exit_codes")
def test_a_turn_that_failed_says_why_in_one_sentence_and_exits_1(house: House) -> None:
    house.configure()
    done = hermes(house.path, "chat", "-q", "fail unauthorized")
    told = "The model openai:scripted could not answer (the key was refused (401)).\n"
    assert done.stdout == told
    assert (done.returncode, done.stderr) == (1, "")
    assert "the key was refused" in house.log
