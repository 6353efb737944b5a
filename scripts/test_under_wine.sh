#!/usr/bin/env bash
# Runs the tests of crates for Windows under Wine, on Linux. `make test-wine` runs this.
# Rust's standard library takes random numbers from bcryptprimitives.dll, which Wine has from 9.0 on. A stand-in with
# that one function is found by older versions.
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-pc-windows-gnu
compiler=x86_64-w64-mingw32-gcc
for tool in wine "$compiler"; do
  if ! command -v "$tool" >/dev/null; then
    echo "test-wine: $tool is missing: run \`apt-get install wine64 wine gcc-mingw-w64-x86-64\`" >&2
    exit 1
  fi
done
if ! rustup target list --installed | grep -qx "$target"; then
  echo "test-wine: the standard library of $target is missing: run \`rustup target add $target\`" >&2
  exit 1
fi

folder=$(mktemp -d)
export WINEPREFIX=$folder/prefix WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
trap 'wineserver -k 2>/dev/null || true; rm -rf "$folder"' EXIT
"$compiler" -shared -o "$folder/bcryptprimitives.dll" -x c - -ladvapi32 <<'END'
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) { return RtlGenRandom(data, (ULONG)length); }
END
# insta asks `cargo metadata` for this folder, which no program of Windows can run here.
export INSTA_WORKSPACE_ROOT=$PWD INSTA_UPDATE=no
export WINEPATH=Z:$folder CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
timeout 300 wineboot --init 2>/dev/null

crates=("$@")
if [[ ${#crates[@]} -eq 0 ]]; then
  crates=(clock client-protocol config-tree explain export record spans stats wire)
fi
timeout 3600 cargo test --locked --quiet --no-fail-fast --target "$target" "${crates[@]/#/--package=mcpace-}"
