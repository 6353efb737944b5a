"""A run that compares three servers: a fast one, one that fails at times, and one that couldn't be measured."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.run import Run

LATENCY = {
    "count": 9,
    "mean": 0.001,
    "min": 0.001,
    "p50": 0.00123,
    "p90": 0.002,
    "p99": 0.0345,
    "p999": 0.05,
    "max": 0.1,
}
ENGINE = {"threads": 1, "cpu_s": 1, "busy": 0.5, "late_p99_s": 0, "saturated": False}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "call", "count": 9, "ok": 9, "throughput_rps": 900.0, "latency_s": LATENCY, **more}


def case(mode: str, rps: float | None, **more: Any) -> dict[str, Any]:
    facts = {
        "sdk_version": "1.2", "revision": "2025-06-18", "cpu_s_per_call": 0.0000123, "checked": ["echo"], "rounds": [],
        "notes": ["Four \x1b[31mthreads"],
    }  # fmt: skip
    basis: dict[str, Any] = {"subject": {"sdk": "go", "version": "1.8.0", "mode": mode}, "target": "workload:shop"}
    measured = {
        "throughput_rps": rps, "errors": 0, "latency_s": LATENCY, "rss_bytes": 12_000_000, "saturated": False,
        "by_tool": {"echo": tool("echo"), "greet": tool("greet")}, "server": facts,
    }  # fmt: skip
    return {**basis, "operation": "call", **(measured if rps is not None else {}), **more}


def run_of(*cases: dict[str, Any], **common: Any) -> Run:
    servers = {
        "workload": "shop", "operations": {"echo": {}, "greet": {}}, "model": {"kind": "closed", "vus": 50},
        "revision": "2025-06-18", "session": "user", "state": "stateless", "rounds": 3, "round_s": 2.0,
        "round_warm_up_s": 1.0, "behind": {"redis-server": "7.0.15"},
        "cap": {"by": "affinity", "cpus": 1, "memory_bytes": 1 << 30, "memory_limited": False, "cores": [0],
                "load_cores": [1]},
        "floor": {"throughput_rps": 50_000.0, "engine_busy": 0.5, "saturated": False, "ceiling_rps": 100_000.0},
        **common,
    }  # fmt: skip
    machine = {"system": "", "architecture": "", "cpu": "", "cores": 2, "memory_bytes": 1, "python": ""}
    return Run.model_validate(
        {"schema": "mcpace.run/1", "kind": "servers", "started": "", "mcpace": "0", "machine": machine, "cases": cases,
         "servers": servers}
    )  # fmt: skip


RATIO = {"ratio": {"against": "go@1.8.0:json", "ratio": 0.25, "low": 0.2, "high": 0.3, "rounds": 3}, "sdk_version": "1"}
RUN = run_of(
    case("json", 4000.0),
    case("sse", 1000.0, errors=7, server=RATIO, by_tool={"echo": tool("echo", errors={"timeout": 7}, count=16)}),
    case("auto", None, error="double answers '63'"),
    case("old", None, unsupported="no such mode"),
)
