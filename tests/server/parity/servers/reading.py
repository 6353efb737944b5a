"""Resources, templates, prompts, completion."""

from __future__ import annotations

import datetime
from typing import Any

from face import (
    Annotations,
    AssistantMessage,
    Completion,
    Context,
    EmbeddedResource,
    Icon,
    Image,
    MCPServer,
    Message,
    TextContent,
    TextResource,
    TextResourceContents,
    UserMessage,
)

server = MCPServer("reading", version="3.2.1", title="Reads", website_url="https://example.com")


@server.resource("note://today")
def today() -> str:
    """Today's date."""
    return "nothing"


@server.resource(
    "note://config",
    name="configuration",
    title="Configuration",
    description="All of it",
    mime_type="application/json",
    icons=[Icon(src="data:image/png;base64,AA==")],
    annotations=Annotations(audience=["assistant"], priority=1.0),
    meta={"k": "v"},
)
async def config() -> dict[str, Any]:
    return {"debug": True, "when": datetime.date(2024, 1, 2)}


@server.resource("note://bytes", mime_type="image/png")
def raw() -> bytes:
    return b"\x89PNG"


@server.resource("note://untyped-bytes")
def untyped_bytes():
    return b"abc"


@server.resource("note://list")
def items() -> list[int]:
    return [1, 2]


@server.resource("note://{year}/{title}")
def note(year: int, title: str) -> str:
    """A note."""
    return f"{title} of {year + 1}"


@server.resource("file:///{+path}", mime_type="text/markdown")
async def file(path: str, ctx: Context) -> str:
    assert ctx.request_id
    return f"path {path}"


@server.resource("log://{name}{?level,since}")
def log(name: str, level: str = "info", since: int = 0) -> dict[str, Any]:
    return {"name": name, "level": level, "since": since}


@server.resource("tree://top{/parts*}")
def tree(parts: list[str]) -> list[str]:
    return parts


@server.resource("blob://{n}", mime_type="application/octet-stream", meta={"a": 1})
def blob(n: int) -> bytes:
    return b"x" * n


server.add_resource(TextResource(uri="text://fixed", name="fixed", text="words", description="A text"))


@server.prompt()
def simple(topic: str, tone: str = "plain") -> str:
    """Writes about something."""
    return f"Write about {topic} in a {tone} tone."


@server.prompt(name="chat", title="Chat", description="A talk", icons=[Icon(src="https://example.com/c.png")])
async def chat(count: int) -> list[Message]:
    return [UserMessage(f"{count + 1}?"), AssistantMessage("Yes."), UserMessage(TextContent(type="text", text="Good."))]


@server.prompt()
def dictionaries() -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "as text"},
        {"role": "assistant", "content": {"type": "text", "text": "as a block"}},
    ]


@server.prompt()
def contents() -> list[Any]:
    contents = TextResourceContents(uri="note://1", text="inside")
    return [Image(data=b"png"), EmbeddedResource(type="resource", resource=contents), "text"]


@server.prompt()
def nothing_needed() -> str:
    return "here"


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion | None:
    if ref.type == "ref/prompt":
        if argument.name == "tone":
            return Completion(values=[tone for tone in ("plain", "poetic") if tone.startswith(argument.value)])
        return None
    known = (context.arguments or {}) if context else {}
    if argument.value == "!":
        raise RuntimeError("secret")
    return Completion(values=[f"{argument.value}-{known.get('year', '?')}"], total=10, has_more=True)


def read(uri: str) -> tuple[str, dict[str, Any]]:
    return ("resources/read", {"uri": uri})


def prompt(name: str, /, **arguments: str) -> tuple[str, dict[str, Any]]:
    return ("prompts/get", {"name": name, "arguments": arguments})


def ask(ref: dict[str, Any], name: str, value: str, **known: str) -> tuple[str, dict[str, Any]]:
    params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": value}}
    if known:
        params["context"] = {"arguments": known}
    return ("completion/complete", params)


OF_PROMPT = {"type": "ref/prompt", "name": "simple"}
OF_TEMPLATE = {"type": "ref/resource", "uri": "note://{year}/{title}"}

DIALOGUE = [
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    read("note://today"),
    read("note://config"),
    read("note://bytes"),
    read("note://untyped-bytes"),
    read("note://list"),
    read("note://2023/summer%20rain"),
    read("note://2023/"),
    read("note://2023/a%2Fb"),
    read("note://2023/..%2F..%2Fetc"),
    read("note://2023/%2Fetc"),
    read("note://twenty/x"),
    read("file:///docs/read me.md"),
    read("file:///docs/a/b.md"),
    read("file:///../etc/passwd"),
    read("log://web"),
    read("log://web?since=5&level=warn"),
    read("log://web?other=5"),
    read("log://web?since=x"),
    read("tree://top/a/b%20c"),
    read("tree://top"),
    read("blob://3"),
    read("text://fixed"),
    read("nowhere://x"),
    prompt("simple", topic="bees"),
    prompt("simple", topic="bees", tone="grim"),
    prompt("simple"),
    prompt("simple", topic="bees", other="x"),
    prompt("chat", count="3"),
    prompt("dictionaries"),
    prompt("contents"),
    prompt("nothing_needed"),
    ("prompts/get", {"name": "nothing_needed"}),
    ask(OF_PROMPT, "tone", "po"),
    ask(OF_PROMPT, "topic", "x"),
    ask(OF_TEMPLATE, "title", "a"),
    ask(OF_TEMPLATE, "title", "a", year="2024"),
    ask(OF_TEMPLATE, "title", "!"),
]
