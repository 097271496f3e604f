"""What a model is told of a conversation, as messages, and cutting it to a size. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, assert_never

from gateway.domain.conversation import Role, StoredMessage
from gateway.domain.ids import ChatType, MessageId, Place
from gateway.domain.message import Attachment, InboundMessage
from gateway.domain.model import (
    AssistantSaid,
    FunctionAnswer,
    FunctionCall,
    ModelMessage,
    UserSaid,
)
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.turns import Claim
from gateway.runtime.file_view import NOTHING_SEEN, Looked, ShownFile, named
from gateway.runtime.steps import Round, Step
from gateway.runtime.tokens import CHARACTERS_PER_TOKEN, message_tokens, tokens_in
from gateway.runtime.toolbox import joined

SUMMARY_HEADING: Final = "Summary of the conversation before this point:"
LEFT_OUT: Final = "[{} earlier messages that nobody has answered are too many to show here]"
SHORT_ANSWER_CHARACTERS: Final = 2_000
"""What stays of an older tool answer when the turn outgrows the window."""

_INPUT_SHARE: Final = 2
_ANSWER_SHARE: Final = 4


def earlier(stored: Sequence[StoredMessage], claim: Claim) -> tuple[StoredMessage, ...]:
    """Return what was said before this turn: not its own inputs, and not what still waits."""
    own = {item.message for item in claim.inputs if item.message is not None}
    newest = max(own, default=None)
    return tuple(
        message
        for message in stored
        if message.id not in own
        and not (newest is not None and message.role is Role.USER and message.id > newest)
    )


def said_before(
    message: StoredMessage, *, shared: bool, looked: Looked = NOTHING_SEEN
) -> ModelMessage:
    """Return a stored message as the model sees it."""
    match message.role:
        case Role.USER:
            name = message.author.name or message.author.id
            files = _files_of(message.id, message.attachments, looked)
            return _said(name, message.text, files, shared=shared)
        case Role.ASSISTANT | Role.NOTE:
            return AssistantSaid(text=words_of(message))
        case Role.SUMMARY:
            return UserSaid(text=f"{SUMMARY_HEADING}\n{message.text}")
        case _:
            assert_never(message.role)


def words_of(message: StoredMessage) -> str:
    """Return what a stored message says, its files by name."""
    return _with_files(message.text, map(named, message.attachments))


def said_now(claim: Claim, *, looked: Looked = NOTHING_SEEN) -> tuple[UserSaid, ...]:
    """Return the messages this turn began with."""
    joined = {each for step in claim.steps for each in step.joined}
    began = [item for item in claim.inputs if item.id not in joined]
    return said_by_people(began, shared=is_shared(claim.place), looked=looked)


def said_by_people(
    inputs: Sequence[StoredInbound], *, shared: bool, looked: Looked = NOTHING_SEEN
) -> tuple[UserSaid, ...]:
    """Return the messages among what arrived."""
    return tuple(
        _said(
            event.sender.name or event.sender.id,
            event.text,
            _files_of(item.message, event.attachments, looked),
            shared=shared,
        )
        for item in inputs
        if isinstance(event := item.event, InboundMessage)
    )


def said_by_rounds(
    rounds: Sequence[Round], *, shared: bool, looked: Looked = NOTHING_SEEN
) -> tuple[ModelMessage, ...]:
    """Return the recorded replies of this turn, each with the answers to its calls.

    What joined the turn stands where it came.
    """
    messages: list[ModelMessage] = []
    for item in rounds:
        messages += said_by_people(item.joined, shared=shared, looked=looked)
        calls = item.reply.reply.calls
        messages.append(AssistantSaid(text=item.reply.reply.text, calls=calls))
        messages += [
            _answered(call, [s for s in item.steps if s.call_id == call.id], looked)
            for call in calls
        ]
    return tuple(messages)


def _answered(call: FunctionCall, steps: Sequence[Step], looked: Looked) -> FunctionAnswer:
    files = [file for step in steps if step.answer for file in step.answer.files]
    seen = [looked.by_key[file.key] for file in files if file.key in looked.by_key]
    pictures = tuple(file.picture for file in seen if file.picture is not None)
    answer = joined(call, steps)
    return replace(answer, pictures=pictures) if pictures else answer


def is_shared(place: Place) -> bool:
    """True when several people may speak in one conversation, so that each must be named."""
    return place.chat_type is not ChatType.DM and not place.participant


def newest_within(messages: Sequence[ModelMessage], budget: int) -> tuple[ModelMessage, ...]:
    """Return the newest messages that fit `budget` tokens, in order."""
    kept: list[ModelMessage] = []
    for message in reversed(messages):
        budget -= message_tokens((message,))
        if budget < 0:
            break
        kept.append(message)
    return tuple(reversed(kept))


def fitted(
    before: Sequence[ModelMessage],
    inputs: Sequence[UserSaid],
    rounds: Sequence[ModelMessage],
    *,
    budget: int,
) -> tuple[ModelMessage, ...]:
    """Return one history of at most about `budget` tokens.

    What this turn is about goes first: its inputs and its own rounds are kept whole or shortened,
    and what was said before fills the rest with its newest part.
    """
    now = _fit_inputs(inputs, budget)
    left = max(budget - message_tokens(now), 0)
    work = _fit_rounds(rounds, left)
    left = max(left - message_tokens(work), 0)
    return (*_fit_before(before, left), *now, *work)


def _fit_inputs(inputs: Sequence[UserSaid], budget: int) -> tuple[UserSaid, ...]:
    """Keep the newest of a backlog that is larger than the window, and say that it is."""
    now = tuple(_shortened(said, budget // _INPUT_SHARE) for said in inputs)
    if message_tokens(now) <= budget:
        return now
    kept = now[len(now) - len(newest_within(now, budget * 3 // 4)) :]
    return (UserSaid(text=LEFT_OUT.format(len(now) - len(kept))), *kept)


def _fit_before(before: Sequence[ModelMessage], budget: int) -> tuple[ModelMessage, ...]:
    """Keep a leading summary as long as anything is kept."""
    if message_tokens(before) <= budget:
        return tuple(before)
    first = before[0]
    if not (isinstance(first, UserSaid) and first.text.startswith(SUMMARY_HEADING)):
        return newest_within(before, budget)
    rest = budget - message_tokens((first,))
    return (first, *newest_within(before[1:], rest)) if rest >= 0 else ()


def _fit_rounds(rounds: Sequence[ModelMessage], budget: int) -> tuple[ModelMessage, ...]:
    work = [_short(message, budget) for message in rounds]
    excess = message_tokens(work) - budget
    for i, message in enumerate(work):
        if excess <= 0:
            break
        work[i] = _short_answer(message, SHORT_ANSWER_CHARACTERS // CHARACTERS_PER_TOKEN)
        excess -= message_tokens((message,)) - message_tokens((work[i],))
    return tuple(work)


def _short(message: ModelMessage, budget: int) -> ModelMessage:
    if isinstance(message, UserSaid):
        return _shortened(message, budget // _INPUT_SHARE)
    return _short_answer(message, budget // _ANSWER_SHARE)


def _short_answer(message: ModelMessage, tokens: int) -> ModelMessage:
    if isinstance(message, FunctionAnswer) and tokens_in(message.text) > tokens:
        return replace(message, text=cut(message.text, tokens))
    return message


def _shortened(said: UserSaid, tokens: int) -> UserSaid:
    return replace(said, text=cut(said.text, tokens)) if tokens_in(said.text) > tokens else said


def cut(text: str, tokens: int) -> str:
    """Return the start of a text with a note of how much is missing."""
    keep = max(tokens * CHARACTERS_PER_TOKEN, 0)
    return f"{text[:keep]}\n[cut: {len(text) - keep} characters left out]"


def _said(name: str, text: str, files: Sequence[ShownFile], *, shared: bool) -> UserSaid:
    said = _with_files(text, (file.text for file in files))
    return UserSaid(
        text=f"[{name}] {said}" if shared else said,
        pictures=tuple(file.picture for file in files if file.picture is not None),
    )


def _files_of(
    message: MessageId | None, attachments: Sequence[Attachment], looked: Looked
) -> Sequence[ShownFile]:
    """Return the files of a message, by name alone where nobody looked at them."""
    seen = None if message is None else looked.of.get(message)
    return [ShownFile(text=named(item)) for item in attachments] if seen is None else seen


def _with_files(text: str, files: Iterable[str]) -> str:
    return "\n".join((text, *files) if text else files)
