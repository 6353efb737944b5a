"""Guards of tools, resources and prompts: permissions, rate limits, and bounds of results.

A permission is a function or coroutine function of an :class:`AccessRequest`. It refuses by returning ``False`` or by
raising :class:`Denied`. Lists leave out the components that a caller may not use. The compiled part checks scopes
(:func:`requires`) and rate limits without Python.

Design constraint: this module only describes guards, at registration. The compiled part checks them, and is loaded when
a server is run.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

from mcpace.server.errors import RegistrationError

if TYPE_CHECKING:
    from mcpace import _core

Kind = Literal["tool", "resource", "template", "prompt"]
Transport = Literal["http", "stdio", "memory", "process"]
Algorithm = Literal["fixed-window", "sliding-window", "token-bucket"]


class Denied(Exception):
    """Raise it in a permission to refuse the caller, who reads the message.

    ``scopes`` are the scopes that would suffice. The client receives them, and may retry with a token that has them.
    """

    def __init__(self, message: str = "not permitted", *, scopes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.scopes = tuple(scopes)


class AccessRequest(Protocol):
    """A caller and the component that it wants to use. The call's arguments are not part of it."""

    @property
    def kind(self) -> Kind:
        """Kind of the component."""
        ...

    @property
    def name(self) -> str:
        """Name of a tool or prompt, URI of a resource, or template of a resource family."""
        ...

    @property
    def uri(self) -> str | None:
        """URI of the resource that is read through a template; ``None`` otherwise, and in lists."""
        ...

    @property
    def principal(self) -> Any:
        """Token of the caller, as the verifier returned it; ``None`` without a token."""
        ...

    @property
    def session_id(self) -> str | None:
        """Id of the session; ``None`` without a session."""
        ...

    @property
    def headers(self) -> Mapping[str, str] | None:
        """Headers of the HTTP request by lower-case name. Supplied by the client, so they prove nothing about it."""
        ...

    @property
    def transport(self) -> Transport:
        """Transport of the request; ``process`` for a call within the process."""
        ...

    @property
    def listing(self) -> bool:
        """Whether the component is only listed, not used."""
        ...


Permission = Callable[[Any], bool | Awaitable[bool | None] | None]
"""Function of an :class:`AccessRequest`. ``False`` or :class:`Denied` refuses the request."""


class Requires:
    """Permission that :func:`requires` returns."""

    __slots__ = ("scopes",)

    def __init__(self, scopes: tuple[str, ...]) -> None:
        self.scopes = scopes

    def __call__(self, request: AccessRequest) -> None:
        """Checks the scopes in Python, for functions that combine permissions. Raises :class:`Denied`."""
        granted = getattr(request.principal, "scopes", None) or ()
        if not set(self.scopes) <= set(granted):
            needed = (
                f"the scope {self.scopes[0]} is"
                if len(self.scopes) == 1
                else f"the scopes {', '.join(self.scopes)} are"
            )
            raise Denied(f"{needed} needed", scopes=self.scopes)

    def __repr__(self) -> str:
        return f"requires({', '.join(map(repr, self.scopes))})"


def requires(*scopes: str) -> Permission:
    """A permission for tokens that have all these scopes. The compiled part checks it without Python."""
    if not scopes or not all(isinstance(scope, str) and re.fullmatch(r"[!#-\[\]-~]+", scope) for scope in scopes):
        raise RegistrationError(
            f"requires{scopes!r}: name one scope or more, each a text without spaces and quotes: requires('read')"
        )
    return Requires(scopes)


