"""Tries the wheels of dist/ in roots without compilers, Node and git. Run it by `make test-dist`, as root.

A root is a minimal Debian of the wheel's architecture, with Python alone. The program try_wheel.py runs inside it, in
namespaces of its own that end with it. Another architecture is emulated by qemu, which is registered in a user
namespace and nowhere else.
The roots for musl have a Python that build_musl_root.sh compiles, since Debian has none. The wheel is tried there
without extras: toktok-rs, of the extra lab, has no wheel for musl.

Usage: try_in_roots.py [ROOT...], by default all of ROOTS.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
SUITE = "bookworm"
PACKAGES = "base-files,base-passwd,ca-certificates,coreutils,dash,libc-bin,libstdc++6,python3-venv"
"""Python, and libstdc++ for numpy, which Debian's own images have."""
MUSL_PACKAGES = "bzip2,dpkg-dev,make,python3,xz-utils"
"""Tools that compile Python for a root of musl. musl-tools, of the root's architecture, brings the compiler."""
MUSL_BUILDER = "amd64"
"""Architecture of the Debian in which that Python is compiled."""
MUSL_PYTHON = "3.11"
DEBIAN = "http://deb.debian.org/debian"
TOOLS = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux"}
CERTIFICATES = Path("/etc/ssl/certs")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
EMULATOR = Path("/usr/lib/binfmt.d/qemu-aarch64.conf")
PASSED_ON = ("PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "UV_DEFAULT_INDEX", "SSL_CERT_FILE")
"""Variables of the package index that the root has, too."""
LIMIT_S = 3_600
UNREACHABLE = 3


@dataclass(frozen=True)
class Root:
    """A root, and how the wheel is tried in it."""

    wheel: str
    """Part of the name of the wheel for this root."""
    architecture: str
    """Debian's name."""
    extent: str | None = None
    """Option of try_wheel.py; without one, all is tried."""
    is_emulated: bool = False
    is_musl: bool = False


ROOTS = {
    "x86_64": Root("manylinux_2_17_x86_64", "amd64"),
    "aarch64": Root("manylinux_2_17_aarch64", "arm64", "--smoke", is_emulated=True),
    "musl": Root("musllinux_1_2_x86_64", "amd64", "--without-extras", is_musl=True),
    "musl-aarch64": Root("musllinux_1_2_aarch64", "arm64", "--without-extras", is_emulated=True, is_musl=True),
}


class SetupError(Exception):
    """A root cannot be made. The text is for the user."""


def main(names: list[str]) -> int:
    """Returns the exit code: 1 if a wheel fails, 3 if a root cannot be made or has another name."""
    try:
        check_machine(names)
        codes = [try_root(name) for name in names or ROOTS]
    except SetupError as error:
        print(f"test-dist: {error}", file=sys.stderr)
        return UNREACHABLE
    return max(codes)


def check_machine(names: list[str]) -> None:
    """Installs the missing tools.

    :raises SetupError: a root has another name, the user is not root, or a tool cannot be installed.
    """
    if unknown := sorted(set(names) - set(ROOTS)):
        raise SetupError(f"unknown root {', '.join(unknown)}; known are {', '.join(ROOTS)}")
    if os.geteuid() != 0:
        raise SetupError("roots are made as root: run `sudo make test-dist`")
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    missing += [] if KEYRING.exists() else [KEYRING.stem]
    if any(ROOTS[name].is_emulated for name in names or ROOTS) and not EMULATOR.exists():
        missing.append("qemu-user-static")
    if missing:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-qq", "--yes", "--no-install-recommends", *missing]):
            if subprocess.run(["apt-get", *words], env=environment, timeout=LIMIT_S, check=False).returncode:
                raise SetupError(f"a tool is missing: apt-get install {' '.join(missing)}")


def try_root(name: str) -> int:
    """Makes a root, runs try_wheel.py in it, removes the root, and returns the exit code."""
    root = ROOTS[name]
    wheels = sorted(DIST.glob(f"*{root.wheel}*.whl"))
    if len(wheels) != 1:
        raise SetupError(f"dist/ has {len(wheels)} wheels for {root.wheel}: run `make dist` with an empty dist/")
    print(f"{wheels[0].name}: {wheels[0].stat().st_size / 1e6:.2f} MB", flush=True)
    with tempfile.TemporaryDirectory(prefix="mcpace-root-") as folder:
        place = Path(folder, "root")
        make = make_musl_root if root.is_musl else make_root
        make(root, place)
        shutil.copytree(DIST, place / "dist", ignore=shutil.ignore_patterns("*.mcpb"))
        shutil.copy(Path(__file__).with_name("try_wheel.py"), place / "try_wheel.py")
        if root.is_musl:
            download_packages(root, wheels[0], place / "dist")
        version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        words = ["/usr/bin/python3", "/try_wheel.py", "/dist", "/user", version, *filter(None, [root.extent])]
        line = entered(root, place, words)
        return subprocess.run(line, env=environment(root), timeout=LIMIT_S, check=False).returncode


def make_root(root: Root, place: Path) -> None:
    """Extracts the packages, without running anything of theirs, and adds what the network needs."""
    words = ["mmdebstrap", "--quiet", "--variant=extract", f"--architectures={root.architecture}"]
    line = [*words, f"--include={PACKAGES}", SUITE, str(place)]
    run_setup(line)
    for name in ("passwd", "group"):
        shutil.copy(place / "usr/share/base-passwd" / f"{name}.master", place / "etc" / name)
    connect_root(place)


def make_musl_root(root: Root, place: Path) -> None:
    """Compiles Python in a Debian that is then removed, and keeps what it installs."""
    place.mkdir()
    program = Path(__file__).with_name("build_musl_root.sh")
    architectures = ",".join(dict.fromkeys((MUSL_BUILDER, root.architecture)))
    packages = ",".join([MUSL_PACKAGES, *(f"{name}:{root.architecture}" for name in ("busybox-static", "musl-tools"))])
    line = [
        "mmdebstrap", "--quiet", "--variant=apt", f"--architectures={architectures}", f"--include={packages}",
        f"--customize-hook=copy-in {shlex.quote(str(program))} /",
        f'--customize-hook=chroot "$1" sh /{program.name} {root.architecture}',
        f"--customize-hook=sync-out /root-of-musl {shlex.quote(str(place))}",
        SUITE, "/dev/null", *(f"{kind} {DEBIAN} {SUITE} main" for kind in ("deb", "deb-src")),
    ]  # fmt: skip
    run_setup(line)
    connect_root(place)


def download_packages(root: Root, wheel: Path, folder: Path) -> None:
    """Downloads the packages that the wheel needs: pip in the root of musl cannot, because its Python has no TLS."""
    run_setup([
        sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--python-version", MUSL_PYTHON,
        "--platform", root.wheel, "--platform", root.wheel.replace("1_2", "1_1"), "--dest", str(folder), str(wheel),
    ])  # fmt: skip


def run_setup(line: list[str]) -> None:
    """Runs a command that makes a root.

    :raises SetupError: it fails.
    """
    if subprocess.run(line, timeout=LIMIT_S, check=False).returncode:
        raise SetupError(f"this command failed: {shlex.join(line)}")


def connect_root(place: Path) -> None:
    """Lets any user enter the root, and adds what the network needs."""
    place.chmod(0o755)
    place.parent.chmod(0o755)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(Path("/etc", name), place / "etc" / name)
    shutil.copytree(CERTIFICATES, place / CERTIFICATES.relative_to("/"), dirs_exist_ok=True)


def entered(root: Root, place: Path, words: list[str]) -> list[str]:
    """The command line that runs ``words`` in the root. All its processes end with it, and all its mounts."""
    setup = ["set -e", 'mount --rbind /dev "$0/dev"', 'mount -t proc proc "$0/proc"']
    if root.is_emulated:
        setup += [
            "mount -t binfmt_misc none /proc/sys/fs/binfmt_misc",
            f"cat {EMULATOR} > /proc/sys/fs/binfmt_misc/register",
        ]
    setup.append('exec chroot "$0" "$@"')
    namespaces = ["--mount", "--pid", "--fork", "--kill-child"]
    if root.is_emulated:
        namespaces += ["--user", "--map-root-user"]
    return ["unshare", *namespaces, "sh", "-c", "\n".join(setup), str(place), *words]


def environment(root: Root) -> dict[str, str]:
    """The environment of the root: nothing of this machine but where the package index is."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    if root.is_musl:
        passed["PIP_NO_INDEX"] = "1"
    return {"LANG": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONUNBUFFERED": "1", **passed}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
