"""Composition root: the only place that names concrete classes.

Classes are imported inside the functions that use them, so that each command loads only what it
needs. Nothing here decides anything.
"""

from gateway.app.parts import program_version
from gateway.app.terminal import Interrupted, OutputLost, TerminalChat, run_terminal

__all__ = [
    "Interrupted",
    "OutputLost",
    "TerminalChat",
    "program_version",
    "run_terminal",
]
