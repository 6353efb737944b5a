"""A run as one page: a single file that needs no network, in light and dark, on a screen and on paper.

Design constraint: the page's policy forbids every request and every script and style but the two in it, which it names
by their digests; so even text that slipped through the escaping could not act.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from mcpace.report import page, page_layers, page_load, page_servers
from mcpace.report.groups import subjects
from mcpace.report.labels import PARTS, PHASES
from mcpace.report.quantities import clean, size
from mcpace.report.run import Run
from mcpace.report.verdict import sentences

TEMPLATES = "templates"


def render(run: Run) -> str:
    """The page's text, UTF-8 to be. Everything from a peer is cleaned and escaped."""
    style, script = _asset("report.css"), _asset("report.js")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            policy=_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            run=run,
            verdict=sentences(run),
            subjects=[clean(label, 60) for label in subjects(run)],
            overview=page.overview(run),
            probes=page.probes(run.bisection) if run.bisection else None,
            findings=page.findings(run),
            panels=page.panels(run),
            loads=page_load.loads(run),
            load_columns=page_load.COLUMNS,
            compared=page_servers.compared(run),
            layered=page_layers.layered(run),
            trials=page.trials(run) if run.kind not in ("load", "servers", "layers") else [],
            ledgers=page.ledgers(run),
            parts=[(name.replace(".", "-"), name, meaning) for name, meaning in PARTS.items()],
            phases=PHASES,
            options=[(clean(name, 60), clean(_option(value), 200)) for name, value in run.options.items()],
            memory=size(run.machine.memory_bytes),
        )
    )


def _option(value: object) -> str:
    """An option as its user would say it."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_option(part)}" for name, part in value.items())
    return ", ".join(_option(part) for part in value) if isinstance(value, list) else str(value)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("mcpace.report", TEMPLATES),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["clean"] = clean
    return environment


@cache
def _asset(name: str) -> str:
    """A file beside the template; our own, and the only text that goes in unescaped."""
    return files("mcpace.report").joinpath(TEMPLATES, name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
