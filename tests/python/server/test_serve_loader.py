"""Loading of a server object from ``MODULE:SERVER``, and the messages where there is none."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpace.server.running import loader, tracebacks
from mcpace.server.running.errors import AuthorProblem, SetupProblem, UsageProblem
from mcpace.server.running.loader import Target

SERVER = """
class Server:
    def __init__(self, name="a server"):
        self.name = name
    def __mcpace__(self):
        raise NotImplementedError("a stand-in: it is only looked for")
"""


@pytest.fixture(autouse=True)
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gives each test its own folder, path and modules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SERVER + textwrap.dedent(text))


def loaded(text: str) -> object:
    return loader.load(loader.parse(text))


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("server", Target("server", None, False)),
        ("package.server:mcp", Target("package.server", "mcp", False)),
        ("package.server:holder.mcp", Target("package.server", "holder.mcp", False)),
        ("server.py", Target("server.py", None, True)),
        ("a folder/server.py:mcp", Target("a folder/server.py", "mcp", True)),
        ("C:/server.py:mcp", Target("C:/server.py", "mcp", True)),
    ],
)
def test_words_become_a_target(text: str, target: Target) -> None:
    assert loader.parse(text) == target


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("http://127.0.0.1:8000/mcp", "is a URL"),
        ("server:", "names no object"),
        ("server:2", "names no Python object"),
        ("server:f()", "names no Python object"),
        ("my-server", "neither a module's name nor a file"),
        ("", "neither a module's name nor a file"),
        (":mcp", "neither a module's name nor a file"),
    ],
)
def test_words_that_are_no_target_say_why(text: str, advice: str) -> None:
    with pytest.raises(UsageProblem, match=advice):
        loader.parse(text)


@pytest.mark.parametrize("name", ["mcp", "server", "app"])
def test_the_usual_names_need_not_be_said(name: str) -> None:
    write("one.py", f"{name} = Server()\nother = Server('another')")
    for text in ("one", "one.py", f"one:{name}", f"one.py:{name}", "./one.py"):
        found = loaded(text)
        assert getattr(found, "name", None) == "a server", text


def test_a_web_frameworks_app_is_passed_over() -> None:
    write("one.py", "app = object()\nserver = Server()")
    assert getattr(loaded("one"), "name", None) == "a server"


def test_the_only_server_is_found_whatever_its_name() -> None:
    write("one.py", "weather = Server('weather')")
    assert getattr(loaded("one"), "name", None) == "weather"


def test_modules_of_packages_and_dotted_objects_are_found() -> None:
    write("package/__init__.py", "")
    write("package/inner.py", "class holder:\n    mcp = Server('inner')")
    assert getattr(loaded("package.inner:holder.mcp"), "name", None) == "inner"


def test_what_stands_beside_a_file_can_be_imported_from_it() -> None:
    write("folder/beside.py", "NAME = 'beside'")
    write("folder/served.py", "import beside\nmcp = Server(beside.NAME)")
    assert getattr(loaded("folder/served.py"), "name", None) == "beside"


def test_a_file_may_have_the_name_of_a_module_that_is_there() -> None:
    write("folder/json.py", "mcp = Server('mine')")
    assert getattr(loaded("folder/json.py"), "name", None) == "mine"
    import json

    assert json.loads("1") == 1


def test_a_class_in_a_file_finds_its_module() -> None:
    write("one.py", "import sys\nclass Here: pass\nmcp = Server(sys.modules[Here.__module__].Here is Here)")
    assert getattr(loaded("one.py"), "name", None) is True


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_makes_the_server(kind: str) -> None:
    write("one.py", f"{kind} make(name='made'):\n    return Server(name)")
    assert getattr(loaded("one:make"), "name", None) == "made"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nowhere", "there is no module 'nowhere'"),
        ("package.nowhere", r"there is no module 'package'"),
        ("nowhere.py", "there is no file nowhere.py"),
        ("several", "has the servers first, second: name one, as in several:first"),
        ("several:third", "has no 'third'; it has first and second"),
        ("nothing", "has no server named mcp or server or app"),
        ("nothing:number", "nothing:number is a int, and no MCP server"),
        ("nothing:wants", "is a function that wants arguments"),
        ("nothing:makes_none", r"nothing:makes_none\(\) returned a NoneType"),
    ],
)
def test_what_is_missing_is_said(text: str, sentence: str) -> None:
    write("several.py", "first = Server()\nsecond = Server()")
    write("nothing.py", "number = 5\ndef wants(a): ...\ndef makes_none(): ...")
    with pytest.raises(SetupProblem, match=sentence):
        loaded(text)


def test_a_file_named_without_its_ending_is_guessed() -> None:
    write("folder/one.py", "mcp = Server()")
    with pytest.raises(SetupProblem, match=r"no module 'folder\.two'"):
        loaded("folder.two")


def test_a_module_that_raises_shows_its_own_traceback_alone() -> None:
    write("one.py", "def deep():\n    raise ValueError('no such city')\ndeep()")
    with pytest.raises(AuthorProblem) as caught:
        loaded("one")
    shown = tracebacks.author_traceback(caught.value.cause)
    assert shown.startswith("Traceback (most recent call last):\n")
    assert shown.endswith("ValueError: no such city\n")
    assert shown.count("  File ") == 2
    assert "one.py" in shown
    assert "mcpace/server" not in shown
    assert "importlib" not in shown


def test_a_missing_import_of_the_author_is_the_authors_traceback() -> None:
    write("one.py", "import package_that_is_missing")
    with pytest.raises(AuthorProblem) as caught:
        loaded("one")
    shown = tracebacks.author_traceback(caught.value.cause)
    assert "No module named 'package_that_is_missing'" in shown
    assert "Install mcpace in the environment that has 'package_that_is_missing'." in shown
    assert shown.count("  File ") == 1


def test_a_mistake_in_the_syntax_is_shown_at_its_place() -> None:
    write("one.py", "def broken(:\n    pass")
    with pytest.raises(AuthorProblem) as caught:
        loaded("one.py")
    shown = tracebacks.author_traceback(caught.value.cause)
    assert "def broken(:" in shown
    assert "mcpace/server" not in shown


def test_frames_of_ours_at_the_end_are_cut_too() -> None:
    write("one.py", "from mcpace.server.running import loader\nloader.parse('a:b:')")
    with pytest.raises(AuthorProblem) as caught:
        loaded("one")
    shown = tracebacks.author_traceback(caught.value.cause)
    assert shown.count("  File ") == 1
    assert "loader.parse('a:b:')" in shown
    assert "running/loader.py" not in shown


def test_the_cause_that_the_author_gave_is_shown() -> None:
    write("one.py", "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise RuntimeError('outer') from error")
    with pytest.raises(AuthorProblem) as caught:
        loaded("one")
    shown = tracebacks.author_traceback(caught.value.cause)
    assert "ZeroDivisionError" in shown
    assert "direct cause" in shown


def test_a_module_that_exits_is_a_problem_of_its_own() -> None:
    write("one.py", "raise SystemExit(0)")
    with pytest.raises(AuthorProblem) as caught:
        loaded("one")
    assert isinstance(caught.value.cause, SystemExit)
