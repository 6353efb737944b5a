"""The HTTP API that weather.py asks: each answer takes 30 ms."""

import http.server
import time


class Answer(http.server.BaseHTTPRequestHandler):
    """Answers every request after 30 ms."""

    protocol_version = "HTTP/1.1"
    # Head and body are two writes: the second one would wait for an acknowledgement.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answers a request."""
        time.sleep(0.03)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 8099), Answer)
    print("listening at http://127.0.0.1:8099", flush=True)
    server.serve_forever()
