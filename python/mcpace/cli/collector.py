"""Sends the spans of a recording to a collector of OpenTelemetry, over HTTP."""

from __future__ import annotations

import http.client
import json
import tempfile
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from mcpace import _core
from mcpace.cli.export import LONGEST_WORDS, check_url
from mcpace.cli.notes import inform
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.targets import redact_url
from mcpace.report.words.quantities import clean, count

LIMIT_S = 30.0
"""Time limit of each request to a collector."""
LONGEST_REPLY = 65_536


def send_spans(recording: _core.Recording, url: str) -> None:
    """Posts the spans line by line. Raises :class:`LabError` where the collector refuses all or some of them."""
    check_url(url, "http://127.0.0.1:4318/v1/traces")
    place = redact_url(url)
    if "@" in urlsplit(url).netloc:
        raise UsageProblem(f"--otlp {place} has a user or a password in its URL, which are not sent: leave them out")
    # The user named this collector, not the target of a redirect.
    opener = urllib.request.build_opener(_NoRedirects)
    sent = refused = 0
    why = ""
    with tempfile.NamedTemporaryFile(prefix="mcpace-", suffix=".jsonl") as file:
        recording.export("otlp", file.name)
        for line in file:
            more, words = _refused_spans(_post_line(opener, url, place, line, sent))
            refused, why, sent = refused + more, words or why, sent + 1
    if refused:
        raise LabError(f"{place} refused {refused} of the spans{f': {why}' if why else ''}")
    inform(f"sent {count(sent, 'batch', 'batches')} to {place}{f', which says: {why}' if why else ''}")


def _post_line(opener: urllib.request.OpenerDirector, url: str, place: str, line: bytes, sent: int) -> bytes:
    """Posts one line. ``place``: the URL for messages, without possible secrets."""
    request = urllib.request.Request(url, line, {"content-type": "application/json"})
    try:
        with opener.open(request, timeout=LIMIT_S) as reply:
            return bytes(reply.read(LONGEST_REPLY))
    except urllib.error.HTTPError as error:
        raise LabError(f"{place} {_sent_before(sent)}answered HTTP {error.code}: {_error_text(error)}") from error
    except http.client.BadStatusLine as error:
        did = "hung up" if isinstance(error, http.client.RemoteDisconnected) else "answered what is no HTTP/1.1"
        hint = "if this is its gRPC port, name the one for OTLP over HTTP, which is 4318 unless it was changed"
        raise LabError(f"{place} {_sent_before(sent)}{did}: {hint}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = getattr(error, "reason", None) or error
        reason = clean(getattr(cause, "strerror", None) or str(cause), LONGEST_WORDS)
        raise LabError(f"{place} {_sent_before(sent)}could not be reached: {reason}") from error


def _sent_before(sent: int) -> str:
    return f"took {count(sent, 'batch', 'batches')}, then " if sent else ""


def _error_text(error: urllib.error.HTTPError) -> str:
    try:
        return clean(error.read(LONGEST_WORDS).decode(errors="replace"), LONGEST_WORDS)
    except (OSError, http.client.HTTPException):
        return "(the rest didn't come)"


def _refused_spans(reply: bytes) -> tuple[int, str]:
    """Number of spans that the collector refused in a reply with status 200, and why (OTLP's ``partialSuccess``)."""
    try:
        partial_success = json.loads(reply)["partialSuccess"]
        refused = int(partial_success.get("rejectedSpans") or 0)
        return max(refused, 0), clean(str(partial_success.get("errorMessage") or ""), LONGEST_WORDS)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 0, ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None
