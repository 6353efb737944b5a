"""The experiments that would disprove a finding, or decide between two, in words."""

from __future__ import annotations

DISPROOFS: dict[str, str] = {
    "count-executions-at-server": "Count executions in the server's own log: wrong if each request arrives once.",
    "call-without-output-schema": "Call a tool without an output schema, or list first: wrong if the listing stays.",
    "end-reply-with-result": "Let the server end its reply right after the result: wrong if the call stays as slow.",
    "measure-client-processor-time": "Measure the client's processor time in the call: wrong if it was computing.",
    "reuse-one-client": "Repeat with one client object for all requests: wrong if connections stay as many.",
    "hold-one-session": "Repeat with one session held open: wrong if each call still begins its own.",
    "connect-twice-with-same-credentials": (
        "Connect twice with the same credentials and a warm cache: wrong if the second asks nothing."
    ),
    "refuse-standalone-stream": "Answer the GET with 405 at once: wrong if requests are still held.",
    "repeat-without-authentication": "Repeat without authentication: wrong if requests are still held.",
    "start-again-warm": (
        "Start again from a warm package cache and read the process's processor time: tells a download from imports."
    ),
    "acknowledge-at-once": (
        "Repeat the load with TCP_QUICKACK on the client's sockets, or TCP_NODELAY on the server's: "
        "wrong if calls stay as slow."
    ),
}
"""For each experiment's code, what it does and what it would show."""

LOAD_DISPROOFS = ("acknowledge-at-once",)
