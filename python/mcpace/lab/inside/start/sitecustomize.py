"""Instruments a server's interpreter with OpenTelemetry as it starts. mcpace puts this folder on PYTHONPATH.

The server's own packages come first: the packages of the overlay stand last on the path. A failure is written to the
file that MCPACE_INSIDE_REPORT names, and the server starts as usual. Programs that the server starts are not
instrumented.
"""

import importlib.util
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run_shadowed_module() -> None:
    """Runs the sitecustomize of the server's environment, which this one stands before."""
    for folder in sys.path:
        path = Path(folder) / "sitecustomize.py"
        if path.is_file():
            spec = importlib.util.spec_from_file_location("sitecustomize", path)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


def start_instrumentation() -> None:
    """Loads OpenTelemetry from the overlay and instruments the libraries that the server has."""
    overlay = os.environ.pop("MCPACE_INSIDE_OVERLAY", "")
    report = os.environ.pop("MCPACE_INSIDE_REPORT", "")
    original = os.environ.pop("MCPACE_INSIDE_PYTHONPATH", "")
    if original:
        os.environ["PYTHONPATH"] = original
    else:
        os.environ.pop("PYTHONPATH", None)
    if not overlay:
        return
    sys.path.append(overlay)
    try:
        from opentelemetry.instrumentation.auto_instrumentation import initialize

        initialize(swallow_exceptions=False)
    except Exception as error:
        try:
            with Path(report).open("a", encoding="utf-8") as file:
                file.write(f"{type(error).__name__}: {error}"[:500] + "\n")
        except OSError:
            pass


sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != HERE]
run_shadowed_module()
start_instrumentation()
