"""The result of an adoption: which parts were adopted, which were not, and why. Its sentences are printed at start."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Left:
    """A part that stays with the SDK's own handlers."""

    name: str
    why: str


@dataclass(slots=True)
class Summary:
    """The result of adopting one server."""

    sdk: str
    """Name and version of the SDK, as far as known."""
    adopted: list[str] = field(default_factory=list)
    """Tools that the runtime calls itself."""
    left: list[Left] = field(default_factory=list)
    """Tools that run in the SDK."""
    resources: int = 0
    templates: int = 0
    prompts: int = 0
    whole: str | None = None
    """The reason why no tool could be adopted, if none could."""

    def sentences(self) -> tuple[str, ...]:
        """The summary as lines of text."""
        tools = len(self.adopted) + len(self.left)
        if self.whole is not None:
            return (f"{self.sdk}: every request runs in the SDK: {self.whole}",)
        said = [f"{self.sdk}: adopted {len(self.adopted)} of {tools} {'tool' if tools == 1 else 'tools'}"]
        if self.left:
            why: dict[str, list[str]] = {}
            for one in self.left:
                why.setdefault(one.why, []).append(one.name)
            reasons = "; ".join(f"{_names(names)} ({reason})" for reason, names in why.items())
            said[0] += f"; {len(self.left)} {'runs' if len(self.left) == 1 else 'run'} in the SDK: {reasons}"
        others = {"resource": self.resources, "resource template": self.templates, "prompt": self.prompts}
        told = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in others.items() if count]
        if told:
            said.append(f"{', '.join(told)} and all lists run in the SDK")
        return tuple(said)


def _names(names: list[str]) -> str:
    if len(names) <= 4:
        return ", ".join(names)
    return f"{', '.join(names[:3])} and {len(names) - 3} more"
