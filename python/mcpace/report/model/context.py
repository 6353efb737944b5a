"""The base class of findings' contexts, which :mod:`mcpace.report.model.contexts` lists.

Design constraint: reading never fails, even for a damaged run or one of another release. A member that is absent or
unreadable is ``None``, and the sentence that would name it becomes shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, ValidationError, ValidatorFunctionWrapHandler, field_validator

from mcpace.report.model.base import Model


class Context(Model):
    """The known facts of one cause."""

    model_config = ConfigDict(strict=True, frozen=True)
    code: ClassVar[str] = ""
    """The code of the finding."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _unreadable_is_absent(cls, value: Any, read: ValidatorFunctionWrapHandler) -> Any:
        try:
            return read(value)
        except ValidationError:
            return None

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """Reads the facts of a run's finding."""
        return cls.model_validate(facts)

    @classmethod
    def members(cls) -> set[str]:
        """The names of the facts in a run."""
        return {field.alias or name for name, field in cls.model_fields.items()}

    def facts(self) -> dict[str, Any]:
        """The facts that are known, as a run stores them."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def best_match(variants: tuple[type[Context], ...], facts: Mapping[str, Any]) -> Context:
    """Reads ``facts`` as the variant that has the most of their members; the first variant wins a tie."""
    return max(variants, key=lambda variant: len(variant.members() & facts.keys())).read(facts)
