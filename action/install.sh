#!/usr/bin/env bash
# Installs mcpace into a virtual environment of its own, apart from the packages of the server.
#
# Environment: INPUT_VERSION, INPUT_FIND_LINKS and INPUT_PYTHON as in action.yml; GITHUB_ACTION_PATH, GITHUB_OUTPUT and
# RUNNER_TEMP as GitHub sets them. The output `mcpace` is the path of the command.
set -euo pipefail

version=$INPUT_VERSION
if [[ -z $version ]]; then
  version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$GITHUB_ACTION_PATH/Cargo.toml" | head -n 1)
fi
if [[ ! $version =~ ^[0-9][0-9A-Za-z.!+_-]*$ ]]; then
  echo "mcpace: the input version is not a version: write one like 0.1.0" >&2
  exit 2
fi

options=(--quiet --disable-pip-version-check --only-binary mcpace)
if [[ -n $INPUT_FIND_LINKS ]]; then
  options+=("--find-links=$INPUT_FIND_LINKS")
fi

environment=$RUNNER_TEMP/mcpace-environment
"$INPUT_PYTHON" -m venv "$environment"
programs=$environment/bin
if [[ ! -d $programs ]]; then
  programs=$environment/Scripts # on Windows
fi
"$programs/python" -m pip install "${options[@]}" "mcpace[lab]==$version"
"$programs/mcpace" --version
echo "mcpace=$programs/mcpace" >>"$GITHUB_OUTPUT"
