"""Messages between the driver of a load and its workers: JSON lines over the worker's stdin and stdout.

The order of a conversation:

1. The worker sends ``hello`` with the protocol's number and its version.
2. The driver sends ``clock`` several times. The worker answers each with its clocks.
3. The driver sends ``prepare`` with the plan and the worker's threads. The worker answers ``ready`` or ``refused``.
4. The driver sends ``start`` with an instant of the worker's clock, and then ``alive`` each second.
5. The worker sends ``delta`` for each second, and ``outcome`` at the end. ``stop`` from the driver ends the load early.

The end of the worker's stdin ends the worker.

Design constraint: the worker uses the standard library and the engine only. It runs where nothing but the wheel is
installed, and starts quickly. Models of the messages that the driver reads are in :mod:`.messages`.
"""

from __future__ import annotations

import json
from typing import Any

PROTOCOL = 1
"""Number of the protocol. A worker of another number is refused, as is one of another version of mcpace."""
SILENCE_LIMIT_S = 20.0
"""Seconds without a message after which either side gives up the other one."""
ALIVE_EVERY_S = 1.0


def encode_message(kind: str, **members: Any) -> bytes:
    """One line of the protocol."""
    return json.dumps({"kind": kind, **members}, ensure_ascii=False, allow_nan=False).encode() + b"\n"
