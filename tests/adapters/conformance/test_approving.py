"""Who may press what, on every platform: exactly the allowed presses change anything."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.form import Form
from gateway.domain.question import ApproverPolicy, Approvers
from gateway.ports import Approver, FormRequest
from gateway.runtime.config import Route
from tests.adapters.conformance.gateway import ADD, REQUESTER, gated, hosting, noting
from tests.adapters.conformance.platform import Chat, Person, Scene, Shown
from tests.fakes.house import rows
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ENDS: Final = {
    "Allow once": ("allowed", "allow-once"),
    "Allow for this session": ("allowed", "allow-session"),
    "Always allow": ("allowed", "allow-always"),
    "Deny": ("denied", "deny"),
    "Submit": ("accepted", "submit"),
    "Decline": ("declined", "decline"),
    "Cancel": ("cancelled", "cancel"),
}
"""How a question ends by each button: its state and its decision."""
LAST: Final = "SELECT state, decision, decided_by FROM question ORDER BY rowid DESC LIMIT 1"
RULES: Final = "SELECT count(*) FROM standing_rule"


class Members:
    """Everybody in one group; Ana asks, or Root when an admin is to."""

    def __init__(self, scene: Scene) -> None:
        self.ana = scene.person("Ana")
        self.root, self.lia = scene.person("Root"), scene.person("Lia")
        self.ben, self.eve = scene.person("Ben"), scene.person("Eve")
        self.other_ana = scene.namesake(self.ana)
        self.everybody = (self.ana, self.root, self.lia, self.ben, self.eve, self.other_ana)

    @property
    def known(self) -> Sequence[Person]:
        """Those who may talk to the bot; Eve and the other Ana are strangers to it."""
        return (self.ana, self.root, self.lia, self.ben)


def asking_tools(count: int) -> FakeTools:
    """Return gated tools, one for each card: what is allowed for one says nothing of the next."""
    tools = FakeTools()
    for number in range(count):
        tools.add(tool(f"write_{number}"), gated=True)
    return tools


def form_tools(count: int) -> FakeTools:
    """Return tools that each ask for a confirmation while they run."""

    async def run(arguments: CanonicalJson, approver: Approver) -> str:
        del arguments
        request = FormRequest(
            server="demo", server_sha="s", tool="confirm", form=Form(message="Go on?")
        )
        return (await approver.elicit(request)).action.value

    tools = FakeTools()
    for number in range(count):
        tools.add(tool(f"write_{number}"), run)
    return tools


def calling_each(tools: FakeTools) -> ScriptedModel:
    """Return a model that calls one tool a turn, in order."""
    return ScriptedModel(
        [
            line
            for number, spec in enumerate(tools.specs)
            for line in (calls((spec.alias, {})), says(f"over {number}"))
        ]
    )


def serving(
    home: Path,
    scene: Scene,
    members: Members,
    tools: FakeTools,
    *,
    listed: Person | None = None,
) -> AbstractAsyncContextManager[object]:
    """Run a gateway for everybody it knows; Root is its admin, and `listed` decides for all."""
    approvers = REQUESTER
    if listed is not None:
        ids = (f"{scene.platform.name}:{listed.id}",)
        approvers = Approvers(policy=ApproverPolicy.LIST, ids=ids)
    return hosting(
        home,
        scene,
        calling_each(tools),
        tools,
        people=members.known,
        admins=[members.root],
        approvers=approvers,
    )


async def press_everything(
    chat: Chat,
    home: Path,
    members: Members,
    *,
    asker: Person,
    labels: Sequence[str],
    allowed: Sequence[Person],
) -> None:
    """Press every button as everybody: first those who may not, then one who may."""
    for number, (label, winner) in enumerate((x, y) for x in labels for y in allowed):
        await chat.say(f"go {number}", by=asker)
        card = await chat.card(label)
        assert set(labels) <= set(card.labels)
        await press_in_vain(chat, home, card, members, label, allowed)
        await (await chat.press(label, by=winner)).told()
        await chat.reply(f"over {number}")
        await chat.until(lambda card=card: not card.labels, what="the closed card")

        ((state, decision, by),) = rows(home / "state.db", LAST)
        assert (state, decision) == ENDS[label]
        assert by.endswith(f":{winner.id}")
        assert winner.name in card.text


async def press_in_vain(
    chat: Chat,
    home: Path,
    card: Shown,
    members: Members,
    label: str,
    allowed: Sequence[Person],
) -> None:
    seen = (card.text, card.labels, chat.texts)
    rules = rows(home / "state.db", RULES)
    for person in members.everybody:
        if person in allowed and label in card.labels:
            continue
        told = await (await chat.press(label, by=person)).told()
        assert "Only " in told
        assert (card.text, card.labels, chat.texts) == seen
        assert rows(home / "state.db", LAST) == [("pending", None, None)]
    assert rows(home / "state.db", RULES) == rules


@requirement("threat.s1", "case.t1")
async def test_by_default_the_requester_and_admins_decide_and_nobody_else(
    scene: Scene, tmp_path: Path
) -> None:
    members, labels = Members(scene), ("Allow once", "Allow for this session", "Deny")
    chat, tools = scene.group(*members.everybody), asking_tools(2 * len(labels))
    allowed = (members.ana, members.root)
    async with serving(tmp_path, scene, members, tools):
        await press_everything(
            chat, tmp_path, members, asker=members.ana, labels=labels, allowed=allowed
        )

    assert [name for name, _ in tools.ran] == ["write_0", "write_1", "write_2", "write_3"]


@requirement("threat.s1", "approval.decide.approvers")
async def test_where_approvers_are_listed_they_and_admins_decide_and_nobody_else(
    scene: Scene, tmp_path: Path
) -> None:
    members, labels = Members(scene), ("Allow once", "Allow for this session", "Deny")
    chat = scene.group(*members.everybody)
    tools = asking_tools(2 * len(labels))
    async with serving(tmp_path, scene, members, tools, listed=members.lia):
        await press_everything(
            chat,
            tmp_path,
            members,
            asker=members.root,
            labels=labels,
            allowed=(members.lia, members.root),
        )

    assert len(tools.ran) == 4


@requirement("threat.s1", "threat.s7")
async def test_only_an_admin_allows_for_ever(scene: Scene, tmp_path: Path) -> None:
    members, label = Members(scene), "Always allow"
    chat, tools = scene.group(*members.everybody), asking_tools(1)
    async with serving(tmp_path, scene, members, tools, listed=members.lia):
        await press_everything(
            chat, tmp_path, members, asker=members.root, labels=[label], allowed=[members.root]
        )

    assert rows(tmp_path / "state.db", RULES) == [(1,)]


@requirement("threat.s1", "elicitation.outcomes")
async def test_a_form_is_answered_by_its_requester_or_an_admin_alone(
    scene: Scene, tmp_path: Path
) -> None:
    members, labels = Members(scene), ("Submit", "Decline", "Cancel")
    chat, tools = scene.group(*members.everybody), form_tools(2 * len(labels))
    async with serving(tmp_path, scene, members, tools):
        await press_everything(
            chat,
            tmp_path,
            members,
            asker=members.ana,
            labels=labels,
            allowed=(members.ana, members.root),
        )


@requirement("approval.decide.approvers", "case.ap10")
@pytest.mark.parametrize("route", [Route.HOME, Route.DM_ADMINS])
async def test_what_a_group_asks_for_is_decided_where_the_admin_is(
    scene: Scene, tmp_path: Path, route: Route
) -> None:
    ana, root, tools = scene.person("Ana"), scene.person("Root"), gated()
    team, desk = scene.group(ana, root), scene.direct(root)
    model = ScriptedModel([says("Hello."), *noting().script])
    async with hosting(
        tmp_path, scene, model, tools, people=[ana, root], admins=[root], route=route
    ):
        await desk.say("hello")
        await desk.reply("Hello.")
        await desk.give("sethome")
        await desk.reply("home channel")
        await team.say("note milk", by=ana)
        await team.reply("Waiting for approval by Ana or an admin.")
        card = await desk.card("Always allow")
        assert "milk" in card.text
        assert not [text for text in team.texts if "milk" in text]
        await (await desk.press("Allow once")).told()
        await team.reply("Noted.")
        await desk.until(lambda: not card.labels, what="the closed card")

    assert "Allowed once by Root" in card.text
    assert tools.ran == [(ADD.name, '{"text":"milk"}')]


@requirement("threat.s3")
async def test_fifty_people_press_at_once_and_one_of_them_decides(
    scene: Scene, tmp_path: Path
) -> None:
    crowd = [scene.person(f"P{number}") for number in range(50)]
    chat, tools = scene.group(*crowd), gated()
    ids = tuple(f"{scene.platform.name}:{person.id}" for person in crowd)
    async with hosting(
        tmp_path,
        scene,
        noting(),
        tools,
        people=crowd,
        approvers=Approvers(policy=ApproverPolicy.LIST, ids=ids),
    ):
        await chat.say("note milk", by=crowd[0])
        card = await chat.card("Allow once")
        once, session = card.button("Allow once"), card.button("Allow for this session")
        presses = await asyncio.gather(
            *(
                (once if number % 2 else session).press(by=person)
                for number, person in enumerate(crowd)
            )
        )
        told = await asyncio.gather(*(press.told() for press in presses))
        await chat.reply("Noted.")
        await chat.until(lambda: not card.labels, what="the closed card")

    won = [person for person, text in zip(crowd, told, strict=True) if "settled" not in text]
    assert len(won) == 1
    assert f"by {won[0].name} · " in card.text
    assert [text for text in told if f"by {won[0].name} · " in text] == [
        text for text in told if "Already settled" in text
    ]
    assert len([text for text in told if "Already settled" in text]) == 49
    assert tools.ran == [(ADD.name, '{"text":"milk"}')]
    assert rows(tmp_path / "state.db", "SELECT count(*) FROM vote WHERE outcome = 'counted'") == [
        (1,)
    ]
