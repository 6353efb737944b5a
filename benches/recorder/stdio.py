"""Time that the flight recorder of `mcpace wrap` adds to a call over stdio, on an idle and on a busy machine.

Copies of a server that does nothing run at the same time: one as it is, one behind the recorder as `mcpace wrap` starts
it, and one between two `cat`, which copy bytes and do nothing else. Calls of all alternate one by one, and their order
alternates, too, so that drift of the machine affects all. Other processes compute all the time: none, one fewer than
there are processors, and one more. A difference is the median over all rounds, with the interval of 95 % of the sign
test, which needs no distribution.

    python benches/recorder/stdio.py [ROUNDS]
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

ROUNDS, WARM_UP = 5_000, 200
AIM_US = 60.0
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"tea"}}}\n'
REPLY = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"tea"}]}}\n'
SERVER = (
    f"import sys\nfor _ in sys.stdin.buffer:\n    sys.stdout.buffer.write({REPLY!r})\n    sys.stdout.buffer.flush()\n"
)
SPINNER = "while True: pass"
LIMIT_S = 10.0


def main() -> int:
    """Prints all results. Exit code 1 where nothing was recorded, since the difference means nothing then."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    cores = len(usable_cores())
    loads = {"idle": 0, "one processor free": cores - 1, "no processor free": cores + 1}
    is_recorded = [_measure(name, spinners, rounds) for name, spinners in loads.items()]
    return int(not all(is_recorded))


def _measure(name: str, spinners: int, rounds: int) -> bool:
    """Measures with so many processes that compute. Returns whether the recorder wrote its recording."""
    command = [sys.executable, "-c", SERVER]
    with tempfile.TemporaryDirectory(prefix="mcpace-bench-") as folder:
        commands = {
            "direct": command,
            "recorded": [sys.executable, "-EP", PROGRAM, FLIGHT, folder, *command],
            "copied": ["sh", "-c", 'cat | "$@" | cat', "sh", *command],
        }
        with ExitStack() as stack:
            servers = {way: stack.enter_context(_running(started)) for way, started in commands.items()}
            for _ in range(WARM_UP):
                for server in servers.values():
                    _call(server)
            for _ in range(spinners):
                stack.enter_context(_running([sys.executable, "-c", SPINNER]))
            times: dict[str, list[int]] = {way: [] for way in servers}
            for number in range(rounds):
                for way in list(servers) if number % 2 else reversed(servers):
                    times[way].append(_call(servers[way]))
        written = sum(file.stat().st_size for file in Path(folder).glob("*.jsonl.zst"))
    before, after = (statistics.median(times[way]) / 1e3 for way in ("direct", "recorded"))
    print(
        f"stdio, {name}: direct {before:.1f} µs, recorded {after:.1f} µs ({after / before:.2f} x); added at the median "
        f"{_added(times, 'recorded')}; aim: at most {AIM_US:.0f}; two `cat` add {_added(times, 'copied')}; "
        f"{rounds:,} rounds, {written / (rounds + WARM_UP):.0f} bytes of recording a call",
        flush=True,
    )
    return written > 0


def _added(times: dict[str, list[int]], way: str) -> str:
    """The median of the time added to a direct call, with its interval."""
    added = sorted((after - before) / 1e3 for before, after in zip(times["direct"], times[way], strict=True))
    left_out = max(0, math.floor(len(added) / 2 - 0.98 * math.sqrt(len(added))))
    return f"{statistics.median(added):.1f} µs ({added[left_out]:.1f} to {added[-1 - left_out]:.1f})"


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
