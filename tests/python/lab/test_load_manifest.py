"""``mcpace load --manifest kubernetes``: the objects by Kubernetes' own schemas, and their commands as processes."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcpace.cli.load_manifest import yaml_lines
from support.adoption import installed
from support.commands import closed_port, end, mcp_answer, read_request, run, tcp_server
from support.pods import Cluster, expand

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "tests" / "workers" / "kubernetes.txt"
VERSIONS = ("1.29", "1.37")
"""The first version with all members that the manifest uses, and the newest of the package."""
DONE, USAGE = 0, 2
URL = "http://mcp.example:8000/mcp"
PODS = ("--workers", "pods:3", "--manifest", "kubernetes")


def manifest(*words: object, folder: Path, **environment: str) -> list[dict[str, Any]]:
    """The objects that a command prints."""
    ended = run("load", *words, folder=folder, environment=environment)
    assert ended.code == DONE, ended.stderr
    return list(yaml.safe_load_all(ended.stdout))


def find(objects: list[dict[str, Any]], kind: str, name: str = "mcpace-load") -> dict[str, Any]:
    [found] = [one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def driver_container(objects: list[dict[str, Any]]) -> dict[str, Any]:
    [container] = find(objects, "Job", "mcpace-load-driver")["spec"]["template"]["spec"]["containers"]
    return dict(container)


def test_the_pods_of_a_manifest_make_the_load(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def answer(connection: Any) -> None:
        request = read_request(connection)
        seen.append(request)
        connection.sendall(mcp_answer(request, tool="echo"))

    words = ["--vus", 6, "--max-calls", 301, "--duration", "60s", "--warm-up", "0s", "--tool", "echo", "--json"]
    words += ["--args", '{"text": "$(HOME) {{counter}}"}', "--header", "X-Key: $KEY", "--bearer", "TOKEN"]
    with tcp_server(answer, read=False) as url, ExitStack() as stack:
        cluster = Cluster(
            manifest(url, *words, *PODS, folder=tmp_path), tmp_path,
            **{"mcpace-load-credentials": {"KEY": "first-secret", "TOKEN": "second-secret"}},
        )  # fmt: skip
        names = cluster.names("mcpace-load")
        assert list(names) == ["mcpace-load-0.mcpace-load", "mcpace-load-1.mcpace-load", "mcpace-load-2.mcpace-load"]
        workers = [stack.enter_context(cluster.pod("mcpace-load", index, names)) for index in range(len(names))]
        driver = end(stack.enter_context(cluster.pod("mcpace-load-driver", 0, names)))
        codes = [end(worker).code for worker in workers]
    assert (driver.code, codes) == (DONE, [DONE] * 3), driver.stderr
    [case] = json.loads(driver.stdout)["cases"]
    assert (case["by_tool"]["echo"]["count"], case["by_tool"]["echo"]["ok"]) == (301, 301)
    assert [one["place"] for one in case["load"]["workers"]] == [f"tcp {name}:7349" for name in names]
    assert [one["calls"] for one in case["load"]["workers"]] == [101, 100, 100]
    assert all(abs(one["time_offset_s"]) <= one["uncertainty_s"] for one in case["load"]["workers"])
    calls = [request for request in seen if b'"tools/call"' in request]
    # One more call is that of the check.
    assert len({request.partition(b"$(HOME) ")[2] for request in calls}) == 301
    assert all(b"first-secret" in request and b"Bearer second-secret" in request for request in calls)


@pytest.mark.network
@pytest.mark.parametrize("version", VERSIONS)
def test_the_objects_fit_the_schemas_of_kubernetes(version: str, tmp_path: Path) -> None:
    python = installed("kubernetes-schemas", LOCK)
    (tmp_path / "names.txt").write_text("Ada\n")
    words = [URL, "--data", "names=names.txt", "--bearer", "TOKEN", *PODS]
    ended = run("load", *words, folder=tmp_path)
    assert len(list(yaml.safe_load_all(ended.stdout))) == 6
    for name, text in {
        "right": ended.stdout,
        "wrong": ended.stdout.replace("backoffLimitPerIndex:", "backoff:"),
    }.items():
        file = tmp_path / f"{name}.yaml"
        file.write_text(text)
        command = [str(python), "-m", "kubernetes_validate", "-k", version, "--strict", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode == 0) == (name == "right"), done.stdout + done.stderr


def test_the_manifest_has_no_secret_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "load.toml").write_text('header = ["X-Third: ${THIRD}"]\n')
    secrets = {"FIRST": "value-of-first", "SECOND": "value-of-second", "THIRD": "value-of-third"}
    words = [URL, "--header", "X-First: $FIRST", "--bearer", "SECOND", *PODS]
    ended = run("load", *words, folder=tmp_path, environment=secrets)
    assert ended.code == DONE, ended.stderr
    assert "value-of" not in ended.stdout + ended.stderr
    assert '--from-literal=FIRST="$FIRST" --from-literal=SECOND="$SECOND"' in ended.stderr
    # The variables need no value on this machine.
    objects = manifest(URL, *PODS, "--scenario", "load.toml", folder=tmp_path)
    container = driver_container(objects)
    assert [one["name"] for one in container["env"]] == ["MCPACE_WORKER_TOKEN", "THIRD", "HOME"]
    assert "--scenario=/load/scenario-0.toml" in container["args"]
    assert find(objects, "ConfigMap")["data"] == {"scenario-0.toml": (tmp_path / "load.toml").read_text()}
    tokens = [find(manifest(URL, *PODS, folder=tmp_path), "Secret")["stringData"] for _ in range(2)]
    assert tokens[0] != tokens[1]


def test_options_reach_the_driver_and_the_pods(tmp_path: Path) -> None:
    (tmp_path / "names.bin").write_bytes(b"\xff\n")
    (tmp_path / "names.txt").write_text("Ada\nGrace\n")
    words = [URL, "--stages", "1s:5,2s:9", "--think", "1.5ms", "--mix", "echo=2", "--mix", "ping", "--server-timing"]
    words += ["--data", "who=names.txt", "--threads", 2, "--image", "registry.example/mcpace:1", "--json"]
    objects = manifest(*words, "--workers", "pods:2", "--manifest", "kubernetes:my-load", folder=tmp_path)
    container = find(objects, "Job", "my-load-driver")["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == [
        "load", "--stages=1s:5,2s:9", "--mix=echo=2", "--mix=ping", "--data=who=/load/data-0.txt", "--think=0.0015",
        "--threads=2", "--server-timing", "--json", URL,
        "--workers=tcp:my-load-0.my-load:7349,my-load-1.my-load:7349",
    ]  # fmt: skip
    worker = find(objects, "Job", "my-load")["spec"]
    assert (worker["completions"], worker["parallelism"]) == (2, 2)
    pod = worker["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    [container] = pod["containers"]
    assert container["image"] == "registry.example/mcpace:1"
    assert container["resources"]["requests"]["cpu"] == "2"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert [one["name"] for one in container["env"]] == ["POD_IP", "MCPACE_WORKER_TOKEN", "HOME"]
    policy = find(objects, "NetworkPolicy", "my-load")["spec"]
    assert policy["podSelector"]["matchLabels"] == worker["template"]["metadata"]["labels"]
    driver = find(objects, "Job", "my-load-driver")["spec"]["template"]["metadata"]["labels"]
    assert policy["ingress"][0]["from"] == [{"podSelector": {"matchLabels": driver}}]
    assert find(objects, "ConfigMap", "my-load")["data"] == {"data-0.txt": "Ada\nGrace\n"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([URL, "--manifest", "helm", "--workers", "pods:2"], "takes kubernetes or kubernetes:NAME, not 'helm'"),
        ([URL, "--manifest", "kubernetes:A_b", "--workers", "pods:2"], "'A_b' can't be a name in Kubernetes"),
        ([URL, "--manifest", "kubernetes"], "give --workers pods:N, and no others"),
        ([URL, "--manifest", "kubernetes", "--workers", "local:2"], "give --workers pods:N, and no others"),
        ([URL, "--workers", "pods:2"], "give --manifest kubernetes, too"),
        ([URL, "--workers", "pods:0", "--manifest", "kubernetes"], "from 1 to 256 workers"),
        ([URL, "--image", "x"], "--image is the image of a manifest"),
        (["profile:simple", *PODS], "which pod 1 can't reach: give a URL"),
        (["stdio:cat", *PODS], "cat is no URL"),
        ([URL, *PODS, "--out", "x.json"], "a file of --out is lost with its pod"),
        ([URL, *PODS, "--auth", "oauth"], "--auth is about this machine"),
        ([URL, *PODS, "--scenario", "load.toml"], "load.toml names a file for cacert, which a pod has not"),
        ([URL, *PODS, "--threshold", "p99<5"], "p99<5"),
        ([URL, *PODS, "--data", "names=large.txt"], "a ConfigMap may have 900,000"),
    ],
)  # fmt: skip
def test_wrong_words_are_refused(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "load.toml").write_text('cacert = "ca.pem"\n')
    (tmp_path / "large.txt").write_text("x" * 1_000_000)
    ended = run("load", *words, folder=tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, ""), ended.stderr
    assert said in ended.sentence()


def test_a_target_on_loopback_is_pointed_out(tmp_path: Path) -> None:
    url = f"http://localhost:{closed_port()}/mcp"
    ended = run("load", url, *PODS, folder=tmp_path)
    assert ended.code == DONE
    assert f"{url} is on loopback: each pod would call itself" in ended.stderr


def test_yaml_is_read_as_it_was_written() -> None:
    value = {
        "text": 'on: "quoted" # and\n- more é\x85', "number": 3, "none": None, "flag": True, "empty": {}, "nothing": [],
        "map": {"a": {"b": "1e3"}},
        "list": [{"name": "x", "items": ["- a", "b: c"], "deep": {"k": [{"z": 1}]}}, {"q": 2}],
    }  # fmt: skip
    assert yaml.safe_load("\n".join(yaml_lines(value))) == value
    assert expand("$$(A) $(A) $(B) $$$(A)", {"A": "1"}) == "$(A) 1 $(B) $1"
