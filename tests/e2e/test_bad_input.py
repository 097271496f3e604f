"""What goes wrong outside: dead servers, a broken configuration, a model that errs. A clear sentence each."""

from tests.e2e.house import House
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.requirement import requirement


def test_dead_servers_are_told_and_logged_and_the_others_work(house: House) -> None:
    house.serve()
    house.serve("--exit-at-start", "3", name="dies")
    house.serve("--silent", "initialize", name="hangs", connect_timeout=1, protocol="legacy")
    house.servers["gone"] = {"command": "no-such-program-here"}
    house.configure(guided=True, mcp={"first_turn_wait": 1})
    with house.chat() as chat:
        eventually(lambda: "box: connecting -> ready" in house.log, seconds=30, what="a server")
        chat.say('/call mcp__box__echo {"text": "still here"}')
        chat.expect("still here")
        for server in ("gone", "dies", "hangs"):
            why = f"server {server}: connecting -> "
            eventually(lambda why=why: why in house.log, seconds=30, what=why)
        chat.say("/mcp gone")
        chat.expect(r"\*\*gone\*\* parked, 0 tools: command not found: no-such-program-here")
        chat.say("/mcp dies")
        chat.expect(r"\*\*dies\*\* [a-z]+, 0 tools: .*3.*no licence")
        chat.say("/mcp hangs")
        chat.expect(r"\*\*hangs\*\* [a-z]+, 0 tools: .*1 s")
        chat.say('/call mcp__dies__write {"text": "x"}')
        chat.expect("There is no tool mcp__dies__write")
        assert chat.end() == 0
    for server in ("gone", "dies", "hangs"):
        assert f"server {server}: " in house.log
    assert "Traceback" not in house.log + house.stderr
    assert not house.runs


def test_a_broken_configuration_names_file_line_and_column(house: House) -> None:
    (house.path / "config.yaml").write_text("gateway:\n  max_rounds: [1\nmodel: x\n")
    done = hermes(house.path, "chat", stdin="hello\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{house.path / 'config.yaml'}:3:" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


@requirement("cli.contract.exit_codes")
def test_every_model_error_ends_in_an_answer_or_one_clear_sentence(house: House) -> None:
    house.serve()
    house.configure()
    lines = {
        "fail rate_limited 1": "Fine after rate_limited.",
        "fail server_error 1": "Fine after server_error.",
        "fail cut 1": "Fine after cut.",
        "fail empty 1": "Fine after empty.",
        "fail empty": "The model gave an empty answer, also when asked again.",
        "fail rejected": "could not answer (the request was refused (400): temperature is not",
        "fail quota": "could not answer (its quota or credit is used up)",
        "fail no_such_model": "could not answer (no such model or address (404))",
        "fail context_too_long": "the conversation is longer than its context",
        'direct write {"text": ': "Got: ",
        "direct write [1]": "Got: ",
        "direct nothing {}": "There is no tool mcp__box__nothing",
        "how are you": "You said: how are you",
    }
    with house.chat() as chat:
        for line, told in lines.items():
            chat.say(line)
            assert told in chat.expect(r"[^\n]*\n")[0], line
        assert chat.end() == 0
    assert "Traceback" not in house.log + house.stderr
    assert house.stderr == ""
    assert not house.runs
