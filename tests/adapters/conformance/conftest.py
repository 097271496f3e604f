from collections.abc import AsyncGenerator
from typing import Final

import pytest

from tests.adapters.conformance.platform import Platform, Scene
from tests.adapters.conformance.slack import SLACK
from tests.adapters.conformance.telegram import TELEGRAM

PLATFORMS: Final = (TELEGRAM, SLACK)
"""Every platform whose adapter must pass the suite."""


@pytest.fixture(params=PLATFORMS, ids=lambda platform: platform.name)
def platform(request: pytest.FixtureRequest) -> Platform:
    found: Platform = request.param
    return found


@pytest.fixture
async def scene(platform: Platform) -> AsyncGenerator[Scene]:
    """A service that runs for one test, and holds us to what it would not stand."""
    async with platform.open() as opened:
        yield opened
