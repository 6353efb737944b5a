"""A load as objects of Kubernetes: an Indexed Job of workers behind a headless service, and a Job of the driver.

The workers listen under the stable names of the Indexed Job (``NAME-0.NAME``), and the driver connects to them. The
driver has a Job of its own and not index 0: its command, its credentials and its exit code differ from a worker's. Only
the driver's pod has the credentials of the target. A network policy admits nobody else to the workers, and both sides
prove that they know the token of the Secret.

Design constraint: nothing is sent to a cluster. A value that is a secret of the user is never written; the manifest
names the Secret that has it. The token of the workers is random and of use to one load only.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpace.lab.errors import UsageProblem
from mcpace.lab.load.workers.handshake import DEFAULT_PORT, TOKEN_VARIABLE
from mcpace.lab.load.workers.places import WORKER_COMMAND
from mcpace.lab.load.workers.tcp_channel import CONNECT_LIMIT_S

Resource = dict[str, Any]

DEFAULT_NAME = "mcpace-load"
NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
"""Names of services, short enough for the names of the pods."""
FILES_FOLDER = "/load"
SCRATCH_FOLDER = "/tmp"
MOST_FILE_BYTES = 900_000
"""Most bytes of all files: a ConfigMap has at most 1 MiB."""
USER = 10_001
"""The user of the image."""
KEPT_S = 86_400
"""Seconds for which finished pods and their logs are kept."""
SPARE_S = 600.0
"""Seconds beyond the load and the start until Kubernetes ends the pods."""


@dataclass(frozen=True)
class KubernetesLoad:
    """The parts that differ between two manifests."""

    name: str
    image: str
    workers: int
    threads: int
    command: Sequence[str]
    """The driver's command without ``--workers``."""
    planned_s: float
    variables: Sequence[str] = ()
    """Environment variables of the driver whose values the Secret ``NAME-credentials`` has."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files that the driver reads, by name."""


def kubernetes_objects(load: KubernetesLoad) -> list[Resource]:
    """The objects, in the order in which they are created.

    Raises :class:`UsageProblem` for a name that a service can't have, and for files that are too large.
    """
    if not NAME.fullmatch(load.name):
        raise UsageProblem(
            f"--manifest: {load.name!r} can't be a name in Kubernetes: write up to 40 lower-case letters, digits and "
            "hyphens, with a letter first"
        )
    size = sum(len(content) for content in load.files.values())
    if size > MOST_FILE_BYTES:
        raise UsageProblem(f"the files of the load have {size:,} bytes, and a ConfigMap may have {MOST_FILE_BYTES:,}")
    objects = [_token_secret(load), _service(load), _network_policy(load)]
    if load.files:
        objects.insert(1, _config_map(load))
    return [*objects, _worker_job(load), _driver_job(load)]


def credentials_name(load: KubernetesLoad) -> str:
    """The Secret with the values of :attr:`KubernetesLoad.variables`, which the user creates."""
    return f"{load.name}-credentials"


def _token_secret(load: KubernetesLoad) -> Resource:
    token = secrets.token_urlsafe(32)
    return {**_head(load, "v1", "Secret"), "type": "Opaque", "stringData": {TOKEN_VARIABLE: token}}


def _config_map(load: KubernetesLoad) -> Resource:
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, content in load.files.items():
        try:
            texts[name] = content.decode()
        except UnicodeDecodeError:
            others[name] = base64.b64encode(content).decode()
    parts = {"data": texts, "binaryData": others}
    return {**_head(load, "v1", "ConfigMap"), **{name: part for name, part in parts.items() if part}}


def _service(load: KubernetesLoad) -> Resource:
    spec = {
        "clusterIP": "None",
        "selector": _labels(load, "worker"),
        "publishNotReadyAddresses": True,
        "ports": [{"name": "worker", "port": DEFAULT_PORT, "protocol": "TCP"}],
    }
    return {**_head(load, "v1", "Service"), "spec": spec}


