"""Direct calls of a service: the serializer's data, and the keywords that dispatch would pass."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from mcpace_layers.probe import CallTarget
from mcpace_layers.problem import Unmeasured, wrong_arguments


def validate_arguments(kind: Any, target: CallTarget) -> Any:
    """Validates the arguments with an input serializer; returns them unchanged where there is none."""
    if kind is None:
        return dict(target.arguments)
    if not hasattr(kind, "is_valid"):
        raise Unmeasured(f"the tool's input serializer is a {getattr(kind, '__name__', kind)}, and none of DRF's")
    serializer = kind(data=target.arguments)
    if not serializer.is_valid():
        raise wrong_arguments(target.tool, json.dumps(serializer.errors, default=str))
    return serializer.validated_data


def keywords(function: Callable[..., Any], data: Any) -> dict[str, Any]:
    """Selects the keywords that the function's signature names. The user is anonymous."""
    from django.contrib.auth.models import AnonymousUser
    from django.http import HttpRequest

    pool: dict[str, Any] = {**(data if isinstance(data, Mapping) else {}), "data": data}
    pool.update(request=HttpRequest(), user=AnonymousUser())
    parameters = inspect.signature(function).parameters.values()
    named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    wanted = [one.name for one in named if one.default is one.empty and one.name not in pool]
    if wanted:
        raise Unmeasured(f"the tool's function takes what only its dispatch has ({', '.join(wanted)})")
    return {one.name: pool[one.name] for one in named if one.name in pool}
