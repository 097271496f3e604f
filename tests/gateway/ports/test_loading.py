import asyncio
import threading

import pytest

from gateway.ports.loading import load

pytestmark = pytest.mark.anyio


async def test_packages_are_loaded_one_after_another_and_the_loop_goes_on() -> None:
    inside, most = [0], [0]
    going_on = threading.Event()

    def package(name: str) -> str:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        # The event loop lets it go on, so it is not held up.
        assert going_on.wait(10)
        inside[0] -= 1
        return name

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        loads = [tasks.create_task(load(package, name)) for name in ("a", "b", "c")]
        await asyncio.sleep(0)
        going_on.set()
    assert [task.result() for task in loads] == ["a", "b", "c"]
    assert most == [1]


async def test_a_package_that_does_not_load_says_so_and_holds_up_no_other() -> None:
    def broken() -> None:
        raise ImportError("not installed")

    with pytest.raises(ImportError, match="not installed"):
        await load(broken)
    assert await load(int, "3") == 3
