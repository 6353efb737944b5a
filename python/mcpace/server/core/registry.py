"""All that a server has: tools, resources, templates, prompts, a completer.

The second of a name is passed over with a warning, as in the official SDK; templates replace. Once the server is being
served, what is added and taken away is told to the compiled part, which tells the clients.

Design constraint: order of registration is the order of lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcpace.server.auth.guards import compiled
from mcpace.server.core.component_list import Shelf, named
from mcpace.server.core.handlers import Plan, completion_plan, prompt_plan, resource_plan, tool_plan
from mcpace.server.errors import RegistrationError, ToolError
from mcpace.server.registration.tasks import FORBIDDEN
from mcpace.server.registration.tools import Tool

if TYPE_CHECKING:
    from mcpace import _core
    from mcpace.server.app import MCPServer
    from mcpace.server.auth.guards import Kind
    from mcpace.server.registration.prompts import Prompt
    from mcpace.server.registration.resources import ResourceTemplate


class Registry:
    """See the module."""

    def __init__(self, server: MCPServer[Any], warnings: dict[str, bool]) -> None:
        self._server = server
        self._core: _core.Server | None = None
        self._tools: Shelf[Tool] = Shelf(
            "Tool", named, self._tell_tool, lambda core, name: core.remove_tool(name), warnings["tools"]
        )
        self._resources: Shelf[Any] = Shelf(
            "Resource",
            lambda resource: str(resource.uri),
            self._tell_resource,
            lambda core, uri: core.remove_resource(uri),
            warnings["resources"],
        )
        self._templates: Shelf[ResourceTemplate] = Shelf(
            "ResourceTemplate",
            lambda template: template.uri_template,
            self._tell_template,
            lambda core, template: core.remove_resource_template(template),
            replaces=True,
        )
        self._prompts: Shelf[Prompt] = Shelf(
            "Prompt", named, self._tell_prompt, lambda core, name: core.remove_prompt(name), warnings["prompts"]
        )
        self.tools: dict[str, Tool] = self._tools.entries
        self.resources: dict[str, Any] = self._resources.entries
        self.templates: dict[str, ResourceTemplate] = self._templates.entries
        self.prompts: dict[str, Prompt] = self._prompts.entries
        self.completion: Callable[..., Any] | None = None
        self._plans: dict[str, tuple[bool, Plan]] = {}

    def plan_of(self, tool: Tool) -> Plan:
        """How a tool is called, worked out once for calls within the process."""
        is_wrapped = self._server._inside.is_wrapped("tools/call")
        known = self._plans.get(tool.name)
        if known is None or known[0] != is_wrapped:
            known = self._plans[tool.name] = (is_wrapped, tool_plan(self._server, tool))
        return known[1]

    def add_tool(self, tool: Tool) -> Tool:
        """Adds a tool; returns the one that was there, where there was one of its name."""
        return self._tools.add(tool)

    def remove_tool(self, name: str) -> None:
        """Takes a tool away. Raises ``ToolError`` where there is none."""
        if not self._tools.remove(name):
            raise ToolError(f"Unknown tool: {name}")
        self._plans.pop(name, None)

    def add_resource(self, resource: Any) -> Any:
        """Adds a resource: ours, or any object with ``uri``, ``name``, ``mime_type`` and ``read()``."""
        if not callable(getattr(resource, "read", None)) or not hasattr(resource, "uri"):
            raise RegistrationError(
                f"add_resource takes a Resource, not {type(resource).__name__}; a function is one with "
                "@server.resource(uri)"
            )
        from mcpace.server.registration.resources import check_uri

        check_uri(str(resource.uri))
        return self._resources.add(resource)

    def remove_resource(self, uri: str) -> None:
        """Takes a resource or a template away. Raises ``ValueError`` where there is none."""
        if not (self._resources.remove(uri) or self._templates.remove(uri)):
            raise ValueError(f"Unknown resource: {uri}")

    def readable(self, uri: str) -> tuple[Kind, str, Any] | None:
        """Of what kind a URI is, what that is registered by, and the entry; ``None`` where nobody has it."""
        if uri in self.resources:
            return "resource", uri, self.resources[uri]
        families = list(self.templates.items())
        return next((("template", name, one) for name, one in families if one.matches(uri) is not None), None)

    def add_template(self, template: ResourceTemplate) -> None:
        """Adds a family of resources, in the place of one of the same template."""
        self._templates.add(template)

    def add_prompt(self, prompt: Prompt) -> Prompt:
        """Adds a prompt; returns the one that was there, where there was one of its name."""
        return self._prompts.add(prompt)

    def remove_prompt(self, name: str) -> None:
        """Takes a prompt away. Raises ``ValueError`` where there is none."""
        if not self._prompts.remove(name):
            raise ValueError(f"Unknown prompt: {name}")

    def set_completion(self, function: Callable[..., Any]) -> None:
        """Sets what proposes values of arguments."""
        self.completion = function
        if self._core is not None:
            self._core.set_completer(completion_plan(self._server).handler())

    def bind(self, core: _core.Server) -> None:
        """Tells the compiled part all that there is; from here on, it is told of each change."""
        shelves: tuple[Shelf[Any], ...] = (self._tools, self._resources, self._templates, self._prompts)
        for shelf in shelves:
            shelf.bind(core)
        if self.completion is not None:
            core.set_completer(completion_plan(self._server).handler())
        self._core = core

    def _tell_tool(self, core: _core.Server, tool: Tool) -> None:
        guarded = self._guarded("tool", tool.name, tool)
        guarded.setdefault("timeout_s", self._server.tool_timeout)
        # A tool of another face may have no tasks.
        task = getattr(tool, "task", FORBIDDEN).registered()
        core.add_tool(_json(tool.listed()), tool_plan(self._server, tool).handler(), **guarded, **task)

    def _tell_resource(self, core: _core.Server, resource: Any) -> None:
        from mcpace.server.registration.resources import listed_resource

        uri = str(resource.uri)
        plan = resource_plan(self._server, uri)
        core.add_resource(_json(listed_resource(resource)), plan.handler(), **self._guarded("resource", uri, resource))

    def _tell_template(self, core: _core.Server, template: ResourceTemplate) -> None:
        plan = resource_plan(self._server, None)
        guarded = self._guarded("template", template.uri_template, template)
        core.add_resource_template(_json(template.listed()), plan.handler(), **guarded)

    def _tell_prompt(self, core: _core.Server, prompt: Prompt) -> None:
        plan = prompt_plan(self._server, prompt)
        core.add_prompt(_json(prompt.listed()), plan.handler(), **self._guarded("prompt", prompt.name, prompt))

    def _guarded(self, kind: Kind, name: str, entry: Any) -> dict[str, Any]:
        """What the compiled part is told of an entry's guards; nothing where it has none."""
        guards = self._server._inside.guards_of(entry)
        told: dict[str, Any] = {}
        if guards.timeout is not None:
            told["timeout_s"] = guards.timeout
        if guards:
            told["guard"] = compiled(guards, kind, name, self._server.name)
        return told


def _json(entry: dict[str, Any]) -> bytes:
    try:
        return json.dumps(entry, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        name = entry.get("name")
        raise RegistrationError(f"{name!r} can't be described in JSON: {error}. Look at meta and defaults") from error
