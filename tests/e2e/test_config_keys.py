"""Keys of the configuration and what each changes in a running chat."""

from tests.e2e.house import CARD, House, texts
from tests.support.requirement import requirement

ADMITTED = ("echo", "never", "write", "write_again", "write_bare", "write_quietly")
"""The exclusion has no say beside an inclusion."""


@requirement("case.cf8")
def test_keys_set_in_yaml_change_what_they_name(house: House) -> None:
    house.serve(
        tools={
            "include": ["echo", "write*", "never"],
            "exclude": "write_again",
            "policy": {"write_bare": "deny", "write_quietly": "allow", "echo": "ask"},
        },
    )
    house.serve(
        "--capabilities",
        str(house.file("capabilities")),
        name="brief",
        timeout=0.5,
        trust="full",
        tools={"exclude": ["[!now]*", "*_*"]},
        elicitation={"enabled": False},
    )
    house.configure(
        gateway={"max_rounds": 3, "turn_timeout": 4, "system_prompt": "Speak like a pirate."},
        approvals={"timeout": 120, "redact": ["*pin*"]},
        tools={"tool_search": {"enabled": False}},
    )
    with house.chat() as chat:
        chat.say("hello")
        # The first turn loads the model's library, which may take longer than the limit.
        chat.expect("You said: hello|The time limit")
        chat.say('direct write {"text": "x", "PIN-code": "123456"}')
        card = chat.expect(CARD).string
        assert '"PIN-code": "•••• (6 chars)"' in card
        assert "123456" not in card
        assert "(in 2 min)" in card
        chat.say("1")
        chat.expect("Got: 1")

        chat.say('direct write_quietly {"text": "unasked"}')
        chat.expect("Got: 2")
        chat.say('direct write_bare {"text": "x"}')
        chat.expect("Got: .*mcp__box__write_bare was not run: the policy for this server denies it")
        chat.say('direct steer {"text": "x"}')
        chat.expect("Got: .*There is no tool mcp__box__steer")
        chat.say('direct echo {"text": "asked for"}')
        chat.expect(f"box · echo\n.*?{CARD}")
        chat.say("1")
        chat.expect("Got: asked for")
        chat.say('/call mcp__brief__write {"text": "trusted"}')
        chat.expect("3\n")
        chat.say('/call mcp__brief__never {"text": ""}')
        chat.expect("never gave no answer within 0.5 s")
        chat.say('/call mcp__brief__order {"text": "Which one?"}')
        chat.expect("Elicitation not supported")
        assert "elicitation" not in house.lines("capabilities")[0]

        chat.say('loop write_quietly {"text": "again"}')
        chat.expect("I stopped after 3 rounds without a final answer")
        chat.say('direct never {"text": ""}')
        chat.expect("The time limit of 4 seconds for one answer was reached")
    assert house.runs == ["x", "unasked", "trusted", "never", "order", "again", "again", "never"]
    (first, *_) = house.model.requests('direct write {"text": "x", "PIN-code": "123456"}')
    assert "Speak like a pirate." in texts(first, "system")[0]
    offered = {function["function"]["name"] for function in first["tools"]}
    assert offered == {
        *(f"mcp__box__{name}" for name in ADMITTED),
        "mcp__brief__never",
        "mcp__brief__order",
        "mcp__brief__write",
    }
    assert "123456" not in house.log
