"""Pods of a manifest as processes of this machine, with their commands, arguments, variables and names.

A stand-in for a cluster: it has no kubelet, so security contexts, volumes and resources have no effect.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.commands import COMMAND

Resource = dict[str, Any]
RESOLVER = """
import json, os, socket
_real, _names = socket.getaddrinfo, json.loads(os.environ["POD_NAMES"])
socket.getaddrinfo = lambda host, *rest, **more: _real(_names.get(host, host), *rest, **more)
"""


class Cluster:
    """The objects of one manifest, and Secrets that were there before."""

    def __init__(self, objects: Sequence[Resource], folder: Path, **credentials: Mapping[str, str]) -> None:
        self._objects = objects
        self._folder = folder
        self._secrets = {
            **{one["metadata"]["name"]: one["stringData"] for one in objects if one["kind"] == "Secret"},
            **credentials,
        }
        (folder / "sitecustomize.py").write_text(RESOLVER)

    def find(self, kind: str, name: str) -> Resource:
        """The one object of a kind and name."""
        [found] = [one for one in self._objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
        return found

    def names(self, job: str) -> dict[str, str]:
        """The names that a headless service gives to the pods of an Indexed Job, and their addresses."""
        spec = self.find("Job", job)["spec"]
        assert spec["completionMode"] == "Indexed"
        subdomain = spec["template"]["spec"]["subdomain"]
        service = self.find("Service", subdomain)["spec"]
        assert service["clusterIP"] == "None"
        assert service["selector"].items() <= spec["template"]["metadata"]["labels"].items()
        return {f"{job}-{index}.{subdomain}": address(index) for index in range(spec["completions"])}

    @contextmanager
    def pod(self, job: str, index: int, names: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
        """Starts a pod of a job, and kills it at the end of the ``with`` block."""
        [container] = self.find("Job", job)["spec"]["template"]["spec"]["containers"]
        variables = {one["name"]: self._value(one, index) for one in container["env"]}
        words = [expand(word, variables) for word in (*container["command"], *container.get("args", []))]
        assert words[0] == "mcpace"
        environment = {
            **variables,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(self._folder), *filter(None, sys.path)]),
            "POD_NAMES": json.dumps(names),
        }
        process = subprocess.Popen(
            [*COMMAND, *words[1:]], env=environment, cwd=self._folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with process:
            try:
                yield process
            finally:
                process.kill()

    def _value(self, variable: Resource, index: int) -> str:
        match variable:
            case {"value": str(value)}:
                return value
            case {"valueFrom": {"secretKeyRef": {"name": str(name), "key": str(key)}}}:
                return self._secrets[name][key]
            case {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}:
                return address(index)
        raise AssertionError(variable)


def address(index: int) -> str:
    """The address of a pod."""
    return f"127.0.0.{index + 2}"


def expand(word: str, variables: Mapping[str, str]) -> str:
    """Replaces ``$(NAME)`` as Kubernetes does in arguments; ``$$`` is a dollar."""
    return re.sub(
        r"\$\$|\$\(([A-Za-z_.-][\w.-]*)\)",
        lambda match: "$" if match[1] is None else variables.get(match[1], match[0]),
        word,
    )
