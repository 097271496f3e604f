"""What single channels have different from the rest: their own model, their own system prompt. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.domain.ids import Account, Place
from gateway.ports import ModelProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOverride:
    """Of one channel or thread; None is as for the rest."""

    provider: ModelProvider | None = None
    system_prompt: str | None = None


NOTHING_DIFFERENT = ChannelOverride()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """By account, then by `chat` or `chat:thread` as the configuration writes them."""

    channels: Mapping[Account, Mapping[str, ChannelOverride]] = field(
        default_factory=dict[Account, Mapping[str, ChannelOverride]]
    )

    def of(self, place: Place) -> ChannelOverride:
        """Return what holds in a place: what its thread does not say, its channel does."""
        known = self.channels.get((place.platform, place.account), {})
        channel = known.get(place.chat, NOTHING_DIFFERENT)
        thread = known.get(f"{place.chat}:{place.thread}") if place.thread else None
        if thread is None:
            return channel
        prompt = thread.system_prompt
        return ChannelOverride(
            provider=thread.provider or channel.provider,
            system_prompt=channel.system_prompt if prompt is None else prompt,
        )
