"""The configuration that the first run writes: guided mode, and the demo server to try it on."""

import json
from typing import Final

from gateway.config.home import Home

_TEXT: Final = """\
# Hermes Gateway. `hermes config check` says what it thinks of this file.

# Without a model the guided mode answers. With OPENAI_API_KEY in the file .env beside this one:
# model: openai:gpt-5-mini

mcp_servers:
  # The bundled demo; remove it when you have servers of your own.
  notes:
    command: hermes
    args: ["demo-server"]
    env: {{HERMES_DEMO_NOTES: {notes}}}
    trust: untrusted        # every tool that is not read-only asks first
"""


def first_config(home: Home) -> str:
    """Return the text of the first `config.yaml` of a home."""
    return _TEXT.format(notes=json.dumps(str(home.path / "demo-notes.json")))
