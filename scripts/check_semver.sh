#!/usr/bin/env bash
# Compares the interface of each public crate with the last release. Needs cargo-semver-checks and the tags.
set -euo pipefail
cd "$(dirname "$0")/.."

last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)
if [[ -z $last ]]; then
  echo "There is no release to compare with."
  exit 0
fi
cargo semver-checks --baseline-rev "$last" \
  --package mcpace-serve --package mcpace-client --package mcpace-auth --package mcpace-redis
