#!/usr/bin/env bash
# Runs one command of mcpace. Writes the summary of the job, annotations, and files. Exits with the code of the command.
#
# Environment: MCPACE, the path of the command; INPUT_* as in action.yml; GITHUB_OUTPUT, GITHUB_STEP_SUMMARY and
# RUNNER_TEMP as GitHub sets them. No input becomes shell text: each one is a word of the command.
set -euo pipefail

fail() {
  echo "mcpace: $1" >&2
  exit 2
}

# Adds an option for an input that is not empty.
add_option() {
  if [[ -n $2 ]]; then
    words+=("$1" "$2")
  fi
}

# Adds an option, or the line alone where there is no option, for each line of an input that is not empty.
add_lines() {
  local line
  while IFS= read -r line; do
    if [[ -n $line ]]; then
      words+=(${1:+"$1"} "$line")
    fi
  done <<<"${2//$'\r'/}"
}

[[ -n $INPUT_TARGET ]] || fail "the input target is empty: write a URL, or stdio: and a command"
[[ -z $INPUT_BASE || -z $INPUT_BASELINE ]] || fail "give the input base or the input baseline, not both"
[[ $INPUT_INCONCLUSIVE =~ ^(fail|pass)$ ]] || fail "the input inconclusive must be fail or pass"
command=$INPUT_COMMAND
if [[ -z $command ]]; then
  command=measure
  [[ -z $INPUT_BASE && -z $INPUT_BASELINE ]] || command=gate
fi
[[ $command =~ ^(gate|measure|load)$ ]] || fail "the input command must be gate, measure or load"

results=$(mktemp -d "$RUNNER_TEMP/mcpace-results-XXXXXX")
run=$results/run.json
words=("$command" --out "$run" --html "$results/report.html")
add_option --base "$INPUT_BASE"
add_option --baseline "$INPUT_BASELINE"
add_option --tool "$INPUT_TOOL"
add_option --args "$INPUT_ARGUMENTS"
# Without this option, a settings file of the change under test would set the tolerance.
[[ $command != gate ]] || add_option --tolerance "${INPUT_TOLERANCE:-10%}"
add_option --trials "$INPUT_TRIALS"
add_lines --threshold "$INPUT_THRESHOLDS"
add_lines --fail-on "$INPUT_FAIL_ON"
add_lines "" "$INPUT_OPTIONS"

# The output holds text of the server, which must not act as a workflow command.
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$token"
code=0
"$MCPACE" "${words[@]}" -- "$INPUT_TARGET" 2>"$results/log.txt" || code=$?
cat "$results/log.txt" >&2
is_reported=
if [[ -s $run ]]; then
  # Paths of source files are relative to the working directory; GitHub expects them relative to the repository.
  prefix=$(git rev-parse --show-prefix 2>/dev/null || true)
  "$MCPACE" report "$run" --prefix "$prefix" --markdown "$results/summary.md" --sarif "$results/mcpace.sarif" \
    --annotations "$results/annotations.txt" >/dev/null && is_reported=1
fi
echo "::$token::"

case $code in
  0) outcome=passed ;;
  1) outcome=failed ;;
  4) outcome=inconclusive ;;
  *) outcome=error ;;
esac
if [[ -n $is_reported ]]; then
  cat "$results/summary.md" >>"$GITHUB_STEP_SUMMARY"
  cat "$results/annotations.txt"
  rm "$results/annotations.txt"
else
  printf '### mcpace %s: %s\n\nNothing was measured. The log of the step says why.\n' "$command" "$outcome" >>"$GITHUB_STEP_SUMMARY"
  echo "::error title=mcpace $command::Nothing was measured (exit code $code). The log of the step says why."
fi
{
  echo "outcome=$outcome"
  echo "exit-code=$code"
  echo "results=$results"
  echo "run=$run"
  echo "sarif=$results/mcpace.sarif"
} >>"$GITHUB_OUTPUT"

if [[ $code -eq 4 && $INPUT_INCONCLUSIVE == pass ]]; then
  code=0
fi
exit "$code"
