"""Shell completion by Typer, for a shell that is named as well as for the one it finds."""

import itertools
from collections.abc import MutableMapping, Sequence
from typing import Final

SHELLS: Final = frozenset({"bash", "zsh", "fish"})

_OPTIONS: Final = frozenset({"--show-completion", "--install-completion"})
_NO_DETECTION: Final = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"


def name_shell(args: Sequence[str], environ: MutableMapping[str, str]) -> None:
    """Let `--show-completion bash` name the shell; Typer otherwise only takes the one it finds.

    Its switch for that is an environment variable, read when the command is built.
    """
    for option, shell in itertools.pairwise(args):
        if option in _OPTIONS and shell in SHELLS:
            environ[_NO_DETECTION] = "1"
