"""Comparison of clients: real SDK releases against targets, in interleaved rounds."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mcpace import _core
from mcpace.lab.adapters import subject as adapter_subject
from mcpace.lab.adapters import toml_file
from mcpace.lab.clients.client_under_test import ClientUnderTest
from mcpace.lab.clients.plan import Plan, Settings, operations_at
from mcpace.lab.clients.trials_to_cases import Facts, Trial, operation_cases
from mcpace.lab.environments import environment as release_environment
from mcpace.lab.environments.environment import Environment
from mcpace.lab.errors import LabError, ReleasesProblem, UnknownName, Unsupported, UsageProblem
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.processes.strays import ended_strays
from mcpace.lab.progress import Progress
from mcpace.lab.servers.started_target import start_target
from mcpace.lab.statistics import rank_interval
from mcpace.lab.targets import Target
from mcpace.report.model.run import Case, Operation, Run, Subject


@dataclass(frozen=True)
class Ready:
    """A subject with its finished environment, or the reason why it has none."""

    subject: Subject
    command: tuple[str, ...] = ()
    environment: Environment | None = None
    error: str | None = None
    unsupported: str | None = None
    """Reason why this release can't have an environment: it isn't supported."""


def run_clients(plan: Plan, progress: Progress) -> Run:
    """Measures every subject at every target. Ctrl-C ends the experiment early; the run is then marked partial.

    Raises :class:`LabError` for a plan that can't be carried out (unknown SDK, version or target).
    """
    result = new_run("clients", {"subjects": list(plan.subjects), **plan.settings.as_options()})
    resolved = [resolve(text, progress) for text in plan.subjects]
    for index, release in enumerate(resolved):
        if release in resolved[:index]:
            raise UsageProblem(f"{plan.subjects[index]} is named twice; each release stands for one row")
    plan.settings.make_folder()
    try:
        ready = [prepare(subject, progress) for subject in resolved]
        for item in ready:
            if item.environment is not None:
                note_environment(result, item.subject, item.environment)
        progress.begin(plan.settings.trials * len(ready) * sum(len(operations_at(t)) for t in plan.targets))
        for target in plan.targets:
            with start_target(target, progress) as started, TargetRun(ready, started, plan.settings) as target_run:
                try:
                    target_run.run_rounds(progress)
                except UnknownName as problem:
                    if target is plan.targets[0]:
                        raise
                    progress.note(f"{target.name}: {problem}")
                finally:
                    with defer_interrupt():
                        result.cases += target_run.cases()
                        result.recordings |= target_run.recordings
                        for reason in target_run.unsaved:
                            progress.note(reason)
    except KeyboardInterrupt:
        result.partial = True
    return result


def resolve(text: str, progress: Progress) -> adapter_subject.Resolved:
    """Resolves a subject to one release. A release with a finished environment needs no package index.

    Raises :class:`LabError` as :func:`mcpace.lab.adapters.subject.resolve_subject` does.
    """
    try:
        return adapter_subject.resolve_subject(text, progress.preparing)
    except ReleasesProblem:
        subject = adapter_subject.parse_subject(text, toml_file.load_all())
        version = str(subject.selection)
        if release_environment.find_ready(subject.adapter, version) is None:
            raise
        return adapter_subject.Resolved(subject.adapter, version, subject.mode)


def prepare(resolved: adapter_subject.Resolved, progress: Progress) -> Ready:
    """Finds or builds a subject's environment. A release that can't be installed becomes an error on its cases."""
    subject = Subject(sdk=resolved.adapter.name, version=resolved.version, mode=resolved.mode)
    progress.preparing(subject.label())
    try:
        environment = release_environment.ensure_environment(resolved.adapter, resolved.version, say=progress.preparing)
    except Unsupported as reason:
        return Ready(subject, unsupported=str(reason))
    except LabError as error:
        progress.note(str(error))
        return Ready(subject, error=str(error))
    if as_of := environment.dependencies_as_of:
        progress.note(f"{subject.label()}: its dependencies are of {as_of}, not of its release")
    return Ready(subject, resolved.adapter.client_command(environment), environment)


def note_environment(result: Run, subject: Subject, environment: Environment) -> None:
    """Adds the versions of a subject's environment to the run."""
    result.versions[subject.label()] = environment.versions
    if environment.dependencies_as_of is not None:
        result.dependencies_as_of[subject.label()] = environment.dependencies_as_of


