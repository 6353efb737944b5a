"""The components of a server: tools, resources, templates, prompts and the completion function.

A second component of the same name is ignored with a warning, as in the official SDK; a second template replaces the
first. Once the server is used, each change is passed on to the compiled part, which notifies the clients.

Design constraint: lists keep the order of registration.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcpace.server.auth.guards import core_guard
from mcpace.server.core.component_list import ComponentList, key_by_name
from mcpace.server.core.handlers import HandlerPlan, completion_plan, prompt_plan, resource_plan, tool_plan
from mcpace.server.errors import RegistrationError, ToolError
from mcpace.server.registration.tasks import FORBIDDEN
from mcpace.server.registration.tools import Tool

if TYPE_CHECKING:
    from mcpace import _core
    from mcpace.server.auth.guards import Kind
    from mcpace.server.core.core_binding import CoreBinding
    from mcpace.server.registration.prompts import Prompt
    from mcpace.server.registration.resources import ResourceTemplate


class Registry:
    """The components of one server."""

    def __init__(self, binding: CoreBinding, warnings: dict[str, bool]) -> None:
        self._binding = binding
        self._core: _core.Server | None = None
        self._tools: ComponentList[Tool] = ComponentList(
            "Tool", key_by_name, self._register_tool, lambda core, name: core.remove_tool(name), warnings["tools"]
        )
        self._resources: ComponentList[Any] = ComponentList(
            "Resource",
            lambda resource: str(resource.uri),
            self._register_resource,
            lambda core, uri: core.remove_resource(uri),
            warnings["resources"],
        )
        self._templates: ComponentList[ResourceTemplate] = ComponentList(
            "ResourceTemplate",
            lambda template: template.uri_template,
            self._register_template,
            lambda core, template: core.remove_resource_template(template),
            replaces=True,
        )
        self._prompts: ComponentList[Prompt] = ComponentList(
            "Prompt",
            key_by_name,
            self._register_prompt,
            lambda core, name: core.remove_prompt(name),
            warnings["prompts"],
        )
        self.tools: dict[str, Tool] = self._tools.entries
        self.resources: dict[str, Any] = self._resources.entries
        self.templates: dict[str, ResourceTemplate] = self._templates.entries
        self.prompts: dict[str, Prompt] = self._prompts.entries
        self.completion: Callable[..., Any] | None = None
        self._plans: dict[str, tuple[bool, HandlerPlan]] = {}

    def plan_of(self, tool: Tool) -> HandlerPlan:
        """How a tool is called, computed once for calls within the process."""
        is_wrapped = self._binding.is_wrapped("tools/call")
        known = self._plans.get(tool.name)
        if known is None or known[0] != is_wrapped:
            known = self._plans[tool.name] = (is_wrapped, tool_plan(self._binding, tool))
        return known[1]

    def add_tool(self, tool: Tool) -> Tool:
        """Adds a tool. Returns the tool that is registered afterwards: an older one of the same name stays."""
        return self._tools.add(tool)

    def remove_tool(self, name: str) -> None:
        """Removes a tool. Raises ``ToolError`` if there is none of this name."""
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
        """Removes a resource or a template. Raises ``ValueError`` if there is none."""
        if not (self._resources.remove(uri) or self._templates.remove(uri)):
            raise ValueError(f"Unknown resource: {uri}")

    def readable(self, uri: str) -> tuple[Kind, str, Any] | None:
        """The kind, the key and the entry that answer a URI; ``None`` if the URI is unknown."""
        if uri in self.resources:
            return "resource", uri, self.resources[uri]
        families = list(self.templates.items())
        return next((("template", name, one) for name, one in families if one.matches(uri) is not None), None)

    def add_template(self, template: ResourceTemplate) -> None:
        """Adds a template. A registered template of the same pattern is replaced."""
        self._templates.add(template)

    def add_prompt(self, prompt: Prompt) -> Prompt:
        """Adds a prompt. Returns the prompt that is registered afterwards: an older one of the same name stays."""
        return self._prompts.add(prompt)

    def remove_prompt(self, name: str) -> None:
        """Removes a prompt. Raises ``ValueError`` if there is none of this name."""
        if not self._prompts.remove(name):
            raise ValueError(f"Unknown prompt: {name}")

    def set_completion(self, function: Callable[..., Any]) -> None:
        """Sets the function that proposes values of arguments."""
        self.completion = function
        if self._core is not None:
            self._core.set_completer(completion_plan(self._binding).handler())

    def bind(self, core: _core.Server) -> None:
        """Registers all components with the compiled part. Later changes are passed on to it."""
        lists: tuple[ComponentList[Any], ...] = (self._tools, self._resources, self._templates, self._prompts)
        for one in lists:
            one.bind(core)
        if self.completion is not None:
            core.set_completer(completion_plan(self._binding).handler())
        self._core = core

    def _register_tool(self, core: _core.Server, tool: Tool) -> None:
        guarded = self._guard_keywords("tool", tool.name, tool)
        guarded.setdefault("timeout_s", self._binding.server.tool_timeout)
        # Tools of mcpace.django have no task configuration.
        task = getattr(tool, "task", FORBIDDEN).registered()
        core.add_tool(_entry_json(tool.listed()), tool_plan(self._binding, tool).handler(), **guarded, **task)

    def _register_resource(self, core: _core.Server, resource: Any) -> None:
        from mcpace.server.registration.resources import listed_resource

        uri = str(resource.uri)
        plan = resource_plan(self._binding, uri)
        core.add_resource(
            _entry_json(listed_resource(resource)), plan.handler(), **self._guard_keywords("resource", uri, resource)
        )

    def _register_template(self, core: _core.Server, template: ResourceTemplate) -> None:
        plan = resource_plan(self._binding, None)
        guarded = self._guard_keywords("template", template.uri_template, template)
        core.add_resource_template(_entry_json(template.listed()), plan.handler(), **guarded)

    def _register_prompt(self, core: _core.Server, prompt: Prompt) -> None:
        plan = prompt_plan(self._binding, prompt)
        core.add_prompt(
            _entry_json(prompt.listed()), plan.handler(), **self._guard_keywords("prompt", prompt.name, prompt)
        )

    def _guard_keywords(self, kind: Kind, name: str, entry: Any) -> dict[str, Any]:
        """The keywords by which the compiled part receives an entry's guards; empty for an entry without guards."""
        guards = self._binding.guards_of(entry)
        keywords: dict[str, Any] = {}
        if guards.timeout is not None:
            keywords["timeout_s"] = guards.timeout
        if guards:
            keywords["guard"] = core_guard(guards, kind, name, self._binding.server.name)
        return keywords


def _entry_json(entry: dict[str, Any]) -> bytes:
    try:
        return json.dumps(entry, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        name = entry.get("name")
        raise RegistrationError(f"{name!r} can't be described in JSON: {error}. Look at meta and defaults") from error
