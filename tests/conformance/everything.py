"""The conformance suite's 'everything' server once more, with the Python face: the same names and command line.

everything.py http [--response auto|json|sse] [--stateless]
everything.py stdio
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import dataclasses
import json
from typing import Annotated, Any

from pydantic import Field

from mcpace import (
    Audio,
    Context,
    Image,
    MCPError,
    MCPServer,
    TaskConfig,
    TextResource,
    Tool,
    ToolError,
    UserMessage,
    _core,
)
from mcpace.server.running.lifespans import RunningLifespan
from mcpace.types import (
    INTERNAL_ERROR,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
PAUSE_S = 0.02
"""Between two messages, so that a client sees them come one by one."""

server = MCPServer("everything", version="1.0.0", title="Everything")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["http", "stdio"])
    parser.add_argument("--response", choices=["auto", "json", "sse"], default="auto")
    parser.add_argument("--stateless", action="store_true")
    given = parser.parse_args()
    prepared = server.__mcpace__()
    with RunningLifespan(prepared):
        if given.transport == "stdio":
            prepared.core.serve_stdio()
            return
        options = _core.HttpOptions(port=0, response=given.response, stateless=given.stateless)
        running = prepared.core.serve_http(options)
        print(f"listening on http://{running.address}/mcp", flush=True)
        running.wait()


# Content -------------------------------------------------------------------------------------------------------------


@server.tool()
def echo(text: str) -> str:
    """Says what you say"""
    return text


@server.tool()
def greet(name: str) -> str:
    """Greets somebody"""
    return f"Hello, {name}!"


@server.tool(structured_output=False)
def test_simple_text() -> str:
    """Tests simple text content response"""
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> Image:
    """Tests image content response"""
    return Image(data=PIXEL)


@server.tool()
def test_audio_content() -> Audio:
    """Tests audio content response"""
    return Audio(data=SILENCE)


@server.tool()
def test_embedded_resource() -> EmbeddedResource:
    """Tests embedded resource content response"""
    return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")


@server.tool()
def test_multiple_content_types() -> list[str | Image | EmbeddedResource]:
    """Tests response with multiple content types (text, image, resource)"""
    text = json.dumps({"test": "data", "value": 123})
    resource = embedded("test://mixed-content-resource", "application/json", text)
    return ["Multiple content types test:", Image(data=PIXEL), resource]


@server.tool()
def test_error_handling() -> None:
    """Tests error response handling"""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool()
def test_x_mcp_header(
    region: Annotated[str, Field(description="Where to run", json_schema_extra={"x-mcp-header": "Region"})],
    priority: Annotated[int, Field(description="How soon", json_schema_extra={"x-mcp-header": "Priority"})] = 0,
) -> str:
    """Tests arguments that are mirrored in headers"""
    return f"region: {region}, priority: {priority}"


def json_schema_2020_12_tool(name: str = "", address: Any = None, contactMethod: str = "", phone: str = "") -> str:
    """Tool with JSON Schema 2020-12 features"""
    return f"JSON Schema 2020-12 tool called with: {name} {address} {contactMethod} {phone}"


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        },
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
described = Tool.from_function(json_schema_2020_12_tool)
server.registry.add_tool(
    dataclasses.replace(described, arguments=dataclasses.replace(described.arguments, schema=SCHEMA))
)


# Before the result ---------------------------------------------------------------------------------------------------


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Tests tool that emits log messages during execution"""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await asyncio.sleep(PAUSE_S)
    return "Tool with logging executed successfully"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Tests tool that reports progress notifications"""
    for step in (0, 50, 100):
        await ctx.report_progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(PAUSE_S)
    return "Progress was told"


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Tests a stream that the server lets go and the client takes up again (SEP-1699)"""
    await ctx.close_sse_stream()
    await asyncio.sleep(PAUSE_S)
    return "Reconnection test completed successfully."


