"""Simple types, defaults, optional arguments, and JSON that came as a string."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from face import Icon, MCPServer, ToolAnnotations
from pydantic import Field

server = MCPServer("basic", instructions="Try it.")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@server.tool()
def add(a: int, b: int = 2) -> int:
    """Adds two numbers.

    Even negative ones.
    """
    return a + b


@server.tool()
def echo(text: str) -> str:
    return text


@server.tool(title="Half", description="Halves", structured_output=False)
def half(x: float) -> float:
    return x / 2


@server.tool(structured_output=False)
def plain(text: str) -> str:
    return text


@server.tool()
def nothing() -> None:
    return None


@server.tool()
def untyped(x, y=3):
    return {"x": x, "y": y}


@server.tool()
def flag(on: bool, maybe: bool | None = None) -> bool:
    return on and maybe is not False


@server.tool()
def optional(a: str | None = None, b: int | None = None, c: list[str] | None = None) -> dict[str, Any]:
    return {"a": a, "b": b, "c": c}


@server.tool()
def described(
    name: Annotated[str, Field(description="Who", min_length=2, max_length=8)],
    age: Annotated[int, Field(description="How old", ge=0, lt=150)] = 30,
    tags: list[str] = Field(default_factory=list, description="Labels"),  # noqa: B008
) -> str:
    return f"{name} {age} {tags}"


@server.tool()
def lists(numbers: list[int], pairs: list[tuple[int, str]], unique: set[str]) -> list[int]:
    return [*numbers, *(n for n, _ in pairs), len(unique)]


@server.tool()
def words(count: int) -> list[str]:
    return ["w"] * count


@server.tool()
def mapping(values: dict[str, int]) -> dict[str, int]:
    return {key: value * 2 for key, value in values.items()}


@server.tool()
def numbered(values: dict[int, str]) -> dict[int, str]:
    return values


@server.tool()
def choose(colour: Colour, level: Level = Level.LOW, mode: Literal["fast", "slow"] = "fast") -> Colour:
    assert level in Level and mode
    return colour


@server.tool()
def times(
    day: datetime.date, at: datetime.datetime, span: datetime.timedelta, clock: datetime.time | None = None
) -> datetime.datetime:
    return at + span if clock is None else datetime.datetime.combine(day, clock)


@server.tool()
def ids(key: uuid.UUID, price: decimal.Decimal, path: pathlib.Path, raw: bytes) -> dict[str, str]:
    return {"key": str(key), "price": str(price), "path": str(path), "raw": raw.decode()}


@server.tool()
def blob(size: int) -> bytes:
    return b"x" * size


@server.tool()
def either(value: int | str, dated: datetime.date | str = "x") -> int | str:
    return f"{value!r} {dated!r}" if isinstance(value, str) else value


@server.tool()
def anything(value: Any) -> Any:
    return value


@server.tool()
def sequence(items: Sequence[int]) -> Sequence[int]:
    return [item + 1 for item in items]


@server.tool()
def shadowed(copy: int, json: str = "j", model_dump: bool = False) -> str:
    return f"{copy} {json} {model_dump}"


@server.tool(
    name="named-tool",
    title="Named",
    description="With everything",
    annotations=ToolAnnotations(title="T", read_only_hint=True, idempotent_hint=False),
    icons=[Icon(src="https://example.com/i.png", mime_type="image/png", sizes=["48x48"])],
    meta={"vendor": {"x": 1}},
)
async def named(x: int) -> int:
    return x


@server.tool()
async def later(text: str, repeat: int = 1) -> str:
    return text * repeat


@server.tool()
def literal_null(x: Literal["null", "a"] = "a", y: str | None = None) -> str:
    return f"{x!r} {y!r}"


def call(name: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("tools/call", {"name": name, "arguments": arguments})


DIALOGUE = [
    ("tools/list", {}),
    call("add", a=1),
    call("add", a="1", b=-5),
    call("add", a="x"),
    call("add", b=1),
    call("add", a=1.5),
    call("add", a=1, extra=2),
    call("add", a=None),
    call("echo", text='héllo \n "quoted" \\ \u2028 😀'),
    call("echo", text='["not", "parsed"]'),
    call("echo", text=5),
    call("echo"),
    call("half", x=3),
    call("half", x=4),
    call("plain", text="p"),
    call("nothing"),
    ("tools/call", {"name": "nothing"}),
    call("untyped", x=1),
    call("untyped", x='{"a": 1}'),
    call("untyped", x="[1]", y="null"),
    call("flag", on=True),
    call("flag", on="true", maybe=False),
    call("flag", on="perhaps"),
    call("optional"),
    call("optional", a="x", b="5", c='["a", "b"]'),
    call("optional", a='["x"]'),
    call("optional", a="null", b="null", c="null"),
    call("described", name="Ada", age="36", tags='["x"]'),
    call("described", name="A", age=200),
    call("lists", numbers=[1, 2], pairs=[[1, "a"]], unique=["x", "x"]),
    call("lists", numbers="[1, 2]", pairs='[[1, "a"]]', unique='["x"]'),
    call("lists", numbers=[1, "b"], pairs=[[1]], unique="x"),
    call("words", count=3),
    call("words", count=0),
    call("mapping", values={"a": 1}),
    call("mapping", values='{"a": 1}'),
    call("numbered", values={"1": "a"}),
    call("choose", colour="red"),
    call("choose", colour="green", level=3, mode="medium"),
    call("choose", colour="blue", level=2, mode="slow"),
    call("times", day="2024-01-02", at="2024-01-02T03:04:05Z", span="PT1H"),
    call("times", day="2024-01-02", at="2024-01-02T03:04:05", span=60, clock="10:00"),
    call("times", day="x", at="y", span="z"),
    call("ids", key="12345678-1234-5678-1234-567812345678", price="1.50", path="/tmp/x", raw="abc"),
    call("ids", key="no", price="no", path=5, raw=5),
    call("ids", key="12345678-1234-5678-1234-567812345678", price=2.25, path="[1]", raw="[1]"),
    call("blob", size=3),
    call("either", value=5),
    call("either", value="5"),
    call("either", value="[5]"),
    call("either", value="x", dated="2024-01-02"),
    call("anything", value={"a": [1, None, 2.5]}),
    call("anything", value="text"),
    call("anything", value='{"parsed": true}'),
    call("anything", value=[1, "two", {"three": 3}]),
    call("sequence", items=[1, 2]),
    call("shadowed", copy=1),
    call("shadowed", copy="[1]", json="{}", model_dump=True),
    call("named-tool", x=1),
    call("later", text="ab", repeat=2),
    call("literal_null", x="null", y="null"),
    call("literal_null", x="a", y=" [1]"),
]
