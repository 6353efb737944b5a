"""Evidence about Java programs: their classes' origins, the samples of a recording, and the options of the machine."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from mcpace import _core
from mcpace.lab.inside import java_reader, java_recording, java_runtime, java_tools
from mcpace.lab.inside.java_packages import JavaPackages
from mcpace.lab.inside.java_recording import PERIOD_NS, fill_moments, read_recording
from mcpace.lab.inside.java_runtime import JavaInstrumentation

MS = 1_000_000


def make_jar(path: Path, *names: str, manifest: str = "Manifest-Version: 1.0\r\n\r\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", manifest)
        for name in names:
            jar.writestr(name, b"")
    return path


def folder_and_jars(folder: Path) -> tuple[str, str]:
    (folder / "classes" / "com" / "acme" / "app").mkdir(parents=True)
    library = make_jar(folder / "lib" / "widgets-2.1.0.jar", "com/widgets/Box.class")
    return f"{folder / 'classes'}{os.pathsep}{library}", "com.acme.app.Main --port 1"


def shaded_jar(folder: Path) -> tuple[str, str]:
    jar = make_jar(
        folder / "app-1.0.jar",
        "com/acme/app/Main.class",
        "com/acme/tools/Forecast.class",
        "com/widgets/Box.class",
        "org/postgresql/Driver.class",
        "META-INF/maven/com.widgets/widgets/pom.properties",
        "META-INF/maven/com.acme/app/pom.properties",
        manifest="Manifest-Version: 1.0\r\nMain-Class: com.acme.app.\r\n Main\r\n\r\n",
    )
    return str(jar), f"{jar} --port 1"


def boot_jar(folder: Path) -> tuple[str, str]:
    jar = make_jar(
        folder / "app.jar",
        "org/springframework/boot/loader/launch/JarLauncher.class",
        "BOOT-INF/classes/com/acme/app/Main.class",
        "BOOT-INF/classes/com/acme/tools/Forecast.class",
        "BOOT-INF/lib/widgets-2.1.0.jar",
        manifest="Main-Class: org.springframework.boot.loader.launch.JarLauncher\nStart-Class: com.acme.app.Main\n\n",
    )
    return str(jar), str(jar)


def jar_with_class_path(folder: Path) -> tuple[str, str]:
    make_jar(folder / "lib" / "widgets-2.1.0.jar", "com/widgets/Box.class")
    classes = "Class-Path: lib/widgets-2.1.0.jar http://elsewhere/x.jar\n"
    jar = make_jar(
        folder / "app.jar", "com/acme/app/Main.class", manifest=f"Main-Class: com.acme.app.Main\n{classes}\n"
    )
    return str(jar), f"{jar} x"


@pytest.mark.parametrize("layout", [folder_and_jars, shaded_jar, boot_jar, jar_with_class_path])
def test_the_authors_classes_are_told_from_those_of_libraries(
    layout: Callable[[Path], tuple[str, str]], tmp_path: Path
) -> None:
    packages = JavaPackages(*layout(tmp_path))
    assert packages.library("com.acme.app.Main") is None
    assert packages.library("com.acme.app.weather.Weather$Inner") is None
    if layout in (shaded_jar, boot_jar):
        assert packages.library("com.acme.tools.Forecast") is None
    if layout is not boot_jar:  # names in the jars within a jar are not read
        assert packages.library("com.widgets.Box") == "widgets"
    assert packages.library("org.postgresql.Driver") == "postgresql"
    assert packages.library("org.springframework.boot.loader.launch.JarLauncher") == "spring"
    assert packages.library("io.opentelemetry.javaagent.Agent") == "opentelemetry"


def test_a_class_path_that_cannot_be_read_leaves_the_known_libraries(tmp_path: Path) -> None:
    (tmp_path / "broken.jar").write_bytes(b"PK\x03\x04 no jar")
    os.mkfifo(tmp_path / "pipe.jar")
    path = os.pathsep.join([str(tmp_path / name) for name in ("broken.jar", "pipe.jar", "none.jar")] + ["", "\0"])
    packages = JavaPackages(path, "Main")
    assert packages.library("Main") is None
    assert packages.library("reactor.core.publisher.Flux") == "reactor"


def test_libraries_that_the_agent_brings_are_told_from_those_of_the_server(tmp_path: Path) -> None:
    path = str(tmp_path / "okhttp-5.1.0.jar")
    assert JavaPackages(path, "Main").library("okhttp3.OkHttpClient") == "okhttp"
    assert JavaPackages(path, "Main", has_agent=True).library("okhttp3.OkHttpClient") == "opentelemetry"
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("okhttp3/OkHttpClient.class", "")
    assert JavaPackages(path, "Main", has_agent=True).library("okhttp3.OkHttpClient") == "okhttp"
    assert JavaPackages(path, "Main", has_agent=True).library("okio.Buffer") == "opentelemetry"


LINES = """process\t4711
property\tsun.java.command\tcom.acme.Main
frame\t0\tjava.base\tjava.lang.Thread\tsleep\t0
frame\t1\t\tcom.acme.Weather$1$Part\tlambda$forecast$0\t12
frame\t2\t\tcom.acme.Weather$$Lambda$14\tapply\t0
frame\t3\t\tio.netty.Loop\trun\t3
frame\t4\t\tcom.acme.Main\tmain\t5
frame\t5\tjava.base\tsun.nio.ch.EPoll\twait\t0
stack\t0\t0\t1\t2\t3
stack\t1\t3
stack\t2\t0\t4
stack\t3\t5\t3
sample\t1000000000\t7\t1\trunning
sample\t1000400000\t8\t3\tnative
sample\t1104000000\t7\t1\trunning
wait\t1020000000\t1060000000\t9\t0
wait\t1000000000\t1104000000\t1\t2
pause\t1070000000\t1072000000
"""


def test_a_recording_becomes_samples_of_all_moments() -> None:
    recording = read_recording(LINES, lambda wall: wall - 1_000_000_000)
    assert (recording.pid, recording.pauses, recording.is_cut) == (4711, [(70 * MS, 72 * MS)], False)
    sleeping = [("Thread.sleep", "jrt:/java.base/java/lang/Thread.java", 0)]
    sleeping += [
        ("Weather.Part.forecast", "com/acme/Weather.java", 12),
        ("Loop.run", "netty.jar!/io/netty/Loop.java", 3),
    ]
    of_thread = {thread: recording.stacks[stack] for _, thread, stack, _ in recording.samples}
    assert of_thread[9] == sleeping
    assert of_thread[0] == []  # no thread was seen
    assert 1 not in of_thread  # main waits for the end
    states = {(thread, running) for _, thread, _, running in recording.samples}
    assert states == {(7, True), (8, False), (9, False), (0, False)}
    waiting = [at for at, thread, *_ in recording.samples if thread == 9]
    assert len(waiting) == 20
    assert all(20 * MS <= at < 60 * MS for at in waiting)
    # Both threads of the first pass have one time, and the moments are one period apart.
    times = sorted({at for at, *_ in recording.samples})
    assert {after - before for before, after in pairwise(times)} == {PERIOD_NS}


def test_a_recorder_that_keeps_a_longer_period_is_not_taken_for_an_idle_program() -> None:
    samples = [(number * 11 * MS, 1, 1, True) for number in range(100)]
    moments, is_cut = fill_moments(samples, [], [])
    assert (moments, is_cut) == (samples, False)


def test_threads_that_were_sampled_within_one_period_are_of_one_moment() -> None:
    samples = [(at, thread, 1, True) for at in range(0, 40 * MS, 2 * MS) for thread in (1, 2)]
    apart = [(at + (thread - 1) * MS, thread, stack, running) for at, thread, stack, running in samples]
    moments, _ = fill_moments(apart, [], [])
    assert moments == samples


def test_a_pause_leaves_the_threads_where_they_ran() -> None:
    samples = [(at * MS, 1, stack, True) for at, stack in ((0, 1), (2, 1), (20, 2), (22, 2), (44, 3))]
    moments, _ = fill_moments(samples, [], [(3 * MS, 19 * MS), (30 * MS, 40 * MS)])
    stacks = {at // MS: stack for at, _, stack, _ in moments}
    assert {stacks[at] for at in range(0, 19, 2)} == {1}
    # No thread ran before the second pause.
    assert {stacks[at] for at in range(24, 44, 2)} == {0}


def test_samples_are_limited_however_many_threads_wait_at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_recording, "MOST_SAMPLES", 1_000)
    waits = [(0, 900 * MS, thread, 0) for thread in range(50)]
    moments, is_cut = fill_moments([], waits, [])
    assert (len(moments), is_cut) == (950, True)
    # Two waits of a thread at one moment are one sample.
    moments, is_cut = fill_moments([], [(0, 50 * MS, 1, 0), (10 * MS, 20 * MS, 1, 1)], [])
    assert ([stack for *_, stack, _ in moments if not stack], is_cut) == ([0] * len(moments), False)
    assert len({at for at, *_ in moments}) == len(moments)


SLEEPS = """
class Sleeps {
  public static void main(String[] words) throws Exception {
    for (int turn = 0; turn < 20; turn++) Thread.sleep(2);
  }
}
"""


@pytest.mark.skipif(shutil.which("javac") is None, reason="a compiler for Java is not installed")
def test_the_reader_stops_at_a_number_of_bytes(tmp_path: Path) -> None:
    def run(*command: str) -> str:
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True, env=environment
        ).stdout

    environment = {**os.environ, **dict.fromkeys(java_reader.OPTION_VARIABLES, "")}
    (tmp_path / "Sleeps.java").write_text(SLEEPS)
    run("javac", "-d", ".", "Sleeps.java", str(java_tools.SOURCES / "ReadRecording.java"))
    settings = f"settings={java_runtime.EVENTS},filename=a.jfr,dumponexit=true"
    run("java", f"-XX:StartFlightRecording={settings}", "-cp", ".", "Sleeps")
    whole = run("java", "-cp", ".", "ReadRecording", "a.jfr", str(1 << 20))
    lines = java_recording.parse_lines(whole)
    assert (len(lines.waits) > 5, lines.is_cut) == (True, False)
    limit = len(whole) // 2
    cut = run("java", "-cp", ".", "ReadRecording", "a.jfr", str(limit))
    assert cut.endswith("\nmore\n")
    assert whole.startswith(cut.removesuffix("more\n"))
    assert limit <= len(cut) < len(whole)
    assert java_recording.parse_lines(cut).is_cut


@pytest.mark.parametrize("text", ["x\t1\n", "sample\t1\n", "sample\ta\tb\tc\td\n", "sample\t1\t1\t9\trunning\n"])
def test_other_text_is_no_recording(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        read_recording(text, int)


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java_runtime, "ensure_agent", lambda say: tmp_path / "agent.jar")
    monkeypatch.setattr(java_runtime, "ensure_reader", lambda say: tmp_path)
    monkeypatch.setattr(java_runtime, "ensure_profiler", lambda say: tmp_path / "profiler.so")
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)


def missing(instrumentation: JavaInstrumentation) -> list[tuple[str, str]]:
    instrumentation.variables([])
    instrumentation.close()
    client = _core.Client(["true"])
    recording = client.recording()
    instrumentation.add_to(recording)
    events = [event["event"] for event in recording.events()]
    found = [event["source-missing"] for event in events if "source-missing" in event]
    return [(one["source"], one["reason"]) for one in found]


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    "printed",
    [
        "stack\t0\nsample\t1\t1\t0\tnative\n",  # no frames
        "sample\t1\t1\t9\trunning\n",  # no stack
        f"process\t1\nframe\t0\t\tA\tb\t{1 << 40}\nstack\t0\t0\nsample\t1\t1\t0\trunning\n",
        f"process\t1\npause\t{10**30}\t{10**30}\n",
    ],
)
def test_a_damaged_recording_is_a_missing_source(tmp_path: Path, printed: str) -> None:
    (tmp_path / "printed").write_text(printed)
    script = f'case "$*" in *ReadRecording*) cat "{tmp_path / "printed"}";; esac'
    found = JavaInstrumentation([program(tmp_path / "java", script)], tmp_path, print)
    assert found.variables([])
    for name in ("a.jfr", "b.jfr"):
        (tmp_path / "java-recordings" / name).write_text("x")
    reasons = missing(found)
    assert [source for source, _ in reasons] == ["stacks", "stacks"]
    assert all(" can't be read: " in reason for _, reason in reasons)


def test_only_regular_files_are_recordings(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "kept.jfr").write_text("x")
    (tmp_path / "empty.jfr").touch()
    (tmp_path / "folder.jfr").mkdir()
    (tmp_path / "gone.jfr").symlink_to("none")
    os.mkfifo(tmp_path / "pipe.jfr")
    assert java_runtime.recording_files(tmp_path) == [tmp_path / "a" / "kept.jfr"]
    assert java_runtime.recording_files(tmp_path / "none") == []


@pytest.mark.usefixtures("tools")
def test_the_users_own_options_stay_and_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = program(tmp_path / "java", "exit 0")
    folder = tmp_path / "with blank"
    folder.mkdir()
    found = JavaInstrumentation([java, "-jar", "x.jar"], folder, print)
    options = dict(found.variables([("JAVA_TOOL_OPTIONS", "-Xmx1g -javaagent:mine.jar")]))["JAVA_TOOL_OPTIONS"]
    assert options.endswith(f"-javaagent:{tmp_path}/agent.jar -Xmx1g -javaagent:mine.jar")
    assert f'"-agentpath:{tmp_path}/profiler.so=start,' in options
    assert f',jfrsync={java_runtime.EVENTS},file={folder}/java-recordings/%p.jfr"' in options
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dshell=1")
    assert dict(found.variables([]))["JAVA_TOOL_OPTIONS"].endswith(" -Dshell=1")
    # Two agents of OpenTelemetry would instrument the same classes.
    own = dict(found.variables([("JAVA_TOOL_OPTIONS", "-javaagent:/opt/opentelemetry-javaagent.jar")]))
    assert "agent.jar" not in own["JAVA_TOOL_OPTIONS"].replace("opentelemetry-javaagent.jar", "")
    assert "OTEL_INSTRUMENTATION_COMMON_DEFAULT_ENABLED" not in own


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("script", "quiet"),
    [
        ("exit 0", "-Xlog:jfr+startup=off"),
        # Java 11 does not know that log, and says so on stdout.
        ('case "$JAVA_TOOL_OPTIONS" in *Xlog*) echo "no such tag";; esac', "-XX:+DisplayVMOutputToStderr"),
        # Java 8 does not start with it.
        ('case "$JAVA_TOOL_OPTIONS" in *Xlog*) exit 1;; esac', "-XX:+DisplayVMOutputToStderr"),
    ],
)
def test_options_are_those_with_which_java_starts_and_keeps_quiet(script: str, quiet: str, tmp_path: Path) -> None:
    found = JavaInstrumentation([program(tmp_path / "java", script)], tmp_path, print)
    assert dict(found.variables([]))["JAVA_TOOL_OPTIONS"].startswith(f"{quiet} ")


@pytest.mark.usefixtures("tools")
def test_a_java_that_does_not_load_the_profiler_samples_itself(tmp_path: Path) -> None:
    script = 'case "$JAVA_TOOL_OPTIONS" in *agentpath*) exit 1;; esac'
    found = JavaInstrumentation([program(tmp_path / "java", script)], tmp_path, print)
    options = dict(found.variables([]))["JAVA_TOOL_OPTIONS"]
    assert f"-XX:StartFlightRecording=settings={java_runtime.EVENTS},filename={tmp_path}/java-recordings" in options
    assert "agentpath" not in options


@pytest.mark.usefixtures("tools")
def test_a_java_without_a_recorder_starts_without_it(tmp_path: Path) -> None:
    refuses = program(tmp_path / "java", 'test -z "$JAVA_TOOL_OPTIONS" || { echo "no JFR here" >&2; exit 1; }')
    found = JavaInstrumentation([refuses, "-jar", "x.jar"], tmp_path, print)
    assert dict(found.variables([]))["JAVA_TOOL_OPTIONS"] == f"-javaagent:{tmp_path}/agent.jar"
    assert missing(found) == [("stacks", f"{refuses} can't record itself: no JFR here")]


@pytest.mark.usefixtures("tools")
def test_a_path_that_options_cannot_hold_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "a,b"
    folder.mkdir()
    found = JavaInstrumentation([program(tmp_path / "java", "exit 0")], folder, print)
    assert dict(found.variables([]))["JAVA_TOOL_OPTIONS"] == f"-javaagent:{tmp_path}/agent.jar"
    [(source, reason)] = missing(found)
    assert (source, "commas" in reason) == ("stacks", True)


@pytest.mark.usefixtures("tools")
def test_a_program_that_leaves_no_recording_is_told_where_java_was_started(tmp_path: Path) -> None:
    java = program(tmp_path / "java", "exit 0")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    [(source, reason)] = missing(JavaInstrumentation([java, "-jar", "x.jar"], tmp_path / "a", print))
    assert (source, reason) == (
        "stacks",
        f"no Java virtual machine left a recording, though the command starts {java}",
    )
    found = missing(JavaInstrumentation(["./a-native-image"], tmp_path / "b", print))
    assert [source for source, _ in found] == ["spans", "stacks"]
    assert all("does not tell which java it starts" in reason for _, reason in found)


@pytest.mark.usefixtures("tools")
def test_only_the_java_that_the_command_starts_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("path", "own", "jdk8"):
        (tmp_path / name).mkdir()
        program(tmp_path / name / "java", f"echo {name} >>{tmp_path}/tried")
    in_path, own, jdk8 = (str(tmp_path / name / "java") for name in ("path", "own", "jdk8"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    of_user = [("PATH", f"{tmp_path / 'own'}{os.pathsep}{os.environ['PATH']}")]
    script = program(tmp_path / "script", "")
    Path(script).write_text("#!/usr/bin/env -S java --source 17\n")
    cases: list[tuple[list[str], list[tuple[str, str]], str | None]] = [
        (["java", "-classpath", "PATH=x"], [], in_path),
        (["java"], of_user, own),
        (["java"], [("JAVA_HOME", "/opt/jdk8")], in_path),
        ([jdk8, "-jar", "x.jar"], of_user, jdk8),
        (["./jdk8/bin/../java"], [], None),
        (["./jdk8/java"], [], jdk8),
        (["env", "A=b", jdk8, "-jar", "x.jar"], [], jdk8),
        (["env", "A=b", "java"], [], in_path),
        (["sh", "-c", "exec jdk8/java -jar x.jar"], [], jdk8),
        ([script], [], in_path),
        (["env", "PATH=/opt/jdk8/bin", "java"], [], None),
        (["sh", "-c", "PATH=/opt/jdk8/bin:$PATH java -jar x.jar"], [], None),
        (["bash", "-lc", "java -jar x.jar"], [], None),
        (["sh", "-c", "$JAVA_HOME/bin/java -jar x.jar"], [], None),
        (["sh", "-c", "cd /opt && ./java"], [], None),
        (["./mvnw", "spring-boot:run"], [("JAVA_HOME", "/opt/jdk8")], None),
        (["./gradlew", "run"], [], None),
        (["a-script"], [], None),
    ]
    for number, (command, variables, java) in enumerate(cases):
        (tmp_path / str(number)).mkdir()
        (tmp_path / "tried").unlink(missing_ok=True)
        assert java_runtime.find_java(command, variables) == java, command
        instrumentation = JavaInstrumentation(command, tmp_path / str(number), print)
        options = instrumentation.variables(variables)
        assert instrumentation.variables(variables) == options
        assert bool(options) == (java is not None), command
        tried = (tmp_path / "tried").read_text().split() if (tmp_path / "tried").exists() else []
        assert tried == ([Path(java).parent.name] if java else []), command


def test_without_java_the_command_that_adds_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = missing(JavaInstrumentation(["java", "-jar", "x.jar"], tmp_path, print))
    assert [source for source, _ in found] == ["spans", "stacks"]
    assert all("apt-get install" in reason for _, reason in found)
