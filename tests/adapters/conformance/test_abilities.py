"""What a platform lacks is written down here, so that nothing of the suite is passed over quietly."""

from typing import Final

from tests.adapters.conformance.platform import Ability, Platform

LACKING: Final[dict[str, set[Ability]]] = {"telegram": {Ability.MODALS}, "slack": set()}


def test_a_platform_lacks_what_is_written_down_and_nothing_else(platform: Platform) -> None:
    assert set(platform.lacks) == LACKING[platform.name]


def test_what_a_platform_says_it_can_do_is_what_its_adapter_says(platform: Platform) -> None:
    said = platform.renderer.capabilities

    assert said.threads is platform.has(Ability.THREADS)
    assert (said.modal_fields > 0) is platform.has(Ability.MODALS)
    assert said.buttons
    assert said.max_text is not None
