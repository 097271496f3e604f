"""Ends servers' process groups when this process dies without doing it itself (SIGKILL).

A small shell waits at the other end of a pipe and is told every group that starts and ends.
The pipe closes with this process, whatever killed it; then the shell ends what is left.
"""

import asyncio
import contextlib
import logging
from types import TracebackType
from typing import Final

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 5.0

# Only builtins but `sleep`: it must work with next to no environment.
_SCRIPT: Final = r"""
trap '' HUP INT TERM
groups=
while read -r sign group; do
  case $sign in
    +) groups="$groups $group" ;;
    -) left=
       for known in $groups; do [ "$known" = "$group" ] || left="$left $known"; done
       groups=$left ;;
  esac
done
for group in $groups; do kill -s TERM -- "-$group" 2>/dev/null; done
for round in 1 2 3 4 5 6 7 8 9 10; do
  alive=
  for group in $groups; do kill -s 0 -- "-$group" 2>/dev/null && alive=1; done
  [ -z "$alive" ] && exit
  sleep 0.1
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


class ProcessGuard:
    """Knows the running groups; started by the first one."""

    def __init__(self) -> None:
        self._shell: asyncio.subprocess.Process | None = None
        self._groups: set[int] = set()
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> "ProcessGuard":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shell = self._shell
        if shell is None or shell.stdin is None:
            return
        shell.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await shell.wait()
        except TimeoutError:
            shell.kill()
            await shell.wait()

    @property
    def pid(self) -> int | None:
        """The shell's process id, None while there is none."""
        shell = self._shell
        return shell.pid if shell is not None and shell.returncode is None else None

    async def ready(self) -> None:
        """Return when a shell is there to be told of a group; call it before spawning one."""
        async with self._starting:
            if self.pid is not None:
                return
            if self._shell is not None:
                logger.warning("the guard of MCP servers' processes ended; starting another")
            self._shell = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                _SCRIPT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin"},
                start_new_session=True,
            )
            for group in self._groups:
                self._tell("+", group)

    def watch(self, group: int) -> None:
        """Note a group that has just started."""
        self._groups.add(group)
        self._tell("+", group)

    def release(self, group: int) -> None:
        """Forget a group that has ended."""
        self._groups.discard(group)
        self._tell("-", group)

    def _tell(self, sign: str, group: int) -> None:
        if self._shell is None or self._shell.stdin is None:
            return
        # A dead shell is replaced, and told again, before the next spawn.
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._shell.stdin.write(f"{sign} {group}\n".encode())
