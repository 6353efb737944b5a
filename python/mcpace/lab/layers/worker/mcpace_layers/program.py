"""Main program of the worker: reads commands and writes answers as JSON lines.

``measure MODULE:SERVER TOOL ARGUMENTS``: writes ``{"ready": true, "sdk", "version", "python", "layers": [{"name",
"includes"} or {"name", "unsupported"}]}``, then takes ``{"cmd": "connect", "url"}`` → ``{"layers": …}`` (those that
need a served server), ``{"cmd": "batch", "layer", "calls"}`` → ``{"ns": …}`` until its stdin ends.
``serve MODULE:SERVER TOOL ARGUMENTS``: writes ``{"ready": true, "url", "by"}`` and serves until its stdin ends. TOOL
may be empty.

A problem is an answer too: ``{"problem": "usage" or "setup", "message", "known"}``.

Design constraint: Stdout belongs to the protocol. Output of the user's module goes to stderr.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
from typing import IO, Any

from mcpace_layers import probe
from mcpace_layers.layer import FunctionLayer, Layer, Loop, SelfTimedLayer
from mcpace_layers.loading import load
from mcpace_layers.probe import CallTarget, Probe
from mcpace_layers.problem import SETUP, USAGE, Problem, Unmeasured, describe_error, unknown_tool
from mcpace_layers.wire import Wire

HANDLER_STEPS = (
    "name lookup, permissions and limits, validation, the call, its result as JSON: the server's own clocks, in calls "
    "over the socket that ask it"
)
CLIENT = "a client on one kept-alive connection over loopback, the server in a process of its own"


def main(arguments: list[str]) -> int:
    """Runs the worker and ends the process."""
    commands, answers = _own_streams()
    mode, place, tool, given = arguments
    loop = Loop()
    try:
        sdk_probe = _probe(mode, place, tool, json.loads(given), loop)
        if mode == "serve":
            _serve(sdk_probe, commands, answers)
        else:
            _Worker(sdk_probe, answers).run(commands)
    except Problem as problem:
        _say(answers, _problem_message(problem))
    except KeyboardInterrupt:
        pass
    except Exception as error:
        _say(answers, _problem_message(Problem(SETUP, describe_error(error))))
    sys.stderr.flush()
    # Threads of the user's code and the worker's event loop may still be running.
    os._exit(0)


def _own_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Takes stdin and stdout for the protocol, and replaces them by an empty stdin and by stderr."""
    commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return commands, answers


def _probe(mode: str, place: str, tool: str, arguments: dict[str, Any], loop: Loop) -> Probe:
    server = load(place)
    kind = probe.find(server)
    sdk_probe = kind(CallTarget(server, tool, arguments, loop))
    if mode == "serve" and not tool:
        return sdk_probe
    with sdk_probe.sdk_errors():
        names = sdk_probe.tools()
    if tool not in names:
        raise unknown_tool(tool, names)
    return sdk_probe


def _serve(sdk_probe: Probe, commands: IO[bytes], answers: IO[bytes]) -> None:
    with sdk_probe.sdk_errors():
        served = sdk_probe.serve()
    _say(answers, {"ready": True, "url": served.url, "by": served.by})
    threading.Thread(target=_end_with, args=(commands,), daemon=True).start()
    served.wait()


def _end_with(commands: IO[bytes]) -> None:
    commands.read()
    os._exit(0)


class _Worker:
    """The layers that can be measured, and the commands on them."""

    def __init__(self, sdk_probe: Probe, answers: IO[bytes]) -> None:
        self._probe = sdk_probe
        self._answers = answers
        self._layers: dict[str, Layer] = {}
        self._failures: list[Problem] = []

    def run(self, commands: IO[bytes]) -> None:
        makers = {
            probe.DIRECT: self._probe.direct,
            probe.HANDLER: self._probe.handler,
            probe.IN_PROCESS: self._probe.in_process,
        }
        layers = [self._make_layer(name, make) for name, make in makers.items()]
        self._refuse_failures()
        facts = {"sdk": self._probe.sdk, "version": self._probe.version(), "python": platform.python_version()}
        _say(self._answers, {"ready": True, **facts, "layers": layers})
        for line in commands:
            try:
                answer = self._answer(json.loads(line))
            except Problem as problem:
                answer = _problem_message(problem)
            except Exception as error:
                answer = _problem_message(Problem(SETUP, describe_error(error)))
            _say(self._answers, answer)
        self._probe.target.loop.close()

    def _make_layer(self, name: str, make: Any) -> dict[str, Any]:
        """Creates a layer and calls it once. Returns its description, or the reason why it can't be measured."""
        try:
            with self._probe.sdk_errors():
                layer: Layer = make()
            layer.batch(1)
        except Problem as problem:
            if problem.kind == USAGE:
                raise
            if not isinstance(problem, Unmeasured):
                self._failures.append(problem)
            return {"name": name, "unsupported": str(problem)}
        except Exception as error:
            self._failures.append(Problem(SETUP, f"the layer {name} failed: {describe_error(error)}"))
            return {"name": name, "unsupported": str(self._failures[-1])}
        self._layers[name] = layer
        return {"name": name, "includes": layer.includes}

    def _refuse_failures(self) -> None:
        """Raises the first failure if the tool fails for a client too.

        A tool that needs a request's context fails only outside of requests.
        """
        if probe.IN_PROCESS not in self._layers and self._failures:
            raise self._failures[0]

    def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        if command["cmd"] == "connect":
            wire = Wire(command["url"], self._probe.target.tool, self._probe.target.arguments)
            layers: list[Layer] = [FunctionLayer(probe.SOCKET, CLIENT, wire.check, wire.call, wire.renew)]
            if self._probe.reports_handler:
                layers.append(SelfTimedLayer(probe.HANDLER, HANDLER_STEPS, wire.timed_call, wire.renew))
            for layer in layers:
                layer.batch(1)
            self._layers.update({layer.name: layer for layer in layers})
            return {"layers": [{"name": layer.name, "includes": layer.includes} for layer in layers]}
        return {"ns": self._layers[command["layer"]].batch(int(command["calls"]))}


def _problem_message(problem: Problem) -> dict[str, Any]:
    return {"problem": problem.kind, "message": str(problem), "known": problem.known}


def _say(answers: IO[bytes], value: dict[str, Any]) -> None:
    answers.write(json.dumps(value).encode() + b"\n")
    answers.flush()
