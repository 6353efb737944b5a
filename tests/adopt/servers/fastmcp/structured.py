"""Arguments and results of every kind that the documentation of FastMCP has."""

import asyncio
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

mcp = FastMCP("Weather Service")


class WeatherData(BaseModel):
    """Weather information structure."""

    temperature: float = Field(description="Temperature in Celsius")
    humidity: float = Field(description="Humidity percentage")
    condition: str
    wind_speed: float | None = None


class LocationInfo(TypedDict):
    latitude: float
    longitude: float
    name: str


@dataclass
class UserProfile:
    name: str
    age: int
    email: str | None = None


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Untyped:
    def __init__(self, value):
        self.value = value


@mcp.tool()
def get_weather(city: str) -> WeatherData:
    """Get weather for a city - returns structured data."""
    return WeatherData(temperature=22.5, humidity=45.0, condition=f"sunny in {city}", wind_speed=5.2)


@mcp.tool()
def get_location(address: str) -> LocationInfo:
    """Get location coordinates"""
    return LocationInfo(latitude=51.5074, longitude=-0.1278, name=address)


@mcp.tool()
def get_statistics(data_type: str) -> dict[str, float]:
    """Get various statistics"""
    return {"mean": 42.5, "median": 40.0, "std_dev": 5.2}


@mcp.tool()
def get_user(user_id: str) -> UserProfile:
    """Get user profile - returns structured data"""
    return UserProfile(name="Alice", age=30, email=None)


@mcp.tool()
def get_config() -> Untyped:
    """This returns unstructured output - no schema generated"""
    return Untyped("value1")


@mcp.tool()
def list_cities() -> list[str]:
    """Get a list of cities"""
    return ["London", "Paris", "Tōkyō"]


@mcp.tool()
def get_temperature(city: str) -> float:
    """Get temperature as a simple float"""
    return 22.5


@mcp.tool()
def nothing() -> None:
    """Returns nothing"""


@mcp.tool()
def maybe(give: bool) -> str | None:
    return "given" if give else None


@mcp.tool()
def untyped(value):
    """No annotation at all"""
    return {"value": value, "again": [value, 1.5, None, True]}


@mcp.tool()
def tree(node: Node) -> Node:
    """Recursive in and out"""
    return node


@mcp.tool()
def every_type(
    text: str,
    whole: int,
    real: float = 1.5,
    yes: bool = True,
    day: date = date(2026, 1, 2),
    moment: datetime | None = None,
    number: Decimal = Decimal("1.10"),
    identity: UUID | None = None,
    colour: Colour = Colour.RED,
    choice: Literal["a", "b"] = "a",
    items: list[int] | None = None,
    pairs: dict[str, int] | None = None,
    location: LocationInfo | None = None,
    user: UserProfile | None = None,
    several: tuple[int, str] | None = None,
    unique: set[int] | None = None,
    mixed: int | str = 0,
    anything: Any = None,
) -> str:
    """One of each"""
    got = (text, whole, real, yes, day, moment, number, identity, colour, choice, items, pairs, location, user)
    return repr((*got, several, sorted(unique or ()), mixed, anything))


@mcp.tool(
    name="bounded-search", title="Search", annotations={"readOnlyHint": True, "openWorldHint": False}, tags={"find"}
)
def search(
    query: Annotated[str, Field(description="What to look for", min_length=2, max_length=20)],
    tags: Annotated[list[str], Field(max_length=3, description="All of them")],
    limit: Annotated[int, Field(ge=1, le=100)] = 10,
) -> list[dict[str, Any]]:
    """Looks for things"""
    return [{"query": query, "limit": limit, "tags": tags}]


@mcp.tool(meta={"team": "weather", "level": 3})
def fails(how: str) -> str:
    """Raises"""
    if how == "told":
        raise ToolError("the words for the model")
    if how == "key":
        raise KeyError("secret")
    raise ValueError("a value of the server's own")


@mcp.tool()
def wrong_result(how: str) -> int:
    """Does not return what it says"""
    return how  # type: ignore[return-value]


@mcp.tool()
def wrong_text() -> str:
    """Does not return text"""
    return 7  # type: ignore[return-value]


@mcp.tool(timeout=5)
def hurried(text: str) -> str:
    """In time"""
    return text


@mcp.tool(timeout=0.05)
async def too_slow() -> str:
    """Never in time"""
    await asyncio.Event().wait()
    return "late"


@mcp.tool(output_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
def own_schema(n: int) -> dict[str, int]:
    """With a schema of its own"""
    return {"n": n}


@mcp.tool(run_in_thread=False)
def inline(n: int) -> int:
    """On the loop's thread"""
    return n + 1


@mcp.tool()
def generates(n: int):
    """Yields"""
    yield from range(n)


@mcp.tool()
def surrogate() -> str:
    """Text that is no UTF-8"""
    return "a\ud800b"


@mcp.tool()
async def later(a: int, b: int = 2) -> dict[str, int]:
    """From a coroutine"""
    return {"sum": a + b}


@mcp.tool()
def shadows(schema: str, copy: int = 1, json: str = "x") -> str:
    """Names that a pydantic model has too"""
    return f"{schema} {copy} {json}"
