"""``mcpace replicas``: copies of a server behind a load balancer, while copies are killed, added and replaced."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from mcpace.cli import options
from mcpace.cli.output import deliver_run
from mcpace.cli.progress import show_progress
from mcpace.cli.times import parse_seconds
from mcpace.lab.defaults import PORT_VARIABLE
from mcpace.lab.errors import UnknownName, UsageProblem
from mcpace.lab.replicas.plan import DEFAULT_DURATION_S, DEFAULT_VUS, POLICIES, REVISIONS, ReplicasPlan
from mcpace.lab.targets import Tool

DURATION: Any = f"{DEFAULT_DURATION_S:g}s"
TIMEOUT: Any = "10s"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("replicas")(replicas)


def replicas(
    copies: Annotated[int, typer.Argument(metavar="N", help="Number of copies, 2 to 16.")],
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND...",
            help="Program that serves MCP over HTTP. {port} stands for a free port, which the variable PORT has too.",
        ),
    ],
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="How the balancer chooses a copy: round-robin, least-connections, session or cookie. [default: all]",
        ),
    ] = [],  # noqa: B006 - typer copies it
    revision: Annotated[
        str | None, typer.Option(help=f"Only this protocol revision. [default: {' and '.join(REVISIONS)}]")
    ] = None,
    tool: options.ToolName = None,
    args: options.ToolArguments = None,
    question_tool: Annotated[
        str | None, typer.Option(metavar="NAME[=JSON]", help="Tool that asks the client by elicitation.")
    ] = None,
    long_tool: Annotated[
        str | None,
        typer.Option(metavar="NAME[=JSON]", help="Tool that takes a second or more: it waits while its copy ends."),
    ] = None,
    task_tool: Annotated[str | None, typer.Option(metavar="NAME[=JSON]", help="Tool that runs as a task.")] = None,
    change_tool: Annotated[
        str | None,
        typer.Option(metavar="NAME[=JSON]", help="Tool by which the server tells its clients that a list has changed."),
    ] = None,
    port_variable: Annotated[
        str, typer.Option(metavar="NAME", help="Environment variable with the port of a copy.")
    ] = PORT_VARIABLE,
    vus: Annotated[int, typer.Option(help="Users of the load.", min=1, max=1000)] = DEFAULT_VUS,
    duration: Annotated[
        float,
        typer.Option(parser=parse_seconds, metavar="TIME", help="Measured time under each policy; 0s for none."),
    ] = DURATION,
    timeout: options.Timeout = TIMEOUT,
    fail_on: options.FailOn = [],  # noqa: B006 - typer copies it
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Start N copies of a server behind a load balancer, and try a dialogue and a load while copies are killed, added
    and replaced. Shows what breaks under each policy, and what the server needs.
    """
    from mcpace.lab import journal
    from mcpace.lab.replicas.run_replicas import run_replicas

    for name in policy:
        if name not in POLICIES:
            raise UnknownName("policy", name, POLICIES)
    for code in fail_on:
        if code not in ("session-lost-behind-balancer", "any"):
            raise UnknownName("finding", code, ["session-lost-behind-balancer", "any"])
    chosen = options.checked_revision(revision)
    plan = ReplicasPlan(
        command=tuple(command),
        copies=copies,
        policies=tuple(one for one in POLICIES if one in policy) or POLICIES,
        revisions=(chosen,) if chosen else REVISIONS,
        tool=options.chosen_tool(tool, args),
        question=_parse_tool("--question-tool", question_tool),
        long=_parse_tool("--long-tool", long_tool),
        task=_parse_tool("--task-tool", task_tool),
        change=_parse_tool("--change-tool", change_tool),
        port_variable=port_variable,
        vus=vus,
        duration_s=duration,
        time_limit_s=timeout,
    )
    plan.check()
    name = f"{copies} copies of {shlex.join(command)}"
    with show_progress() as display, journal.record_progress(display, out, "replicas", name) as progress:
        run = run_replicas(plan, progress)
    deliver_run(run, as_json=as_json, out=out, page=html, fail_on=fail_on)


def _parse_tool(option: str, text: str | None) -> Tool | None:
    if text is None:
        return None
    name, given, arguments = text.partition("=")
    if not name:
        raise UsageProblem(f"{option} names a tool, as in {option} 'wait={{\"seconds\": 2}}', not {text!r}")
    return options.chosen_tool(name, arguments if given else None)
