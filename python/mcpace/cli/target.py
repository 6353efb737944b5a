"""``mcpace target``: runs a scripted target for trying clients against it, or answers from a recording."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mcpace import _core
from mcpace.cli import options
from mcpace.cli.file_kind import recording_problem
from mcpace.cli.notes import inform, note
from mcpace.lab import targets
from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import is_unicode

MATCHES = ("strict", "lenient")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("target")(target)


def target(
    profile: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE|FILE", help=f"One of {', '.join(_core.PROFILES)}; or the recording of a server."
        ),
    ],
    port: options.Port = 0,
    hold: options.Hold = options.HOLD,
    fault: options.Fault = [],  # noqa: B006 - typer copies it
    response: Annotated[
        str | None, typer.Option(metavar="json|sse", help="How results are sent; the server's own way unless given.")
    ] = None,
    tls: Annotated[bool, typer.Option(help="Serve HTTPS with a certificate of its own, printed on stdout.")] = False,
    server_timing: Annotated[bool, typer.Option(help="Send the layers' times with each reply.")] = False,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="strict|lenient",
            help="Which recorded request a client's request is matched to: one with equal parameters, or else the "
            "nearest of the same tool, prompt or resource.  [default: strict]",
        ),
    ] = None,
    time_scale: Annotated[
        float | None,
        typer.Option(metavar="FACTOR", help="Factor for the recorded times; 0 answers at once.  [default: 1]"),
    ] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="Answer from the recording over stdio, not HTTP.")] = False,
) -> None:
    """Run a scripted MCP server, or the server of a recording, until Ctrl-C. profile:github takes the token in
    MCPACE_GITHUB_TOKEN."""
    name = profile.removeprefix("profile:")
    served: str | _core.RecordedServer
    if name in _core.PROFILES or not _is_recording(profile):
        if match is not None or time_scale is not None or stdio:
            option = "--match" if match is not None else "--time-scale" if time_scale is not None else "--stdio"
            raise UsageProblem(f"{option} belongs to a recording, and {profile!r} is not the path of a file")
        served = targets.parse_target(f"profile:{name}").profile or name
        options.checked_faults(fault, [targets.parse_target(f"profile:{name}")])
    else:
        if server_timing:
            raise UsageProblem("--server-timing belongs to a profile: a recording has the times that its server told")
        if stdio and (port or fault or response or tls):
            raise UsageProblem("--port, --fault, --response and --tls belong to HTTP, and --stdio is given")
        served = _recorded_server(Path(profile), match or MATCHES[0], 1.0 if time_scale is None else time_scale)
        if stdio:
            with contextlib.suppress(KeyboardInterrupt):
                _print_counters(served.serve_stdio())
            return
    token = os.environ.get(targets.GITHUB_TOKEN_VARIABLE) or secrets.token_urlsafe(24)
    server = _core.Target(
        served,
        port=port,
        hold_s=hold,
        faults=fault,
        tls=tls,
        response=response,
        token=token,
        server_timing=server_timing,
    )
    with contextlib.suppress(KeyboardInterrupt):
        note(f"{name} serves at {server.url}; Ctrl-C ends it")
        if name == "github" and targets.GITHUB_TOKEN_VARIABLE not in os.environ:
            note(f"its bearer token is {token} (or set {targets.GITHUB_TOKEN_VARIABLE})")
        if server.certificate_pem:
            print(server.certificate_pem, end="", flush=True)
        server.wait()
    counters = server.counters()
    server.stop()
    _print_counters(counters)


def _is_recording(text: str) -> bool:
    """Whether the argument is meant as a file: it is one, or is written as a path."""
    return options.is_file(text) or "/" in text or text.endswith((".jsonl", ".zst"))


def _recorded_server(path: Path, match: str, time_scale: float) -> _core.RecordedServer:
    if match not in MATCHES:
        raise UsageProblem(f"--match takes {' or '.join(MATCHES)}, not {match!r}")
    if not is_unicode(str(path)):
        raise UsageProblem(f"cannot read {str(path)!r}: the path of a recording must be UTF-8 text")
    if not path.is_file():
        raise UsageProblem(f"{path} is neither a profile ({', '.join(_core.PROFILES)}) nor the file of a recording")
    try:
        recorded = _core.RecordedServer(str(path), lenient=match == "lenient", time_scale=time_scale)
    except _core.UsageProblem as problem:
        raise recording_problem(problem, [path]) from problem
    for sentence in _summary_sentences(recorded.summary()):
        inform(sentence)
    return recorded


def _summary_sentences(summary: dict[str, Any]) -> list[str]:
    """Sentences about the answers of the recording, and about requests that it cannot answer."""
    answers = ", ".join(f"{method} {count:,}" for method, count in summary["answers"].items())
    sentences = [f"the recording has the answers to {answers}"]
    told = (
        ("cut", "requests have only a part of their answer, and are refused: record with a larger --body-limit"),
        ("unanswered", "requests have no answer in the recording, and are refused"),
        ("refused", "requests were refused by HTTP, and are left out"),
        ("redacted", "answers had secrets, which were masked while they were recorded: they are sent as [redacted …]"),
        ("asked", "answers came after a question to the client, which is not asked again"),
    )
    sentences += [f"{summary[count]:,} {words}" for count, words in told if summary[count]]
    if summary["partial"]:
        sentences.append("the end of the recording is missing; the answers before it are served")
    return sentences


def _print_counters(counters: dict[str, Any]) -> None:
    print(json.dumps(counters, indent=1), file=sys.stderr)
