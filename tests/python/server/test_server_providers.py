"""Providers: the parameters that they fill in, their order, generators, and refused combinations."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Protocol

import pytest
from pydantic import Field

from mcpace import Context, InvalidSignature, MCPServer, RegistrationError, Resolve, Tool, ToolError
from mcpace.server.core.handlers import tool_plan
from support.python_server import Client, served


class User:
    def __init__(self, name: str) -> None:
        self.name = name


class Session:
    pass


def called(server: MCPServer[Any], tool: str, **arguments: Any) -> Any:
    result: Any = asyncio.run(server.call_tool(tool, arguments))
    return result.structured_content["result"]


def schema_of(server: MCPServer[Any], tool: str) -> dict[str, Any]:
    return server.registry.tools[tool].parameters


def ada() -> User:
    return User("ada")


async def grace() -> User:
    return User("grace")


@pytest.mark.parametrize(("provider", "name"), [(ada, "ada"), (grace, "grace"), (lambda: User("joan"), "joan")])
def test_a_parameter_of_a_provider_s_name_is_filled_in_and_not_the_clients(provider: Any, name: str) -> None:
    server = MCPServer(providers={"user": provider})

    @server.tool()
    def greet(text: str, user: User) -> str:
        """Greets."""
        return f"{text} {user.name}"

    assert called(server, "greet", text="hello") == f"hello {name}"
    assert schema_of(server, "greet")["properties"].keys() == {"text"}
    # A client's value for this name is ignored.
    assert called(server, "greet", text="hello", user="mallory") == f"hello {name}"
    [tool] = server.registry.tools.values()
    assert (tool.name, tool.description) == ("greet", "Greets.")


def test_a_function_without_such_parameters_is_handed_over_bare() -> None:
    server = MCPServer(providers={"user": ada})

    def add(a: int) -> int:
        return a

    server.add_tool(add)
    assert tool_plan(server.__mcpace_core__, server.registry.tools["add"]).function is add


@pytest.mark.parametrize("provider", [ada, grace], ids=["sync", "async"])
def test_a_plain_function_of_plain_providers_stays_one(provider: Any) -> None:
    server = MCPServer(providers={"user": provider})

    @server.tool()
    def greet(user: User) -> str:
        return user.name

    plan = tool_plan(server.__mcpace_core__, server.registry.tools["greet"])
    assert plan.kind == ("sync" if provider is ada else "async")


def test_providers_take_each_other_and_the_context_and_run_once() -> None:
    runs: list[str] = []

    def settings() -> dict[str, str]:
        runs.append("settings")
        return {"region": "north"}

    def user(ctx: Context, settings: dict[str, str]) -> User:
        runs.append("user")
        assert isinstance(ctx, Context)
        return User(settings["region"])

    async def greeting(user: User, settings: dict[str, str], polite: bool = True) -> str:
        runs.append("greeting")
        return f"{'dear ' * polite}{user.name} of {settings['region']}"

    server = MCPServer(providers={"greeting": greeting, "user": user, "settings": settings})

    @server.tool()
    async def greet(times: int, greeting: str, ctx: Context, user: User) -> str:
        assert isinstance(ctx, Context)
        return " ".join([greeting] * times) + user.name

    assert called(server, "greet", times=2) == "dear north of north dear north of northnorth"
    assert runs == ["settings", "user", "greeting"]
    assert schema_of(server, "greet")["properties"].keys() == {"times"}


@pytest.mark.parametrize("is_async", [False, True])
def test_generators_go_on_when_the_call_is_over_the_last_first(is_async: bool) -> None:
    log: list[str] = []

    def outer() -> Iterator[int]:
        log.append("outer begins")
        yield 1
        log.append("outer ends")

    async def inner(outer: int) -> AsyncIterator[int]:
        log.append("inner begins")
        yield outer + 1
        log.append("inner ends")

    def plain_inner(outer: int) -> Iterator[int]:
        log.append("inner begins")
        yield outer + 1
        log.append("inner ends")

    server = MCPServer(providers={"inner": inner if is_async else plain_inner, "outer": outer})

    @server.tool()
    def use(inner: int) -> int:
        log.append("used")
        return inner

    assert called(server, "use") == 2
    assert log == ["outer begins", "inner begins", "used", "inner ends", "outer ends"]
    assert tool_plan(server.__mcpace_core__, server.registry.tools["use"]).kind == ("async" if is_async else "sync")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_generator_sees_what_the_call_raised(is_async: bool) -> None:
    seen: list[str] = []

    def transaction() -> Iterator[Session]:
        try:
            yield Session()
            seen.append("committed")
        except ToolError as error:
            seen.append(f"rolled back: {error}")
            raise

    server = MCPServer(providers={"transaction": transaction})

    def fail(transaction: Session) -> str:
        raise ToolError("no")

    async def fail_later(transaction: Session) -> str:
        raise ToolError("no")

    server.add_tool(fail_later if is_async else fail, name="fail")
    with pytest.raises(ToolError, match="Error executing tool fail: no"):
        called(server, "fail")
    assert seen == ["rolled back: no"]


def test_a_plain_tool_and_its_generators_run_on_one_thread() -> None:
    threads: list[int] = []

    def session() -> Iterator[Session]:
        threads.append(threading.get_ident())
        yield Session()
        threads.append(threading.get_ident())

    server = MCPServer(providers={"session": session})

    @server.tool()
    def use(session: Session) -> str:
        threads.append(threading.get_ident())
        return "used"

    assert called(server, "use") == "used"
    assert len(threads) == 3
    assert len(set(threads)) == 1


def test_resources_templates_and_prompts_have_them_too() -> None:
    def author(ctx: Context) -> User:
        return User(type(ctx).__name__)

    server = MCPServer(providers={"user": ada, "author": author})

    @server.resource("user://me")
    def me(user: User) -> str:
        return user.name

    @server.resource("note://{number}")
    def note(number: int, author: User) -> str:
        return f"{number} by {author.name}"

    @server.prompt()
    def review(code: str, user: User, author: User) -> str:
        return f"{code} for {user.name} by {author.name}"

    async def read(uri: str) -> Any:
        [contents] = await server.read_resource(uri)  # type: ignore[misc]
        return contents.content

    assert asyncio.run(read("user://me")) == "ada"
    assert asyncio.run(read("note://3")) == "3 by Context"
    prompt: Any = asyncio.run(server.get_prompt("review", {"code": "x"}))
    assert prompt.messages[0].content.text == "x for ada by Context"
    assert [one.name for one in server.registry.prompts["review"].arguments] == ["code"]
    with served(server) as port:
        client = Client(port)
        reply = client.request("resources/read", {"uri": "note://4"})
        assert reply["result"]["contents"][0]["text"] == "4 by Context"


def test_over_the_wire_they_are_filled_in_and_what_is_sent_under_their_name_is_not_taken() -> None:
    def user(ctx: Context) -> User:
        return User(str(ctx.request_id))

    async def session() -> AsyncIterator[Session]:
        yield Session()

    server = MCPServer(providers={"user": user, "session": session})

    @server.tool()
    def quick(user: User) -> str:
        return user.name

    @server.tool()
    async def slow(user: User, session: Session) -> str:
        return f"{user.name} {type(session).__name__}"

    with served(server) as port:
        client = Client(port)
        assert client.text("quick", user="mallory") == "1"
        assert client.text("slow") == "1 Session"


def length(text: str) -> int:
    return len(text)


def test_resolvers_and_providers_go_together() -> None:
    server = MCPServer(providers={"user": ada})

    @server.tool()
    def tell(text: str, size: Annotated[int, Resolve(length)], user: User) -> str:
        return f"{user.name}: {size}"

    assert called(server, "tell", text="four") == "ada: 4"


def test_a_tool_that_was_made_without_the_server_keeps_its_arguments() -> None:
    def greet(user: str) -> str:
        return user

    server = MCPServer(tools=[Tool.from_function(greet)], providers={"user": lambda: "ada"})
    assert called(server, "greet", user="grace") == "grace"


class Named(Protocol):
    name: str


def number() -> int:
    return 1


def untyped(): ...


def generator() -> Iterator[User]:
    yield User("x")


@pytest.mark.parametrize(
    ("provider", "annotation", "is_good"),
    [
        (ada, User, True),
        (ada, object, True),
        (ada, Any, True),
        (ada, User | None, True),
        (ada, Annotated[User, Field(description="who")], True),
        (ada, Named, True),
        (ada, str, False),
        (ada, str | None, False),
        (grace, User, True),
        (grace, int, False),
        (number, bool, True),
        (number, str, False),
        (generator, User, True),
        (generator, Session, False),
        (User, User, True),
        (untyped, str, True),
    ],
)
def test_types_are_compared_when_a_tool_is_registered(provider: Any, annotation: Any, is_good: bool) -> None:
    def given() -> str:
        return "x"

    functions: dict[str, Callable[..., Any]] = {"value": provider}
    if provider is User:
        functions["name"] = given
    server = MCPServer(providers=functions)

    def tool(value): ...

    tool.__annotations__["value"] = annotation
    if is_good:
        server.add_tool(tool)
    else:
        with pytest.raises(InvalidSignature, match=r"Parameter 'value' of 'tool' is annotated .* gives"):
            server.add_tool(tool)


def static(user: User) -> str:
    return user.name


def one(two: int) -> int:
    return two


def two(one: int) -> int:
    return one


def wants(nobody: int) -> int:
    return nobody


@pytest.mark.parametrize(
    ("providers", "said"),
    [
        ({"one": one, "two": two}, "in a circle: one → two → one"),
        ({"x": wants}, "provider 'x' has the parameter 'nobody', which nobody fills in"),
        ([ada], "providers are functions by name"),
        ({"x": 5}, "provider 'x': 5 is no function"),
        ({"not a name": ada}, "provider 'not a name': its name is a parameter's"),
        ({"_x": ada}, "provider '_x': its name is a parameter's"),
    ],
)
def test_providers_that_can_t_be_are_refused_when_the_server_is_made(providers: Any, said: str) -> None:
    with pytest.raises(RegistrationError, match=said):
        MCPServer(providers=providers)


def test_a_resource_without_variables_has_no_context_for_its_providers() -> None:
    def user(ctx: Context) -> User: ...

    server = MCPServer(providers={"user": user})
    with pytest.raises(RegistrationError, match="one of its providers takes one"):
        server.resource("user://me")(static)
