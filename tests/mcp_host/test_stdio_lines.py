import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mcp_host.stderr import KEPT_LINES, StderrLog, StderrTail, no_log
from mcp_host.transports.lines import HEAD, LineSplitter, TooLong
from mcp_host.transports.messages import MAX_MESSAGE


@given(st.lists(st.binary(max_size=20)), st.data())
def test_lines_are_the_same_however_the_stream_is_cut(
    lines: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(line.replace(b"\n", b"") + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    splitter = LineSplitter(limit=MAX_MESSAGE)

    found: list[bytes | TooLong] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += splitter.feed(stream[start:end])

    assert found == [line.replace(b"\n", b"") for line in lines]
    assert splitter.finish() == []


def test_the_last_line_counts_without_its_end() -> None:
    splitter = LineSplitter(limit=MAX_MESSAGE)

    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.feed(b"o") == []
    assert splitter.finish() == [b"two"]


def test_a_line_above_the_limit_is_dropped_but_for_its_head() -> None:
    splitter = LineSplitter(limit=10_000)

    assert splitter.feed(b"x" * 9_000) == []
    assert splitter.feed(b"y" * 9_000) == []
    assert splitter.feed(b"z" * 9_000 + b"\nnext\n") == [TooLong(b"x" * HEAD), b"next"]


def test_a_long_line_takes_time_linear_in_its_length() -> None:
    def took(chunks: int) -> float:
        splitter = LineSplitter(limit=MAX_MESSAGE)
        began = time.perf_counter()
        for _ in range(chunks):
            splitter.feed(b"x" * 4096)
        splitter.feed(b"\n")
        return time.perf_counter() - began

    short = min(took(1_000) for _ in range(3))
    assert min(took(8_000) for _ in range(3)) < 8 * short * 3


def test_the_tail_keeps_the_last_lines_and_takes_terminal_escapes_out() -> None:
    tail = StderrTail(no_log)

    tail.feed(b"\x1b[31mred\x1b[0m\n" * 3 + b"".join(b"%d\n" % number for number in range(50)))
    tail.feed(b"fatal: \x1b]8;;http://evil\x07x\xff\n\n  \n")

    assert tail.last_line == "fatal: ]8;;http://evilx�"


def test_the_tail_is_bounded_without_line_ends() -> None:
    seen: list[str] = []
    tail = StderrTail(seen.append)

    for _ in range(100):
        tail.feed(b"x" * 1_000)
    tail.finish()

    assert max(map(len, seen)) <= 2_000
    assert tail.last_line.startswith("x")
    assert KEPT_LINES < 100


def test_the_log_names_the_server_and_is_readable_by_us_alone(tmp_path: Path) -> None:
    path = tmp_path / "mcp-stderr.log"
    log = StderrLog(path)

    log.writer("notes")("100 % of \ud800 lines")
    log.close()

    assert path.read_text().endswith(" notes: 100 % of \\ud800 lines\n")
    assert path.stat().st_mode & 0o777 == 0o600
