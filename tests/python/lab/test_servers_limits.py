"""Limits of servers under test: the methods that the machine permits, and the limits in force in the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcpace.lab.errors import UsageProblem
from mcpace.lab.processes import limits
from mcpace.lab.processes.limits import Confinement, choose_cap, parse_memory

COUNT = (sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))")


def group_can_be_made() -> bool:
    root = limits._cgroup_root()
    return root is not None and os.access(root / "cgroup.procs", os.W_OK) and limits._can_create_group(root)


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cgroup v2 hierarchy like that of a systemd user session, in plain files without effect."""
    slice_ = tmp_path / "user.slice" / "app.slice"
    (slice_ / "terminal.scope").mkdir(parents=True)
    for group in (tmp_path, slice_.parent, slice_):
        (group / "cgroup.procs").write_text("")
        (group / "cgroup.subtree_control").write_text("cpuset cpu io memory pids\n" if group == slice_ else "pids\n")
    (slice_ / "terminal.scope" / "cgroup.subtree_control").write_text("\n")
    monkeypatch.setattr(limits, "_own_group", lambda: "/user.slice/app.slice/terminal.scope")
    return tmp_path


def test_a_group_is_made_beside_ours_where_controllers_are_handed_down(hierarchy: Path) -> None:
    cap = choose_cap(0.5, 512 << 20, root=hierarchy)
    assert (cap.by, cap.parent, cap.limits_memory) == ("cgroup", hierarchy / "user.slice" / "app.slice", True)
    with Confinement(cap, "rmcp@3.9.0:json"):
        (group,) = (entry for entry in cap.parent.iterdir() if entry.name.startswith("mcpace-"))
        assert group.name.endswith("rmcp-3.9.0-json")
        assert (group / "cpu.max").read_text() == "50000 100000"
        assert (group / "memory.max").read_text() == str(512 << 20)


def test_a_program_moves_into_its_group_before_it_begins(hierarchy: Path) -> None:
    cap = choose_cap(1, None, root=hierarchy)
    with Confinement(cap, "x") as confinement:
        command = (*confinement.command_prefix(), *COUNT)
        (group,) = (entry for entry in cap.parent.iterdir() if entry.name.startswith("mcpace-"))
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert (group / "cgroup.procs").read_text() == "0"
        assert int(done.stdout) == len(os.sched_getaffinity(0))
        (group / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
        assert confinement.killed_for_memory()
        (group / "memory.events").write_text("low 0\noom 1\noom_kill 0\n")
        assert not confinement.killed_for_memory()


@pytest.mark.skipif(not group_can_be_made(), reason="no cgroup v2 in which we may make a group")
def test_a_real_group_takes_a_program_in_and_ends_it_whole() -> None:
    """Checks the features of every group, regardless of its controllers: here it may have none."""
    root = limits._cgroup_root()
    confinement = Confinement(limits.Cap(1, None, "cgroup", (0,), (), root), "real")
    group = Path(confinement.command_prefix()[-1])
    group.mkdir()
    # It starts another in a session of its own, which no process group would reach.
    program = "setsid sleep 100 & echo ready; wait"
    with subprocess.Popen(
        (*confinement.command_prefix(), "sh", "-c", program), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert str(process.pid) in (group / "cgroup.procs").read_text().split()
        confinement.__exit__(None, None, None)
        assert process.wait(60) == -signal.SIGKILL
    assert not group.exists()


@pytest.mark.parametrize("file", ["cgroup.subtree_control", "cgroup.procs"])
def test_without_the_right_to_groups_processors_are_taken_away(hierarchy: Path, file: str) -> None:
    (hierarchy / "user.slice" / "app.slice" / file).unlink()
    cap = choose_cap(1, 2 << 30, root=hierarchy)
    assert (cap.by, len(cap.cores), cap.limits_memory) == ("affinity", 1, False)
    assert set(cap.cores) | set(cap.others) == os.sched_getaffinity(0)
    with Confinement(cap, "x") as confinement:
        done = subprocess.run(
            (*confinement.command_prefix(), *COUNT), capture_output=True, text=True, timeout=60, check=True
        )
    assert done.stdout == "1\n"


def test_what_is_no_server_stays_off_their_processors() -> None:
    own = os.sched_getaffinity(0)
    last = max(own)
    with limits.avoid_server_cores(limits.Cap(1, None, "affinity", tuple(own - {last}), (last,))):
        done = subprocess.run(COUNT, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == "1\n"
        with limits.avoid_server_cores(limits.Cap(1, None, "affinity", tuple(own), ())):
            assert os.sched_getaffinity(0) == {last}
    assert os.sched_getaffinity(0) == own


def test_caps_that_cannot_be_had_are_refused(hierarchy: Path) -> None:
    with pytest.raises(UsageProblem, match=r"--cpus 4096 is more than the \d+ that this machine lets us use"):
        choose_cap(4096, None, root=hierarchy)
    (hierarchy / "user.slice" / "app.slice" / "cgroup.subtree_control").unlink()
    with pytest.raises(UsageProblem, match=r"--cpus 0.5 needs cgroup v2"):
        choose_cap(0.5, None, root=hierarchy)


def test_a_program_that_cannot_be_confined_or_started_says_so(tmp_path: Path) -> None:
    cap = limits.Cap(1, None, "affinity", (0,), ())
    missing = (*Confinement(cap, "x").command_prefix(), "/nowhere/server")
    done = subprocess.run(missing, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (125, "/nowhere/server can't be started: No such file or directory\n")
    outside = [word if word != "0" else "4095" for word in missing]
    done = subprocess.run(outside, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 126
    assert "can't be confined" in done.stderr


def test_amounts_of_memory() -> None:
    assert [parse_memory(text) for text in ("2g", "512m", "1.5GiB", "67108864")] == [
        2 << 30,
        512 << 20,
        3 << 29,
        64 << 20,
    ]
    for text in ("", "two", "-1g", "1m", "2x"):
        with pytest.raises(UsageProblem):
            parse_memory(text)
