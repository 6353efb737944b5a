"""``MODULE:SERVER`` → the server object.

Also ``FILE.py`` and ``FILE.py:OBJECT``; an object may be dotted, and may be a function without parameters that makes
the server. Without an object's name, the usual names are tried, as the official SDK's and FastMCP's commands do.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from mcpace.server.running.errors import AuthorProblem, SetupProblem, UsageProblem
from mcpace.server.running.prepared import is_server

USUAL_NAMES = ("mcp", "server", "app")


@dataclass(frozen=True, slots=True)
class Target:
    """The location of a server object, parsed from text."""

    module: str
    """A dotted module name, or the path of a file where :attr:`is_file`."""
    name: str | None
    """The object's dotted name; ``None`` tries the usual names."""
    is_file: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.name}" if self.name else self.module


def parse(text: str) -> Target:
    """Parses a target. Raises :class:`UsageProblem` for invalid text."""
    # Split at the last colon: a path may have one, an object's name can't.
    place, colon, name = text.rpartition(":")
    if not colon:
        place, name = text, ""
    if place.startswith(("http:", "https:")) or text.startswith(("http:", "https:")):
        raise UsageProblem(f"{text!r} is a URL: what is served is a Python module's server, as in mypackage.server:mcp")
    is_file = place.endswith(".py") or "/" in place
    if colon and not name:
        raise UsageProblem(f"{text!r} names no object after the colon: write {place}:mcp, or leave the colon out")
    if name and not all(part.isidentifier() for part in name.split(".")):
        raise UsageProblem(f"{name!r} names no Python object: write MODULE:SERVER, as in {place or 'server'}:mcp")
    if not is_file and not all(part.isidentifier() for part in place.split(".")):
        raise UsageProblem(f"{place!r} is neither a module's name nor a file: write MODULE:SERVER or FILE.py:SERVER")
    return Target(place, name or None, is_file)


def load(target: Target) -> object:
    """Imports the module and returns its server object.

    Raises :class:`SetupProblem` if the module or the object is missing, :class:`AuthorProblem` if the module raised.
    """
    module = _import_module(target)
    found = _find_object(module, target) if target.name else _find_usual(module, target)
    return _call_factory(found, target)


def _import_module(target: Target) -> ModuleType:
    if target.is_file:
        return _imported_file(target)
    # `python -m` puts the current folder first; for the script `mcpace` it is the script's folder.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(target.module)
    except ModuleNotFoundError as error:
        if error.name is not None and (target.module == error.name or target.module.startswith(f"{error.name}.")):
            advice = f"; did you mean {target.module}.py?" if Path(f"{target.module}.py").is_file() else ""
            raise SetupProblem(f"there is no module {error.name!r} in {here} or on Python's path{advice}") from error
        _note_interpreter(error)
        raise AuthorProblem(f"importing {target.module}", error) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise AuthorProblem(f"importing {target.module}", error) from error


def _imported_file(target: Target) -> ModuleType:
    path = Path(target.module).resolve()
    if not path.is_file():
        raise SetupProblem(f"there is no file {target.module}")
    # Modules beside the file can be imported, as when Python runs the file.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"_served_{abs(hash(path)):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SetupProblem(f"{target.module} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Classes find their module by its name: pydantic's forward references, pickles.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _note_interpreter(error)
        raise AuthorProblem(f"importing {target.module}", error) from error
    return module


def _note_interpreter(error: BaseException) -> None:
    """Names the searched environment in a missing import: mcpace may have another one than the server."""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        error.add_note(f"mcpace runs with {sys.executable}. Install mcpace in the environment that has {error.name!r}.")


def _find_object(module: ModuleType, target: Target) -> Any:
    assert target.name is not None
    found: Any = module
    for part in target.name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            there = _find_servers(module)
            hint = f"; it has {' and '.join(there)}" if there else ""
            raise SetupProblem(f"{target.module} has no {target.name!r}{hint}") from error
    return found


def _find_usual(module: ModuleType, target: Target) -> Any:
    for name in USUAL_NAMES:
        if hasattr(module, name):
            found = getattr(module, name)
            # The module may also have a web framework's `app`.
            if is_server(found) or (inspect.isfunction(found) and _is_factory(found)):
                return found
    there = _find_servers(module)
    if len(there) == 1:
        return getattr(module, there[0])
    if there:
        names = ", ".join(there)
        raise SetupProblem(f"{target.module} has the servers {names}: name one, as in {target.module}:{there[0]}")
    applications = [name for name in USUAL_NAMES if _is_asgi(getattr(module, name, None))]
    if applications:
        raise SetupProblem(_asgi_advice(target, getattr(module, applications[0]), applications[0]))
    names = " or ".join(USUAL_NAMES)
    raise SetupProblem(f"{target.module} has no server named {names}: name yours, as in {target.module}:my_server")


def _find_servers(module: ModuleType) -> list[str]:
    # A copy, because inspecting a value may import something into its module.
    members = tuple(vars(module).items())
    return [name for name, value in members if not name.startswith("_") and is_server(value)]


def _is_factory(candidate: Any) -> bool:
    """Whether a value can be called without arguments."""
    try:
        parameters = inspect.signature(candidate).parameters.values()
    except ValueError:  # compiled, and without a signature
        return True
    return not any(
        parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for parameter in parameters
    )


def _is_asgi(candidate: object) -> bool:
    """Whether a value looks like an ASGI application: a callable that takes the protocol's three arguments."""
    if isinstance(candidate, type) or not callable(candidate):
        return False
    try:
        return [*inspect.signature(candidate).parameters][:3] == ["scope", "receive", "send"]
    except ValueError:  # compiled, and without a signature
        return False


def _asgi_advice(target: Target, found: object, name: str) -> str:
    return (
        f"{target.module}:{name} is {_describe_kind(found)}, an ASGI application: name the MCP server that it is made "
        f"of, as in {target.module}:mcp, or run the application with an ASGI server, as in: uvicorn "
        f"{Path(target.module).stem if target.is_file else target.module}:{name}"
    )


def _call_factory(found: Any, target: Target) -> object:
    if is_server(found):
        return found
    if _is_asgi(found):
        raise SetupProblem(_asgi_advice(target, found, target.name or found.__name__))
    if not callable(found):
        raise SetupProblem(f"{target} is {_describe_kind(found)}, and no MCP server that mcpace knows")
    if not _is_factory(found):
        kind = "a function" if inspect.isfunction(found) else _describe_kind(found)
        raise SetupProblem(f"{target} is {kind} that wants arguments: one that makes the server takes none")
    try:
        made = found()
        if inspect.isawaitable(made):
            # Imported late: most servers start without an event loop.
            import asyncio

            made = asyncio.run(_run_coroutine(made))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise AuthorProblem(f"calling {target}", error) from error
    if not is_server(made):
        raise SetupProblem(f"{target}() returned {_describe_kind(made)}, and no MCP server that mcpace knows")
    return made


async def _run_coroutine(made: Any) -> Any:
    return await made


def _describe_kind(value: object) -> str:
    kind = type(value)
    return f"a {kind.__name__}" if kind.__module__ == "builtins" else f"a {kind.__module__}.{kind.__qualname__}"