@dataclass(frozen=True, slots=True, init=False)
class RateLimit:
    """How often something may be used: ``RateLimit("100/minute")``, ``RateLimit("5/10s", by="everyone")``.

    ``by`` selects the uses that count together: those of each ``"principal"`` (callers without a token count as one),
    of each ``"session"``, of ``"everyone"``, or those for which a function of the :class:`AccessRequest` returns the
    same text. ``algorithm``: ``"sliding-window"`` counts the uses of the last period at any moment, ``"fixed-window"``
    starts again after each period, ``"token-bucket"`` admits ``burst`` uses at once (by default the calls of a period)
    and refills steadily. Limits of the same ``name`` share a count; without a name each tool, resource and prompt has
    its own.
    """

    rate: str
    calls: int
    seconds: float
    by: Literal["principal", "session", "everyone"] | Callable[[Any], Any]
    algorithm: Algorithm
    burst: int | None
    name: str | None

    def __init__(
        self,
        rate: str,
        *,
        by: Literal["principal", "session", "everyone"] | Callable[[Any], Any] = "principal",
        algorithm: Algorithm = "sliding-window",
        burst: int | None = None,
        name: str | None = None,
    ) -> None:
        calls, seconds = parsed_rate(rate)
        if by not in ("principal", "session", "everyone") and not callable(by):
            raise RegistrationError(
                f"RateLimit(by={by!r}): there are 'principal', 'session', 'everyone', or a function"
            )
        if algorithm not in ("fixed-window", "sliding-window", "token-bucket"):
            raise RegistrationError(
                f"RateLimit(algorithm={algorithm!r}): there are 'fixed-window', 'sliding-window' and 'token-bucket'"
            )
        if burst is not None and algorithm != "token-bucket":
            raise RegistrationError(f"RateLimit(burst={burst!r}) is of the algorithm 'token-bucket'")
        if burst is not None and (isinstance(burst, bool) or not isinstance(burst, int) or burst < 1):
            raise RegistrationError(f"RateLimit(burst={burst!r}): a whole number from 1 on")
        for field, value in {
            "rate": rate,
            "calls": calls,
            "seconds": seconds,
            "by": by,
            "algorithm": algorithm,
            "burst": burst,
            "name": name,
        }.items():
            object.__setattr__(self, field, value)

    def counted_as(self, name: str) -> RateLimit:
        """This limit if it has a name, else a copy with ``name``."""
        if self.name is not None:
            return self
        named = copy.copy(self)
        object.__setattr__(named, "name", name)
        return named


_LONGEST = 366 * 86400
_UNITS = {
    unit: seconds
    for units, seconds in {
        ("s", "sec", "second", "seconds"): 1,
        ("m", "min", "minute", "minutes"): 60,
        ("h", "hour", "hours"): 3600,
        ("d", "day", "days"): 86400,
    }.items()
    for unit in units
}
_RATE = re.compile(r"\s*(\d{1,9})\s*(?:/|per)\s*(\d{1,6}(?:\.\d{1,6})?)?\s*([a-z]+)\s*")


def parsed_rate(rate: str) -> tuple[int, float]:
    """The number of calls and the period in seconds. Raises ``RegistrationError`` for any other text."""
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    unit = None if found is None else _UNITS.get(found[3])
    calls = 0 if found is None else int(found[1])
    seconds = 0.0 if found is None or unit is None else float(found[2] or 1) * unit
    if not (0 < calls <= 1_000_000_000 and 0 < seconds <= _LONGEST):
        raise RegistrationError(
            f"RateLimit({rate!r}): calls and time, such as '100/minute', '5/10s' or '1000/day', of 366 days at most"
        )
    return calls, seconds


@dataclass(frozen=True, slots=True)
class Guards:
    """All guards of one tool, resource or prompt."""

    permissions: tuple[Permission, ...] = ()
    rate_limits: tuple[RateLimit, ...] = ()
    timeout: float | None = None
    """Seconds that a call may take."""
    max_result_bytes: int | None = None
    """The maximum length of a result. A longer result is an error, and is never truncated."""

    def __bool__(self) -> bool:
        return bool(self.permissions or self.rate_limits) or self.max_result_bytes is not None

    def within(self, outer: Guards) -> Guards:
        """These guards within a server's: the server's permissions and limits apply too, and its bounds if these have
        none."""
        return replace(
            self,
            permissions=(*outer.permissions, *self.permissions),
            rate_limits=(*outer.rate_limits, *self.rate_limits),
            timeout=outer.timeout if self.timeout is None else self.timeout,
            max_result_bytes=outer.max_result_bytes if self.max_result_bytes is None else self.max_result_bytes,
        )


UNGUARDED = Guards()


