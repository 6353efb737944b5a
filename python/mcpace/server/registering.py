"""The side of a server where things are registered: functions become tools, resources, prompts.

Design constraint: only the surface; what a definition is stands in a module of its name, and is loaded with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from mcpace.server.auth.guards import guards
from mcpace.server.errors import RegistrationError
from mcpace.server.registration.signature import name_of
from mcpace.server.registration.tools import Tool
from mcpace.server.sdk_compat.shared_types import check_entry, prompt_keywords, tool_keywords
from mcpace.server.settings import FunctionT, LifespanT, Parts

if TYPE_CHECKING:
    from mcpace.server.auth.guards import GuardOptions
    from mcpace.server.registration.path_security import ResourceSecurity
    from mcpace.server.registration.prompts import Prompt
    from mcpace.server.registration.tasks import TaskConfig
    from mcpace.server.registration.toon import OutputFormat
    from mcpace.types import Icon


class Registering(Parts[LifespanT]):
    """See the module."""

    def tool(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Any = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        output_format: OutputFormat = "json",
        task: bool | TaskConfig | None = None,
        **guarding: Unpack[GuardOptions],
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a tool.

        Its parameters become the input schema, its return annotation the output schema. ``structured_output``: must
        have one (``True``), must not (``False``), or as the annotation allows. A parameter annotated ``Context`` is
        filled in by the server.

        ``permissions`` and ``rate_limits`` guard it, beside the server's own; ``timeout`` is in seconds; a result
        longer than ``max_result_bytes`` is an error. ``output_format="toon"`` writes the text of data as TOON,
        ``"auto"`` where that is shorter. ``task=True`` runs it as a task for clients that take tasks; see
        :class:`mcpace.TaskConfig`.
        """
        if callable(name):
            raise TypeError(
                "The @tool decorator was used incorrectly. Did you forget to call it? Use @tool() instead of @tool"
            )

        def register(fn: FunctionT) -> FunctionT:
            self.add_tool(
                fn,
                name,
                title,
                description,
                annotations,
                icons,
                meta,
                structured_output,
                output_format=output_format,
                task=task,
                **guarding,
            )
            return fn

        return register

    def add_tool(
        self,
        fn: Callable[..., Any] | Tool,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Any = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        output_format: OutputFormat = "json",
        task: bool | TaskConfig | None = None,
        **guarding: Unpack[GuardOptions],
    ) -> None:
        """Registers a function as a tool, without the decorator. Also while the server runs."""
        theirs = tool_keywords(fn)
        if isinstance(fn, Tool):
            tool = fn
        elif theirs is not None:
            theirs["fn"] = self._filled(theirs["fn"])
            tool = Tool.from_function(**theirs)
            if tool.parameters != fn.parameters:  # type: ignore[attr-defined]
                raise RegistrationError(
                    f"tool {tool.name!r} of {type(fn).__module__} has a schema that its function does not have: "
                    "register the function with mcpace's add_tool, and annotate its parameters"
                )
        else:
            what = f"tool {name or name_of(fn)!r}"
            tool = Tool.from_function(
                self._filled(fn),
                name=name,
                title=title,
                description=description,
                annotations=annotations,
                icons=icons,
                meta=meta,
                structured_output=structured_output,
                guards=guards(**guarding, what=what),
                output_format=output_format,
                task=task,
            )
        self.registry.add_tool(tool)

    def remove_tool(self, name: str) -> None:
        """Takes a tool away, also while the server runs. Raises ``ToolError`` where there is none."""
        self.registry.remove_tool(name)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Sequence[Icon] | None = None,
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        security: ResourceSecurity | None = None,
        **guarding: Unpack[GuardOptions],
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a resource, or as a family of them where the URI has variables (``note://{id}``).

        It returns text, bytes, or what is told as JSON. The variables are its parameters. What guards it: as in
        :meth:`tool`.
        """
        if callable(uri):
            raise TypeError(
                "The @resource decorator was used incorrectly. "
                "Did you forget to call it? Use @resource('uri') instead of @resource"
            )
        from mcpace.server.registration.path_security import DEFAULT_RESOURCE_SECURITY
        from mcpace.server.registration.resources import FunctionResource, ResourceTemplate, check_static
        from mcpace.server.registration.uri_template import UriTemplate

        variables = UriTemplate.parse(uri).variable_names
        details: dict[str, Any] = {
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "icons": icons,
            "annotations": annotations,
            "meta": meta,
            "guards": guards(**guarding, what=f"resource {uri!r}"),
        }

        def register(fn: FunctionT) -> FunctionT:
            filled = self._filled(fn)
            if variables:
                policy = security or self._resource_security or DEFAULT_RESOURCE_SECURITY
                self.registry.add_template(ResourceTemplate.from_function(filled, uri, security=policy, **details))
            else:
                check_static(filled, uri)
                self.registry.add_resource(FunctionResource.from_function(filled, uri, **details))
            return fn

        return register

    def add_resource(self, resource: Any) -> None:
        """Registers a resource: a text, bytes, a file, or a class of your own. Also while the server runs."""
        self.registry.add_resource(resource)

    def remove_resource(self, uri: str) -> None:
        """Takes a resource or a template away. Raises ``ValueError`` where there is none."""
        self.registry.remove_resource(uri)

    def prompt(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        **guarding: Unpack[GuardOptions],
    ) -> Callable[[FunctionT], FunctionT]:
        """Registers a function as a prompt: its parameters are what the user fills in, its value the messages.

        What guards it: as in :meth:`tool`.
        """
        if callable(name):
            raise TypeError(
                "The @prompt decorator was used incorrectly. "
                "Did you forget to call it? Use @prompt() instead of @prompt"
            )

        from mcpace.server.registration.prompts import Prompt

        def register(fn: FunctionT) -> FunctionT:
            own = guards(**guarding, what=f"prompt {name or name_of(fn)!r}")
            self.add_prompt(Prompt.from_function(self._filled(fn), name, title, description, icons, guards=own))
            return fn

        return register

    def add_prompt(self, prompt: Prompt) -> None:
        """Registers a prompt, also while the server runs."""
        from mcpace.server.registration.prompts import Prompt

        theirs = prompt_keywords(prompt)
        if theirs is not None:
            prompt = Prompt.from_function(self._filled(theirs.pop("fn")), **theirs)
        check_entry(prompt, Prompt, "add_prompt", "a Prompt, such as Prompt.from_function(function)")
        self.registry.add_prompt(prompt)

    def remove_prompt(self, name: str) -> None:
        """Takes a prompt away, also while the server runs. Raises ``ValueError`` where there is none."""
        self.registry.remove_prompt(name)

    def completion(self) -> Callable[[FunctionT], FunctionT]:
        """Registers the function that proposes values of arguments: ``(ref, argument, context)`` → ``Completion``.

        ``ref`` is a ``PromptReference`` or ``ResourceTemplateReference``; ``None`` proposes nothing.
        """

        def register(fn: FunctionT) -> FunctionT:
            self.registry.set_completion(self._around(fn))
            return fn

        return register

    def _filled(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """What is called for an author's function: it has no parameters that providers fill in."""
        return self._around(self._inside.providers.applied(fn))

    def _around(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """For a face whose functions all need something around them; it keeps name, doc and signature."""
        return fn
