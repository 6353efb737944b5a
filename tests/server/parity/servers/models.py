"""Pydantic models, dataclasses, typed dictionaries, nested and recursive, as arguments and as results."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

from face import CallToolResult, MCPServer, TextContent
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict as ExtendedTypedDict

server = MCPServer("models")
T = TypeVar("T")


class Point(BaseModel):
    """A place."""

    x: int
    y: int = Field(default=0, description="How high")


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    first_name: str
    birth_day: datetime.date | None = None


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("must be even")
        return number


class Area(BaseModel):
    width: float
    height: float

    @computed_field
    @property
    def area(self) -> float:
        return self.width * self.height


class Cat(BaseModel):
    kind: str = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: str = "dog"
    tricks: list[str] = []


class Box(BaseModel, Generic[T]):
    content: T


@dataclasses.dataclass
class Person:
    name: str
    age: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)


class Movie(TypedDict):
    title: str
    year: int


class Song(ExtendedTypedDict):
    """A song."""

    title: str
    length: NotRequired[int]


class Plain:
    name: str
    size: int = 3

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "Plain()"


class Bare:
    def __init__(self) -> None:
        self.x = 1

    def __repr__(self) -> str:
        return "Bare()"


class Pair(NamedTuple):
    left: int
    right: str


class Sub(Point):
    z: int = 7


@server.tool()
def move(point: Point, by: Point | None = None) -> Point:
    return Point(x=point.x + (by.x if by else 1), y=point.y)


@server.tool()
def subclass() -> Point:
    return Sub(x=1)


@server.tool()
def as_dict() -> Point:
    return {"x": "4", "y": 2}  # type: ignore[return-value]


@server.tool()
def wrong() -> Point:
    return {"x": "no"}  # type: ignore[return-value]


@server.tool()
def tree(node: Node) -> Node:
    return node


@server.tool()
def depth(node: Node) -> int:
    return 1 + max((depth(child) for child in node.children), default=0)


@server.tool()
def camel(person: Camel) -> Camel:
    return person


@server.tool()
def even(value: Even) -> Even:
    return value


@server.tool()
def area(width: float, height: float) -> Area:
    return Area(width=width, height=height)


@server.tool()
def pet(animal: Cat | Dog) -> Cat | Dog:
    return animal


@server.tool()
def boxed(value: int) -> Box[int]:
    return Box[int](content=value)


@server.tool()
def greet(person: Person) -> Person:
    return dataclasses.replace(person, age=person.age + 1)


@server.tool()
def movie(entry: Song) -> Movie:
    return {"title": entry["title"], "year": entry.get("length", 1999)}


@server.tool()
def song() -> Song:
    return {"title": "x"}


@server.tool()
def klass() -> Plain:
    return Plain("p")


@server.tool()
def bare() -> Bare:
    return Bare()


@server.tool()
def pair() -> Pair:
    return Pair(1, "r")


@server.tool()
def many(count: int) -> list[Point]:
    return [Point(x=number) for number in range(count)]


@server.tool()
def by_name() -> dict[str, Point]:
    return {"a": Point(x=1), "b": Point(x=2)}


@server.tool()
def maybe(there: bool) -> Point | None:
    return Point(x=1) if there else None


@server.tool()
def annotated() -> Annotated[dict[str, int], Field(description="Counts")]:
    return {"a": 1}


@server.tool()
def tuples() -> tuple[int, str]:
    return (1, "x")


@server.tool()
def own_result() -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text="own")], structured_content={"free": True}, _meta={"m": 1}
    )


@server.tool()
def checked_result(good: bool) -> Annotated[CallToolResult, Point]:
    structured = {"x": 1, "y": 2} if good else {"x": "bad"}
    return CallToolResult(content=[TextContent(type="text", text="checked")], structured_content=structured)


@server.tool()
def failed_result() -> Annotated[CallToolResult, Point]:
    return CallToolResult(content=[TextContent(type="text", text="no")], is_error=True)


@server.tool(structured_output=False)
def unstructured() -> Point:
    return Point(x=1)


@server.tool()
def own_result_in_place_of_data() -> Point:
    return CallToolResult(content=[TextContent(type="text", text="no")], is_error=True)  # type: ignore[return-value]


@server.tool()
def nothing_in_place_of_data() -> Point:
    return None  # type: ignore[return-value]


def call(name: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("tools/call", {"name": name, "arguments": arguments})


DIALOGUE = [
    ("tools/list", {}),
    call("move", point={"x": 1}),
    call("move", point='{"x": 1, "y": 5}', by={"x": 3}),
    call("move", point={"x": "a"}),
    call("move", point={"x": 1}, by="null"),
    call("subclass"),
    call("as_dict"),
    call("wrong"),
    call("tree", node={"value": 1, "children": [{"value": 2}, {"value": 3, "children": [{"value": 4}]}]}),
    call("tree", node={"value": 1, "children": [{"value": "x"}]}),
    call("depth", node={"value": 1, "children": [{"value": 2}]}),
    call("camel", person={"firstName": "Ada", "birthDay": "1815-12-10"}),
    call("camel", person={"first_name": "Ada"}),
    call("even", value={"number": 2}),
    call("even", value={"number": 3}),
    call("area", width=2, height=3.5),
    call("pet", animal={"kind": "dog", "tricks": ["sit"]}),
    call("pet", animal={"lives": 8}),
    call("boxed", value=4),
    call("greet", person={"name": "Ada"}),
    call("greet", person={"age": 3}),
    call("movie", entry={"title": "x", "length": 5}),
    call("movie", entry={}),
    call("song"),
    call("klass"),
    call("bare"),
    call("pair"),
    call("many", count=2),
    call("by_name"),
    call("maybe", there=True),
    call("maybe", there=False),
    call("annotated"),
    call("tuples"),
    call("own_result"),
    call("checked_result", good=True),
    call("checked_result", good=False),
    call("failed_result"),
    call("unstructured"),
    call("own_result_in_place_of_data"),
    call("nothing_in_place_of_data"),
]
