#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs libFuzzer over every reader of files (tests/fuzz), from its seeds, for a fixed number of inputs
# that a fixed seed makes, on all cores. The first input that ends a reader is kept in build/fuzz, and
# the status is 1: mend the reader, and put the input into tests/fuzz/found/READER as a regression.
#
#   tools/ci/fuzz.sh build/clang              as CI does, under a minute
#   tools/ci/fuzz.sh build/clang 100 goal     a hundred times as many inputs, of one reader
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly build=$1 times=${2:-1} wanted=${3:-}
export program=$build/bin/trainyard_fuzz found=build/fuzz times
scratch=$(mktemp -d)
export scratch
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$found"

# What libFuzzer says is shown where something was found. A lack of memory is found by its limit, what
# never ends by its own.
run_reader() {
  local name=$1 runs=$(($2 * times)) log=$scratch/$1.log corpus=$scratch/$1
  shift 2
  mkdir "$corpus"
  cp -- "$@" "$corpus"
  if ! "$program" "--reader=$name" -runs="$runs" -seed=1 -timeout=20 -rss_limit_mb=3000 \
    -print_final_stats=1 -artifact_prefix="$found/$name-" "$corpus" >"$log" 2>&1; then
    grep -v -E '^#[0-9]+' "$log" | tail -n 60
    echo "$name: see $found/$name-*"
    return 255
  fi
  awk -v name="$name" '/number_of_executed_units/ {runs = $2} / ft: / {for (i = 1; i < NF; ++i)
    if ($i == "cov:") branches = $(i + 1)} END {print name ": " runs " inputs, " branches " branches"}' "$log"
}
export -f run_reader

"$program" --list | { if [[ -n $wanted ]]; then grep "^$wanted "; else cat; fi; } |
  xargs -P "$(nproc)" -I LINE bash -c 'run_reader $0' LINE
