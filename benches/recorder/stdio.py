"""Time that the flight recorder of `mcpace wrap` adds to a call over stdio, on an idle and on a busy machine.

Two copies of a server that does nothing run at the same time: one as it is, one behind the recorder as `mcpace wrap`
starts it. Calls of both alternate one by one, and the order within a pair alternates, too, so that drift of the machine
affects both. Other processes compute all the time: none, one fewer than there are processors, and one more. The
difference is the median over all pairs, with the interval of 95 % of the sign test, which needs no distribution.

    python benches/recorder/stdio.py [PAIRS]
"""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mcpace.lab.hosts.flight_wrap import FLIGHT, PROGRAM
from mcpace.system.processors import usable_cores

PAIRS, WARM_UP = 5_000, 200
AIM_US = 60.0
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"tea"}}}\n'
REPLY = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"tea"}]}}\n'
SERVER = (
    f"import sys\nfor _ in sys.stdin.buffer:\n    sys.stdout.buffer.write({REPLY!r})\n    sys.stdout.buffer.flush()\n"
)
SPINNER = "while True: pass"
LIMIT_S = 10.0


def main() -> int:
    """Prints both results. Exit code 1 where nothing was recorded, since the difference means nothing then."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    cores = len(usable_cores())
    loads = {"idle": 0, "one processor free": cores - 1, "no processor free": cores + 1}
    is_recorded = [_measure(name, spinners, pairs) for name, spinners in loads.items()]
    return int(not all(is_recorded))


def _measure(name: str, spinners: int, pairs: int) -> bool:
    """Measures with so many processes that compute. Returns whether the recorder wrote its recording."""
    command = [sys.executable, "-c", SERVER]
    with tempfile.TemporaryDirectory(prefix="mcpace-bench-") as folder:
        with ExitStack() as stack:
            direct = stack.enter_context(_running(command))
            recorded = stack.enter_context(_running([sys.executable, "-EP", PROGRAM, FLIGHT, folder, *command]))
            for _ in range(WARM_UP):
                _call(direct), _call(recorded)
            for _ in range(spinners):
                stack.enter_context(_running([sys.executable, "-c", SPINNER]))
            without, with_recorder = list[int](), list[int]()
            for pair in range(pairs):
                for server in (direct, recorded) if pair % 2 else (recorded, direct):
                    (without if server is direct else with_recorder).append(_call(server))
        written = sum(file.stat().st_size for file in Path(folder).glob("*.jsonl.zst"))
    added = sorted((after - before) / 1e3 for before, after in zip(without, with_recorder, strict=True))
    left_out = max(0, math.floor(len(added) / 2 - 0.98 * math.sqrt(len(added))))
    before, after = statistics.median(without) / 1e3, statistics.median(with_recorder) / 1e3
    print(
        f"stdio, {name}: direct {before:.1f} µs, recorded {after:.1f} µs ({after / before:.2f} x); added at the median "
        f"{statistics.median(added):.1f} µs ({added[left_out]:.1f} to {added[-1 - left_out]:.1f}; aim: at most "
        f"{AIM_US:.0f}); {len(added):,} pairs, {written / (pairs + WARM_UP):.0f} bytes of recording a call",
        flush=True,
    )
    return written > 0


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        if SPINNER in command:
            process.kill()
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _call(server: subprocess.Popen[bytes]) -> int:
    """Nanoseconds of one call."""
    assert server.stdin is not None and server.stdout is not None
    began = time.perf_counter_ns()
    server.stdin.write(CALL)
    server.stdin.flush()
    reply = server.stdout.readline()
    took = time.perf_counter_ns() - began
    assert reply == REPLY, reply
    return took


if __name__ == "__main__":
    sys.exit(main())
