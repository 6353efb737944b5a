"""Loads the object named ``MODULE:SERVER`` or ``FILE.py:SERVER``, like ``mcpace serve``."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from mcpace_layers.problem import SETUP, USAGE, Problem, describe_error

SETTINGS = "DJANGO_SETTINGS_MODULE"


def load(text: str) -> Any:
    """Loads the server object. Raises :class:`Problem`."""
    place, _, name = text.rpartition(":")
    if not place or not all(part.isidentifier() for part in name.split(".")):
        raise Problem(USAGE, f"{text!r} names no server object: write MODULE:SERVER, as in mypackage.server:mcp")
    # Like Python itself, only modules are searched in the current folder. Django's settings are a module too.
    if not place.endswith(".py") or os.environ.get(SETTINGS):
        sys.path.insert(0, str(Path.cwd()))
    unready = _set_up_django()
    try:
        value = _find_object(place, name)
        return _call_factory(value, text)
    except Problem as problem:
        if unready is None or problem.kind == USAGE:
            raise
        # The problem is a consequence of Django's failed set-up.
        setting = f"{SETTINGS}={os.environ[SETTINGS]}"
        raise Problem(
            SETUP, f"{problem}; Django could not be set up with {setting}: {describe_error(unready)}"
        ) from unready


def _find_object(place: str, name: str) -> Any:
    value: Any = _module(place)
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            known = [one for one in vars(value) if not one.startswith("_")] if isinstance(value, ModuleType) else []
            raise Problem(USAGE, f"{place} has no {name!r}", known) from None
    return value


def _set_up_django() -> Exception | None:
    """Sets up Django before any module of the project is imported, since models can't be imported earlier.

    Returns the error instead of raising it: the variable may belong to another project, and only servers that need
    Django fail without it.
    """
    if not os.environ.get(SETTINGS):
        return None
    try:
        importlib.import_module("django").setup()
    except ModuleNotFoundError as error:
        return None if error.name == "django" else error
    except Exception as error:
        return error
    return None


def _module(place: str) -> ModuleType:
    try:
        return _file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except Problem:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            there = f"; did you mean {place}.py?" if Path(f"{place}.py").is_file() else ""
            sentence = f"there is no module {error.name!r} in this folder or on the path of {sys.executable}{there}"
            raise Problem(USAGE, sentence) from error
        raise Problem(SETUP, f"{place} could not be imported by {sys.executable}: {describe_error(error)}") from error
    except (Exception, SystemExit) as error:
        unset = type(error).__name__ == "ImproperlyConfigured" and not os.environ.get(SETTINGS)
        hint = f"; {SETTINGS} is not set" if unset else ""
        raise Problem(SETUP, f"importing {place} raised {describe_error(error)}{hint}") from error


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise Problem(USAGE, f"there is no file {path}")
    sys.path.insert(0, str(path.resolve().parent))
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "_measured"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a .py file has a loader"
    assert spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _call_factory(value: Any, text: str) -> Any:
    """Calls a factory function without parameters and returns its result; returns other objects unchanged."""
    if not inspect.isfunction(value):
        return value
    parameters = inspect.signature(value).parameters.values()
    if any(one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters):
        raise Problem(USAGE, f"{text} is a function that wants arguments: one that makes the server takes none")
    try:
        result = value()
        return asyncio.run(_await(result)) if inspect.isawaitable(result) else result
    except (Exception, SystemExit) as error:
        raise Problem(SETUP, f"calling {text} raised {describe_error(error)}") from error


async def _await(result: Any) -> Any:
    return await result
