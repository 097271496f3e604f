"""The life of a chat process: alone on its home, ended by a signal, started again with an open card."""

import signal

from tests.e2e.house import CARD, House
from tests.soak.ledger import reading
from tests.support.chat import hermes
from tests.support.requirement import requirement


@requirement("cli.contract.exit_codes", "approval.gate")
def test_a_terminated_chat_leaves_its_card_open_and_the_next_one_takes_the_answer(
    house: House,
) -> None:
    house.serve()
    house.configure(guided=True)
    with house.chat() as chat:
        chat.say('/call write {"text": "once"}')
        chat.expect(CARD)
        second = hermes(house.path, "chat", stdin="hello\n")
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr == (
            f"hermes: home {house.path}: already in use by process {chat.pid}\n"
        )
        chat.say("/whoami")
        chat.expect("You are you")
        chat.signal(signal.SIGTERM)
        assert chat.wait(seconds=10) == 0
    assert not house.runs
    with house.chat() as chat:
        chat.expect(f"box · write\n.*?{CARD}")
        chat.say("1")
        chat.expect("write: Allowed once by you.*\n1\n")
        chat.signal(signal.SIGINT)
        assert chat.wait(seconds=20) == 130
    assert house.runs == ["once"]
    assert "Traceback" not in house.log + house.stderr


@requirement("cli.contract.exit_codes")
def test_control_c_ends_the_chat_as_interrupted_and_takes_no_question_back(house: House) -> None:
    house.serve(tools={"policy": {"order": "allow"}})
    house.configure(guided=True)
    with house.chat(terminal=True) as chat:
        chat.say('/call order {"text": "Which one?"}')
        chat.expect(r"Day \(1 of 3\).*?or type: decline, cancel\n")
        chat.press("\x03")
        assert chat.wait(seconds=20) == 130
        with reading(house.path) as database:
            assert database.execute("SELECT state FROM question").fetchall() == [("pending",)]
    assert "Traceback" not in house.log + chat.seen
