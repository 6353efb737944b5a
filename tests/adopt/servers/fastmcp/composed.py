"""Servers within a server, and tools made from tools."""

from fastmcp import FastMCP
from fastmcp.tools import Tool
from fastmcp.tools.tool_transform import ArgTransform

weather = FastMCP("Weather")
mcp = FastMCP("Composed")


@weather.tool
def forecast(city: str) -> str:
    """Items to come"""
    return f"Rain in {city}"


@weather.resource("weather://now")
def now() -> str:
    return "Rain"


@weather.prompt
def dress(city: str) -> str:
    return f"What do I wear in {city}?"


@mcp.tool
def here(word: str) -> str:
    """Not mounted"""
    return word


@mcp.tool
def hidden(word: str) -> str:
    """Disabled further down"""
    return word


mcp.mount(weather, namespace="sky")
mcp.add_tool(
    Tool.from_tool(
        Tool.from_function(lambda text, count: text * count, name="repeat"),
        name="twice",
        transform_args={"count": ArgTransform(hide=True, default=2)},
    )
)
mcp.disable(names={"hidden"})