@server.tool()
async def test_streaming_elicitation(ctx: Context) -> str:
    """Tests that nothing but notifications and the reply is on a reply's stream"""
    await ctx.report_progress(50, 100)
    await asyncio.sleep(PAUSE_S)
    return "Streaming complete"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Tests that log messages come only where the request asks for them"""
    await ctx.info("Diagnostic trace logging activated", logger_name="everything")
    return "Logging evaluated"


# Questions, the same in every revision -------------------------------------------------------------------------------


@server.tool()
async def test_sampling(
    prompt: Annotated[str, Field(description="The prompt to send to the LLM")], ctx: Context
) -> str:
    """Tests server-initiated sampling (LLM completion request)"""
    answer = await ctx.session.create_message([user(prompt)], max_tokens=100)
    return f"LLM response: {text_of(answer)}"


@server.tool()
async def test_elicitation(message: Annotated[str, Field(description="The message to show")], ctx: Context) -> str:
    """Tests server-initiated elicitation (user input request)"""
    properties = {"response": {"type": "string", "description": "User's response"}}
    return f"User response: {told(await ctx.session.elicit_form(message, form(properties, 'response')))}"


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Tests elicitation with default values per SEP-1034"""
    properties = {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    }
    message = "Please review and update the form fields with defaults"
    return f"Elicitation completed: {told(await ctx.session.elicit_form(message, form(properties)))}"


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Tests elicitation with enum schema improvements per SEP-1330"""
    titles = {"First": "value1", "Second": "value2", "Third": "value3"}
    properties = {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [{"const": value, "title": f"{title} Option"} for title, value in titles.items()],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"anyOf": [{"const": value, "title": f"{title} Choice"} for title, value in titles.items()]},
        },
    }
    message = "Please select options from the enum fields"
    return f"Elicitation completed: {told(await ctx.session.elicit_form(message, form(properties)))}"


# Questions in rounds, with keys and states that the suite dictates ---------------------------------------------------


@server.tool()
async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    """MRTR: returns InputRequiredResult with elicitation request"""
    name = filled(ctx, "user_name", "name")
    return f"Hello, {name}!" if name else asking(user_name=text_form("What is your name?", "name"))


@server.tool()
async def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
    """MRTR: returns InputRequiredResult with sampling request"""
    answer = answered(ctx, "sample_request", CreateMessageResult)
    if answer is not None:
        return f"Sampling result: {text_of(answer)}"
    return asking(sample_request=question("What is the capital of France?", 100))


@server.tool()
async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
    """MRTR: returns InputRequiredResult with roots/list request"""
    answer = answered(ctx, "roots_request", ListRootsResult)
    return asking(roots_request=ListRootsRequest()) if answer is None else f"Found {len(answer.roots)} root(s)"


@server.tool()
async def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
    """MRTR: returns InputRequiredResult with requestState"""
    return confirmed(ctx, "state-ok: requestState validated")


@server.tool()
async def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
    """MRTR: signed requestState integrity test"""
    return confirmed(ctx, "integrity-ok: state verified")


@server.tool()
async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
    """MRTR: returns InputRequiredResult with multiple input requests"""
    name = filled(ctx, "user_name", "name")
    greeting = answered(ctx, "greeting", CreateMessageResult)
    roots = answered(ctx, "client_roots", ListRootsResult)
    if name and greeting and roots:
        return f"Name: {name}; Greeting: {text_of(greeting)}; Roots: {len(roots.roots)}"
    return asking(
        "multiple-inputs",
        user_name=text_form("What is your name?", "name"),
        greeting=question("Generate a greeting", 50),
        client_roots=ListRootsRequest(),
    )


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
    """MRTR: multi-round InputRequiredResult workflow"""
    state = json.loads(ctx.request_state or "{}")
    color = filled(ctx, "step2", "color")
    if "name" in state and color:
        return f"Multi-round complete for {state['name']} who likes {color}"
    name = filled(ctx, "step1", "name")
    if name:
        return asking(json.dumps({"name": name}), step2=text_form("Step 2: What is your favorite color?", "color"))
    return asking("{}", step1=text_form("Step 1: What is your name?", "name"))


@server.tool()
async def test_input_required_result_capabilities(ctx: Context) -> str | InputRequiredResult:
    """MRTR: respects client capabilities in inputRequests"""
    if filled(ctx, "elicit_input", "value") or answered(ctx, "sample_input", CreateMessageResult):
        return "capabilities-ok"
    able, questions = ctx.client_capabilities, {}
    if able and able.elicitation:
        questions["elicit_input"] = text_form("Elicitation input", "value")
    if able and able.sampling:
        questions["sample_input"] = question("Sample request", 50)
    return asking("capabilities", **questions) if questions else "No supported capabilities declared"


@server.tool()
async def test_missing_capability(ctx: Context) -> str:
    """Test tool requiring sampling"""
    able = ctx.client_capabilities
    if able is None or able.sampling is None:
        required = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Client did not declare sampling", required)
    return "Success"


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """MRTR: prompt that requires elicitation input"""
    text = filled(ctx, "user_context", "context")
    if text:
        return f"Prompt with context: {text}"
    return asking(user_context=text_form("What context should the prompt use?", "context"))


# Tools that run as tasks; for clients that take no tasks they are calls like any other ------------------------------


@server.tool(task=True)
async def slow_compute(
    seconds: Annotated[float, Field(description="How long it takes.")],
    label: Annotated[str, Field(description="What to call it.")] = "it",
) -> str:
    """Takes as long as it is told to"""
    await asyncio.sleep(seconds)
    return f"{label} computed for {seconds} s"


@server.tool(task=TaskConfig(mode="required"))
async def failing_job() -> str:
    """Fails, as a tool does; a task or nothing"""
    await asyncio.sleep(0.1)
    raise ToolError("the job failed")


@server.tool(task=True)
async def protocol_error_job() -> str:
    """Fails, as a protocol does"""
    raise MCPError(INTERNAL_ERROR, "the job broke down")


@server.tool(task=True)
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Asks before it would delete"""
    return f"{filename} {'deleted' if await confirms(ctx, f'Delete {filename}?') else 'kept'}"


