"""The entry of `hermes`. Loads nothing itself: what a call needs is imported once it is known."""

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one call and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["gateway"]:
        from gateway.cli.second import refusal

        refused = refusal(args, os.environ)
        if refused:
            sys.stderr.write(f"hermes: {refused}\n")
            return 1
    from gateway.cli.application import run

    return run(args)


if __name__ == "__main__":
    sys.exit(main())
