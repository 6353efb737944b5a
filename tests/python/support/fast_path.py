"""Parity of a fast path with the general path beside it: every fast path of mcpace is held to this rule by one check.

A fast path handles a part of the inputs and declines the others, which the general path then handles. Where it does not
decline, its outcome is that of the general path: the same value of the same types, or the same error message."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Input = TypeVar("Input")


class Declined(Exception):
    """The fast path leaves the input to the general path."""


def assert_parity(fast: Callable[[Input], Any], general: Callable[[Input], Any], inputs: Iterable[Input]) -> int:
    """Feeds both paths the same inputs. Returns the number of inputs that the fast path did not decline."""
    handled = 0
    for given in inputs:
        try:
            outcome = _outcome(fast, given)
        except Declined:
            continue
        handled += 1
        assert outcome == _outcome(general, given), given
    return handled


def _outcome(path: Callable[[Input], Any], given: Input) -> Any:
    try:
        return exact(path(given))
    except Declined:
        raise
    except Exception as error:
        return type(error), str(error)


def exact(value: Any) -> Any:
    """A form that distinguishes 1 from True and 1.0, and -0.0 from 0.0, and keeps the order of members."""
    if isinstance(value, dict):
        return type(value), [(key, exact(member)) for key, member in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [exact(item) for item in value]
    return type(value), repr(value)