def _network_policy(load: KubernetesLoad) -> Resource:
    ingress = {
        "from": [{"podSelector": {"matchLabels": _labels(load, "driver")}}],
        "ports": [{"port": DEFAULT_PORT, "protocol": "TCP"}],
    }
    spec = {
        "podSelector": {"matchLabels": _labels(load, "worker")},
        "policyTypes": ["Ingress"],
        "ingress": [ingress],
    }
    return {**_head(load, "networking.k8s.io/v1", "NetworkPolicy"), "spec": spec}


def _worker_job(load: KubernetesLoad) -> Resource:
    container = {
        "name": "worker",
        "command": ["mcpace", WORKER_COMMAND],
        "args": ["--listen", f"$(POD_IP):{DEFAULT_PORT}"],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, _token_variable(load)],
        "ports": [{"name": "worker", "containerPort": DEFAULT_PORT, "protocol": "TCP"}],
        # A limit of processor time would pause the generator, and the pauses would be in the latencies.
        "resources": {"requests": {"cpu": str(load.threads), "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
    }
    spec = {
        "completionMode": "Indexed",
        "completions": load.workers,
        "parallelism": load.workers,
        # A worker that failed is not started again: the load would be another one. The driver reports its part.
        "backoffLimitPerIndex": 0,
    }
    return _job(load, load.name, "worker", spec, container, {"subdomain": load.name})


def _driver_job(load: KubernetesLoad) -> Resource:
    places = ",".join(f"{load.name}-{index}.{load.name}:{DEFAULT_PORT}" for index in range(load.workers))
    credentials = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": credentials_name(load), "key": name}}}
        for name in load.variables
    ]
    container: Resource = {
        "name": "driver",
        "command": ["mcpace"],
        # Kubernetes replaces $(NAME) in arguments, unless the dollar is doubled.
        "args": [word.replace("$", "$$") for word in (*load.command, f"--workers=tcp:{places}")],
        "env": [_token_variable(load), *credentials],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
    }
    pod: Resource = {}
    if load.files:
        pod["volumes"] = [{"name": "files", "configMap": {"name": load.name}}]
        container["volumeMounts"] = [{"name": "files", "mountPath": FILES_FOLDER, "readOnly": True}]
    return _job(load, f"{load.name}-driver", "driver", {"backoffLimit": 0}, container, pod)


def _job(
    load: KubernetesLoad, name: str, component: str, spec: Resource, container: Resource, pod: Resource
) -> Resource:
    whole_container = {
        **container,
        "image": load.image,
        "workingDir": SCRATCH_FOLDER,
        "env": [*container["env"], {"name": "HOME", "value": SCRATCH_FOLDER}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "scratch", "mountPath": SCRATCH_FOLDER},
            *container.get("volumeMounts", []),
        ],
    }
    pod_spec = {
        **pod,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [{"name": "scratch", "emptyDir": {}}, *pod.get("volumes", [])],
        "containers": [whole_container],
    }
    whole_spec = {
        **spec,
        "activeDeadlineSeconds": round(CONNECT_LIMIT_S + load.planned_s + SPARE_S),
        "ttlSecondsAfterFinished": KEPT_S,
        "template": {"metadata": {"labels": _labels(load, component)}, "spec": pod_spec},
    }
    return {**_head(load, "batch/v1", "Job", name), "spec": whole_spec}


def _token_variable(load: KubernetesLoad) -> Resource:
    return {"name": TOKEN_VARIABLE, "valueFrom": {"secretKeyRef": {"name": load.name, "key": TOKEN_VARIABLE}}}


def _head(load: KubernetesLoad, version: str, kind: str, name: str | None = None) -> Resource:
    labels = {"app.kubernetes.io/name": "mcpace", "app.kubernetes.io/instance": load.name}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name or load.name, "labels": labels}}


def _labels(load: KubernetesLoad, component: str) -> Resource:
    return {
        "app.kubernetes.io/name": "mcpace",
        "app.kubernetes.io/instance": load.name,
        "app.kubernetes.io/component": component,
    }
