"""Words for the experiments that would disprove a finding, or decide between two causes.

Design constraint: the result that disproves a finding supports another cause, so each pair has its own words.
"""

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
        "Start again with a warm package cache and read the process's processor time: this tells a download from "
        "imports."
    ),
    "acknowledge-at-once": (
        "Repeat with TCP_QUICKACK on the client's sockets, or TCP_NODELAY on the server's: wrong if calls stay as slow."
    ),
    "ask-at-final-path": "Send requests to the redirect's path: wrong if they are still redirected.",
    "connect-by-address": "Name the server by the address that accepts: wrong if connecting takes as long.",
    "name-transport": "Name the transport in the client's settings: wrong if the client still probes.",
    "bypass-proxy": "Ask the server directly, without any proxy: wrong if the stream is the same.",
    "ask-uncompressed": "Ask without Accept-Encoding: wrong if progress still comes all at once.",
    "raise-stream-timeout": "Raise the client's time-out for bodies: wrong if streams end at the same age.",
    "raise-request-timeout": "Raise the client's time-out for requests: wrong if it gives up after the same time.",
    "send-no-progress": "Send no progress: wrong if the client gives up sooner.",
    "raise-connection-limit": "Allow the client more connections: wrong if requests still wait.",
    "call-from-second-session": (
        "Call from a second session at the same time: this tells a blocked session from a blocked server."
    ),
    "call-tool-that-only-waits": (
        "Call a tool that waits without blocking in the same way: wrong if calls still run one after another."
    ),
    "ping-meanwhile": "Ping while calls are in flight: this tells blocked tools from a blocked server.",
    "raise-worker-limit": "Repeat with a larger pool of workers or threads: wrong if as many calls end at a time.",
    "split-answer": "Send the same amount in several lines: wrong if the client takes as long.",
    "repeat-without-recorder": ("Repeat without the recorder, by the client's own clock: wrong if calls take as long."),
    "repeat-on-quiet-machine": "Repeat on a machine that does nothing else: wrong if calls take as long.",
    "more-generator": "Repeat with more threads, or from another machine: wrong if the figures stay.",
    "flush-each-line": "Flush the server's stdout after each line: wrong if replies still come in bursts.",
    "keep-listing": "Let the client keep its listing, or list once a session: wrong if as many are fetched.",
    "call-without-token": (
        "Ask the same server without a token, or with a token that needs no lookup: wrong if requests take as long."
    ),
    "ask-for-another-path": (
        "Ask the same server for a path that no MCP code serves: wrong if the answer takes as long."
    ),
    "call-without-session": "Ask the same server without a session: wrong if requests take as long.",
    "call-behind-gateway": "Call the server behind the gateway directly: wrong if it gets as many requests.",
    "delay-every-server": (
        "Delay every server behind the gateway by a second: wrong if the answer comes one second later, not several."
    ),
    "call-with-good-token": "Call with a token that is still valid: wrong if the call hangs, too.",
    "drain-replies": "Read each reply to its end before the next request: wrong if connections stay as many.",
    "hold-stream-open": "Keep the GET's stream open: wrong if it is still reopened.",
    "replay-after-event": "Answer the resumed GET with the events after that one: wrong if the client asks again.",
    "back-off": (
        "Let clients wait longer after each refusal, each by a different time: wrong if requests stay as many."
    ),
    "end-each-session": "End each session with DELETE: wrong if memory rises as much.",
    "wait-and-look-again": "Wait for some minutes without requests and look again: wrong if the memory is given back.",
    "change-number-of-tools": "Repeat with another number of tools: wrong if processor time doesn't follow it.",
    "repeat-beside-peer": "Repeat from a machine next to the peer: wrong if calls take as long.",
    "ask-with-another-client": "Ask with a client that reads at once: wrong if the reply takes as long.",
    "profile-server": "Profile the server while it answers: wrong if the time goes into what the requests ask for.",
    "share-client": "Build the client once, when the server starts: wrong if calls take as long.",
    "ask-once-for-all": "Ask for all of it in one request: wrong if calls take as long.",
    "send-together": "Send the requests together: wrong if one of them needs the answer of another.",
    "ask-dependency-directly": "Ask the dependency from a shell on the same machine: wrong if it answers much sooner.",
    "use-alternative": "Do the same with the other library: wrong if calls take as long.",
    "skip-checks": "Pass the values on without a check: wrong if calls take as long.",
    "return-less": "Return a tenth of the data: wrong if calls take as long.",
    "import-at-start": "Load the module when the server starts: wrong if calls take as long.",
    "collect-less": "Turn the collector off for a run: wrong if calls take as long.",
    "shorten-timer": "Let the timer go off sooner: wrong if calls take as long.",
    "keep-connection": "Keep the connection between calls: wrong if calls take as long.",
    "call-one-at-a-time": "Make the calls one at a time, each with one thread: wrong if they take as long.",
    "count-tokens": "Count the listing's tokens with the model's own tokenizer: wrong if they are few.",
}
"""For each experiment's code: the experiment, and the result that would disprove the finding."""

DECISIONS: dict[tuple[str, str], str] = {
    ("serial-session", "call-from-second-session"): "calls of a second session are answered meanwhile",
    ("serial-session", "call-tool-that-only-waits"): (
        "calls of a tool that waits without blocking still run one after another"
    ),
    ("completion-waves", "call-from-second-session"): "calls of a second session have to wait as well",
    ("completion-waves", "ping-meanwhile"): "pings are answered while calls are under way",
    ("thread-pool-saturation", "ping-meanwhile"): "pings have to wait as well while calls are under way",
    ("connection-per-request", "drain-replies"): "connections stay as many when each reply is read to its end",
    ("stream-not-drained", "drain-replies"): "connections become fewer when each reply is read to its end",
    ("blocked-event-loop", "bypass-proxy"): "the stream is the same when the server is asked directly",
    ("rebuilt-per-request", "change-number-of-tools"): "processor time follows the number of tools",
    ("task-leak", "hold-one-session"): "memory rises as much when all calls are made in one session",
}
"""For each alternative cause and the deciding experiment: the result that would support the alternative."""
