"""``mcpace layers``: measures the layers of a call inside one Python server."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mcpace.cli import options
from mcpace.cli.output import deliver_run
from mcpace.cli.progress import show_progress
from mcpace.cli.times import parse_seconds
from mcpace.lab.targets import Tool

ROUNDS = 15
BATCH: Any = "50ms"
WARM_UP: Any = "500ms"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("layers")(layers)


def layers(
    server: Annotated[str, typer.Argument(metavar="MODULE:SERVER", help="The server object, or FILE.py:SERVER.")],
    tool: options.ToolName = None,
    args: options.ToolArguments = None,
    python: options.Python = None,
    rounds: Annotated[int, typer.Option(help="Batches of each layer, in turns.", min=2, max=1000)] = ROUNDS,
    batch: Annotated[
        float, typer.Option(parser=options.parse_limit, metavar="TIME", help="Length of a batch.")
    ] = BATCH,
    warm_up: Annotated[
        float, typer.Option(parser=parse_seconds, metavar="TIME", help="Calls of each layer before the measurement.")
    ] = WARM_UP,
    as_json: options.Json = False,
    out: options.Out = None,
    html: options.Html = None,
) -> None:
    """Measure the layers of a Python MCP server, of any SDK: the tool's function called directly, its handler, a client
    in the same process, a client over a real socket.

    The tool of --tool is called thousands of times, with the arguments of --args. DJANGO_SETTINGS_MODULE names the
    Django project.
    """
    from mcpace.lab import journal
    from mcpace.lab.layers.run_layers import LayersPlan, run_layers

    chosen = options.chosen_tool(tool, args) or Tool("")
    plan = LayersPlan(server, chosen, options.interpreter_path(python), rounds, batch, warm_up)
    with show_progress() as display, journal.record_progress(display, out, "layers", plan.place) as progress:
        run = run_layers(plan, progress)
    deliver_run(run, as_json=as_json, out=out, page=html)
