"""A gateway with its control socket that accepts what `bench.writer` would: lines in, times out.

For the bench of `events_wait`: its chat is a loopback, and nobody else writes to its store.
"""

import argparse
import asyncio
from pathlib import Path

from bench.writer import accept_lines
from tests.fakes.office import open_office


async def serve(home: Path) -> None:
    async with open_office(home, at_work=False) as office:
        await accept_lines(office.store)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.writing_gateway", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    asyncio.run(serve(parser.parse_args().home))


if __name__ == "__main__":
    main()
