"""All that a server has: tools, resources, templates, prompts, a completer.

The second of a name is passed over with a warning, as in the official SDK; templates replace. Once the server is being
served, what is added and taken away is told to the compiled part, which tells the clients.

Design constraint: order of registration is the order of lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcpace.server.errors import RegistrationError, ToolError, logger
from mcpace.server.handlers import completion_plan, prompt_plan, resource_plan, tool_plan
from mcpace.server.tools import Tool

if TYPE_CHECKING:
    from mcpace import _core
    from mcpace.server.app import MCPServer
    from mcpace.server.prompts import Prompt
    from mcpace.server.resources import ResourceTemplate


class Registry:
    """See the module."""

    def __init__(self, server: MCPServer[Any], warnings: dict[str, bool]) -> None:
        self._server = server
        self._warns = warnings
        self._core: _core.Server | None = None
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Any] = {}
        self.templates: dict[str, ResourceTemplate] = {}
        self.prompts: dict[str, Prompt] = {}
        self.completion: Callable[..., Any] | None = None

    def add_tool(self, tool: Tool) -> Tool:
        """Adds a tool; returns the one that was there, where there was one of its name."""
        if self._is_new(self.tools, tool.name, "Tool", self._warns["tools"]):
            if self._core is not None:
                self._tell_tool(self._core, tool)
            self.tools[tool.name] = tool
        return self.tools[tool.name]

    def remove_tool(self, name: str) -> None:
        """Takes a tool away. Raises ``ToolError`` where there is none."""
        if self.tools.pop(name, None) is None:
            raise ToolError(f"Unknown tool: {name}")
        if self._core is not None:
            self._core.remove_tool(name)

    def add_resource(self, resource: Any) -> Any:
        """Adds a resource: ours, or any object with ``uri``, ``name``, ``mime_type`` and ``read()``."""
        if not callable(getattr(resource, "read", None)) or not hasattr(resource, "uri"):
            raise RegistrationError(
                f"add_resource takes a Resource, not {type(resource).__name__}; a function is one with "
                "@server.resource(uri)"
            )
        from mcpace.server.resources import check_uri

        uri = str(resource.uri)
        check_uri(uri)
        if self._is_new(self.resources, uri, "Resource", self._warns["resources"]):
            if self._core is not None:
                self._tell_resource(self._core, resource)
            self.resources[uri] = resource
        return self.resources[uri]

    def remove_resource(self, uri: str) -> None:
        """Takes a resource or a template away. Raises ``ValueError`` where there is none."""
        if self.resources.pop(uri, None) is not None:
            if self._core is not None:
                self._core.remove_resource(uri)
        elif self.templates.pop(uri, None) is not None:
            if self._core is not None:
                self._core.remove_resource_template(uri)
        else:
            raise ValueError(f"Unknown resource: {uri}")

    def add_template(self, template: ResourceTemplate) -> None:
        """Adds a family of resources, in the place of one of the same template."""
        if self._core is not None:
            if template.uri_template in self.templates:
                self._core.remove_resource_template(template.uri_template)
            self._tell_template(self._core, template)
        self.templates[template.uri_template] = template

    def add_prompt(self, prompt: Prompt) -> Prompt:
        """Adds a prompt; returns the one that was there, where there was one of its name."""
        if self._is_new(self.prompts, prompt.name, "Prompt", self._warns["prompts"]):
            if self._core is not None:
                self._tell_prompt(self._core, prompt)
            self.prompts[prompt.name] = prompt
        return self.prompts[prompt.name]

    def remove_prompt(self, name: str) -> None:
        """Takes a prompt away. Raises ``ValueError`` where there is none."""
        if self.prompts.pop(name, None) is None:
            raise ValueError(f"Unknown prompt: {name}")
        if self._core is not None:
            self._core.remove_prompt(name)

    def set_completion(self, function: Callable[..., Any]) -> None:
        """Sets what proposes values of arguments."""
        self.completion = function
        if self._core is not None:
            self._core.set_completer(completion_plan(self._server).handler())

    def bind(self, core: _core.Server) -> None:
        """Tells the compiled part all that there is; from here on, it is told of each change."""
        for tool in self.tools.values():
            self._tell_tool(core, tool)
        for resource in self.resources.values():
            self._tell_resource(core, resource)
        for template in self.templates.values():
            self._tell_template(core, template)
        for prompt in self.prompts.values():
            self._tell_prompt(core, prompt)
        if self.completion is not None:
            core.set_completer(completion_plan(self._server).handler())
        self._core = core

    def _tell_tool(self, core: _core.Server, tool: Tool) -> None:
        # A tool of FastMCP's kind may have a limit of its own.
        limit = getattr(tool, "timeout", None) or self._server.tool_timeout
        core.add_tool(_json(tool.listed()), tool_plan(self._server, tool).handler(), timeout_s=limit)

    def _tell_resource(self, core: _core.Server, resource: Any) -> None:
        from mcpace.server.resources import listed_resource

        plan = resource_plan(self._server, str(resource.uri))
        core.add_resource(_json(listed_resource(resource)), plan.handler())

    def _tell_template(self, core: _core.Server, template: ResourceTemplate) -> None:
        core.add_resource_template(_json(template.listed()), resource_plan(self._server, None).handler())

    def _tell_prompt(self, core: _core.Server, prompt: Prompt) -> None:
        core.add_prompt(_json(prompt.listed()), prompt_plan(self._server, prompt).handler())

    @staticmethod
    def _is_new(known: dict[str, Any], name: str, kind: str, warns: bool) -> bool:
        if name in known and warns:
            logger.warning("%s already exists: %s; the first one stays", kind, name)
        return name not in known


def _json(entry: dict[str, Any]) -> bytes:
    try:
        return json.dumps(entry, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        name = entry.get("name")
        raise RegistrationError(f"{name!r} can't be described in JSON: {error}. Look at meta and defaults") from error
