"""An HTTP API that takes a known time to answer."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

ANSWER_S = 0.03
"""Time in which the API answers, but for /slow."""
SLOW_S = 0.2


class Weather(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: the second one would wait for an acknowledgement.
    disable_nagle_algorithm = True
    answer_s = ANSWER_S

    def do_GET(self) -> None:
        time.sleep(SLOW_S if self.path == "/slow" else self.answer_s)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def weather_api(answer_s: float = ANSWER_S) -> Iterator[str]:
    """Serves until the end of the block. Yields the URL."""
    handler = type("TimedWeather", (Weather,), {"answer_s": answer_s})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
