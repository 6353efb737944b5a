#!/usr/bin/env bash
# Checks mcpace for macOS and Windows on any machine: clippy for both targets, without running anything.
# Zig is the C compiler for the targets; its wheel has the headers of both systems. `make check-platforms` runs this.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=.venv/bin/uv
targets=(aarch64-apple-darwin x86_64-pc-windows-gnu)
installed=$(rustup target list --installed)
for target in "${targets[@]}"; do
    if ! grep -qx "$target" <<<"$installed"; then
        echo "check-platforms: the standard library of $target is missing: run \`rustup target add $target\`" >&2
        exit 1
    fi
    "$uv" run --no-project --quiet --with cargo-zigbuild==0.24.1 --with ziglang==0.15.2 -- \
        cargo-zigbuild clippy --workspace --locked --target "$target" -- -D warnings
done