@server.tool(task=True)
async def multi_input(ctx: Context) -> str:
    """Asks two things at once"""
    answers = await asyncio.gather(confirms(ctx, "First?"), confirms(ctx, "Second?"))
    return f"{sum(answers)} of 2 accepted"


@server.tool(task=TaskConfig(mode="on-demand"))
async def test_tool_with_task(ctx: Context) -> str:
    """Asks, then goes on as a task"""
    answer = await ctx.session.elicit_form("What is your name?", form({"name": {"type": "string"}}, "name"))
    if answer.action != "accept" or answer.content is None:
        raise ToolError("nobody said a name")
    await ctx.begin_task()
    await asyncio.sleep(0.1)
    return f"Done for {answer.content['name']}"


# Changes, resources, prompts -----------------------------------------------------------------------------------------


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Tells that the list of tools changed"""
    await ctx.notify_tools_changed()
    return "Change was told"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Tells that the list of prompts changed"""
    await ctx.notify_prompts_changed()
    return "Change was told"


@server.tool()
async def test_trigger_resource_change(ctx: Context) -> str:
    """Tells that the watched resource changed"""
    await ctx.notify_resource_updated("test://watched-resource")
    return "Change was told"


server.add_resource(
    TextResource(
        uri="test://static-text",
        name="static-text",
        title="Static Text Resource",
        description="A static text resource for testing",
        text="This is the content of the static text resource.",
    )
)
server.add_resource(
    TextResource(
        uri="test://watched-resource",
        name="watched-resource",
        title="Watched Resource",
        description="A resource to subscribe to",
        text="Watched resource content",
    )
)


@server.resource("test://static-binary", name="static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A static binary resource (image) for testing"""
    return PIXEL


@server.resource("test://template/{id}/data", name="template", mime_type="application/json")
def template(id: str) -> dict[str, Any]:
    """A resource template with parameter substitution"""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@server.prompt(title="Simple Test Prompt")
def test_simple_prompt() -> str:
    """A simple prompt without arguments"""
    return "This is a simple prompt for testing."


@server.prompt(title="Prompt With Arguments")
def test_prompt_with_arguments(
    arg1: Annotated[str, Field(description="First test argument")],
    arg2: Annotated[str, Field(description="Second test argument")],
) -> str:
    """A prompt with required arguments"""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt(title="Prompt With Embedded Resource")
def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, Field(description="URI of the resource to embed")],
) -> list[UserMessage]:
    """A prompt that includes an embedded resource"""
    resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [UserMessage(resource), UserMessage("Please process the embedded resource above.")]


@server.prompt(title="Prompt With Image")
def test_prompt_with_image() -> list[Any]:
    """A prompt that includes image content"""
    return [Image(data=PIXEL), "Please analyze the image above."]


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion:
    words = ["1", "2", "3"] if ref.type == "ref/resource" else ["paris", "park", "party", "test"]
    return Completion(values=[word for word in words if word.startswith(argument.value)])


# Helpers -------------------------------------------------------------------------------------------------------------


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def user(text: str) -> SamplingMessage:
    return SamplingMessage(role="user", content=TextContent(text=text))


def text_of(answer: Any) -> str:
    return next((block.text for block in [answer.content] if block.type == "text"), "no text")


def told(answer: ElicitResult) -> str:
    return f"action={answer.action}, content={json.dumps(answer.content or {})}"


def form(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def text_form(message: str, field: str) -> ElicitRequest:
    schema = form({field: {"type": "string"}}, field)
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def question(text: str, max_tokens: int) -> CreateMessageRequest:
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[user(text)], max_tokens=max_tokens))


def asking(state: str | None = None, /, **questions: Any) -> InputRequiredResult:
    return InputRequiredResult(input_requests=questions, request_state=state)


def answered(ctx: Context, key: str, kind: type[Any]) -> Any:
    answer = (ctx.input_responses or {}).get(key)
    return answer if isinstance(answer, kind) else None


def filled(ctx: Context, key: str, field: str) -> str | None:
    answer = answered(ctx, key, ElicitResult)
    value = (answer.content or {}).get(field) if answer else None
    return value if isinstance(value, str) else None


async def confirms(ctx: Context, message: str) -> bool:
    answer = await ctx.session.elicit_form(message, form({"confirm": {"type": "boolean"}}, "confirm"))
    return answer.action == "accept"


def confirmed(ctx: Context, done: str) -> str | InputRequiredResult:
    answer = answered(ctx, "confirm", ElicitResult)
    if ctx.request_state == "to be confirmed" and answer and answer.action == "accept":
        return done
    ask = ElicitRequestFormParams(message="Please confirm", requested_schema=form({"ok": {"type": "boolean"}}, "ok"))
    return asking("to be confirmed", confirm=ElicitRequest(params=ask))


if __name__ == "__main__":
    main()