class TargetRun:
    """All subjects at one target. Use as a context manager, which stops all started programs at its end."""

    def __init__(self, ready: list[Ready], target: Target, settings: Settings) -> None:
        self._ready = list(ready)
        self._target = target
        self._settings = settings
        self._stack = ExitStack()
        # An SDK that is killed leaves its stdio server behind. Over HTTP, programs start no processes.
        if target.command:
            self._stack.enter_context(ended_strays())
        self._clients: dict[int, ClientUnderTest] = {}
        self.recordings: dict[str, str] = {}
        """File name of each kept recording, by subject × target."""
        self.unsaved: list[str] = []
        """Reasons why recordings couldn't be saved."""

    def __enter__(self) -> TargetRun:
        try:
            for index, item in enumerate(self._ready):
                if item.environment is not None:
                    client = ClientUnderTest(
                        item.subject,
                        item.command,
                        item.environment,
                        self._target,
                        self._settings,
                        self._recording_file(item.subject),
                    )
                    self._enter_client(index, client)
        except BaseException:
            self._stack.close()
            raise
        return self

    def _enter_client(self, index: int, client: ClientUnderTest) -> None:
        try:
            self._clients[index] = self._stack.enter_context(client)
        except _core.Problem as problem:
            # No socket or thread is left for this subject. The others continue.
            self._ready[index] = replace(self._ready[index], error=str(problem))

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def run_rounds(self, progress: Progress) -> None:
        """Runs the rounds of trials. Subjects alternate, so that drift of the machine affects all alike."""
        for number in range(1, self._settings.trials + 1):
            for client in self._round_order(number):
                if not client.given_up:
                    label = client.facts.subject.label()
                    where = f"{self._target.name} · round {number}/{self._settings.trials} · {label}"
                    before = len(client.facts.trials)
                    client.run_round(partial(_show_step, progress, where))
                    for trial in client.facts.trials[before:]:
                        if trial.seconds is not None:
                            progress.sample(f"{self._target.name} · {trial.operation}", label, trial.seconds)

    def _round_order(self, number: int) -> list[ClientUnderTest]:
        """Clients in forward or reverse order.

        Otherwise, one subject would always follow a slow one, on an idle CPU.
        """
        clients = list(self._clients.values())
        return clients if number % 2 else clients[::-1]

    def cases(self) -> list[Case]:
        """Cases of all subjects by operation, compared with the first subject. Call it once."""
        operations = operations_at(self._target)
        by_subject = [operation_cases(self._client_facts(index), operations) for index in range(len(self._ready))]
        for subject_cases in by_subject[1:]:
            for case, first in zip(subject_cases, by_subject[0], strict=True):
                case.change = rank_interval.trial_change(case, first)
        return [case for column in zip(*by_subject, strict=True) for case in column]

    def _client_facts(self, index: int) -> Facts:
        client = self._clients.get(index)
        if client is None:
            item = self._ready[index]
            trials = [Trial(operation, unsupported=item.unsupported) for operation in operations_at(self._target)]
            return Facts(item.subject, self._target.name, None, trials=trials, error=item.error)
        facts = client.explain_recording()
        if client.unsaved:
            self.unsaved.append(client.unsaved)
            del self.recordings[self._subject_key(client.facts.subject)]
        return facts

    def _recording_file(self, subject: Subject) -> Path | None:
        file = self._settings.recording_of(f"{subject.label()}-{self._target.name}")
        if file is not None:
            self.recordings[self._subject_key(subject)] = file.name
        return file

    def _subject_key(self, subject: Subject) -> str:
        return f"{subject.label()} × {self._target.name}"


def _show_step(progress: Progress, where: str, operation: Operation) -> None:
    progress.step(f"{where} · {operation}")
