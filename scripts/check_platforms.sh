#!/usr/bin/env bash
# Checks mcpace for macOS and Windows on any machine: clippy for both targets, without running anything.
# Zig is the C compiler for the targets; its wheel has the headers of both systems, but for one of macOS, which mimalloc
# reads and which is declared here. Nothing is linked. `make check-platforms` runs this.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=.venv/bin/uv
targets=(aarch64-apple-darwin x86_64-pc-windows-gnu)
installed=$(rustup target list --installed)
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
mkdir "$headers/CommonCrypto"
touch "$headers/CommonCrypto/CommonCryptoError.h"
cat >"$headers/CommonCrypto/CommonRandom.h" <<'END'
#include <stddef.h>
#include <stdint.h>
typedef int32_t CCRNGStatus;
enum { kCCSuccess = 0 };
CCRNGStatus CCRandomGenerateBytes(void *bytes, size_t count);
END
export CFLAGS_aarch64_apple_darwin="-I$headers"

for target in "${targets[@]}"; do
    if ! grep -qx "$target" <<<"$installed"; then
        echo "check-platforms: the standard library of $target is missing: run \`rustup target add $target\`" >&2
        exit 1
    fi
    "$uv" run --no-project --quiet --with cargo-zigbuild==0.24.1 --with ziglang==0.15.2 -- \
        cargo-zigbuild clippy --workspace --locked --target "$target" -- -D warnings
done
