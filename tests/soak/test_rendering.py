"""Random Markdown through the renderers, as every run of the tests has it."""

from dataclasses import replace

from adapters.telegram.markup import TelegramRenderer
from adapters.terminal.markup import TerminalRenderer
from gateway.domain.delivery import Part
from tests.soak.rendering import render
from tests.support.requirement import requirement


class Clipping(TelegramRenderer):
    """A renderer that forgets the end of each message."""

    def text(self, markdown: str) -> tuple[Part, ...]:
        return tuple(replace(part, body=part.body[:-1]) for part in super().text(markdown))


@requirement("render.nothing_lost", "render.never_cuts_pairs", "render.never_empty")
def test_random_markdown_is_shown_whole_on_every_platform() -> None:
    report = render(500, seed=1, renderers=(TelegramRenderer(), TerminalRenderer()))

    assert report["problems"] == []
    assert report["messages"] == {"whole": 1000}


def test_a_renderer_that_loses_the_end_is_found() -> None:
    report = render(50, seed=1, renderers=(Clipping(),))

    assert "lost" in report["messages"]
    assert report["problems"]