class GuardOptions(TypedDict, total=False):
    """The keywords that describe guards of a component."""

    permissions: Sequence[Permission] | Permission
    """All of them, and the server's own, must allow a use."""
    rate_limits: Sequence[RateLimit | str] | RateLimit | str
    """Each of them counts each use of the component. The server's own limits count all components together."""
    timeout: float | None
    """Seconds that a call may take."""
    max_result_bytes: int | None
    """A longer result is an error."""


def guards(
    permissions: Any = (),
    rate_limits: Any = (),
    timeout: float | None = None,
    max_result_bytes: int | None = None,
    *,
    what: str,
) -> Guards:
    """The guards that keywords describe. Raises ``RegistrationError``, which names ``what``, for invalid keywords."""
    asked = as_tuple(permissions, lambda one: callable(one) or isinstance(one, str), f"permissions of {what}")
    limits = as_tuple(rate_limits, lambda one: isinstance(one, RateLimit | str), f"rate_limits of {what}")
    for permission in asked:
        if not callable(permission) or isinstance(permission, type) or permission is requires:
            raise RegistrationError(
                f"permissions of {what}: {permission!r} is no function of what is asked; scopes are requires('…')"
            )
    limits = tuple(RateLimit(limit) if isinstance(limit, str) else limit for limit in limits)
    for limit in limits:
        if not isinstance(limit, RateLimit):
            raise RegistrationError(f"rate_limits of {what}: {limit!r} is none; write RateLimit('100/minute')")
    if timeout is not None and not (_is_number(timeout, int | float) and 0 < timeout < _LONGEST):
        raise RegistrationError(
            f"timeout of {what}: must be more than 0 seconds, and no more than a year, got {timeout!r}"
        )
    if max_result_bytes is not None and not (_is_number(max_result_bytes, int) and max_result_bytes > 0):
        raise RegistrationError(
            f"max_result_bytes of {what}: must be a number of bytes from 1 on, got {max_result_bytes!r}"
        )
    if not (asked or limits) and timeout is None and max_result_bytes is None:
        return UNGUARDED
    return Guards(asked, limits, timeout, max_result_bytes)


def as_tuple(given: Any, is_one: Callable[[Any], bool], what: str) -> tuple[Any, ...]:
    """The values of a keyword that takes one value or several. Raises ``RegistrationError`` for anything else."""
    if given is None:
        return ()
    if is_one(given):
        return (given,)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise RegistrationError(f"{what}: {given!r} is no list of them")
    return tuple(given)


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def server_guards(permissions: Any, rate_limits: Any, max_result_bytes: int | None, server: str) -> Guards:
    """The guards of a server. Its limits count the uses of all its components together."""
    found = guards(permissions, rate_limits, None, max_result_bytes, what="MCPServer")
    limits = tuple(limit.counted_as(f"{server}:server:{place}") for place, limit in enumerate(found.rate_limits))
    return replace(found, rate_limits=limits)


def guards_of(entry: Any) -> Guards:
    """An entry's own guards. Objects of other SDKs have none."""
    own: Guards = getattr(entry, "guards", UNGUARDED)
    return own


def core_guard(all_of_it: Guards, kind: Kind, name: str, server: str) -> _core.Guard | None:
    """The guards in the form of the compiled part; ``None`` if there are none. The time limit is passed separately.

    Limits of servers with different names may be counted in one Redis, so their keys contain the server's name.
    """
    if not all_of_it:
        return None
    from mcpace import _core

    scopes: list[str] = []
    asked: list[Permission] = []
    for permission in all_of_it.permissions:
        if isinstance(permission, Requires):
            scopes.extend(permission.scopes)
        else:
            asked.append(permission)
    return _core.Guard(
        scopes=list(dict.fromkeys(scopes)),
        permissions=asked,
        limits=[
            _core.RateLimit(
                limit.name or f"{server}:{kind}:{name}:{place}",
                limit.calls,
                limit.seconds,
                algorithm=limit.algorithm,
                burst=limit.burst,
                by=limit.by,
            )
            for place, limit in enumerate(all_of_it.rate_limits)
        ],
        max_result_bytes=all_of_it.max_result_bytes,
    )
