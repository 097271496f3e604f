"""What the section of a platform says about who comes in, as the runtime takes it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway.domain.ids import Place

if TYPE_CHECKING:
    from adapters.account import PlatformAccount
    from gateway.runtime.access_door import Door


def door_of(
    account: "PlatformAccount",
    *,
    is_direct: Callable[[Place], bool],
    main_threads: frozenset[str] = frozenset(),
) -> "Door":
    """Return the door of an account."""
    from gateway.runtime.access_door import Door, GroupRules, Strangers

    return Door(
        people=account.people,
        groups={
            name: GroupRules(
                require_mention=group.require_mention, strict_mention=group.strict_mention
            )
            for name, group in account.groups.items()
        },
        strangers=Strangers(account.strangers.value),
        require_mention=account.require_mention,
        strict_mention=account.strict_mention,
        allow_bots=account.allow_bots,
        is_direct=is_direct,
        main_threads=main_threads,
    )
