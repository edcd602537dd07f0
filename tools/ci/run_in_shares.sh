#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of a build in processes of forty tests each, one for each core at a time: a process
# with sanitizers takes as long to start as most tests take to run. Tests of the text of the sources
# ([text]) are left out, being the same in every build, and so are those tagged [long], which the
# release build runs and whose lines shorter tests run. Prints what fails, the longest tests, and the
# line of ctest, "N% tests passed, N tests failed out of N".
#
#   tools/ci/run_in_shares.sh build/clang
set -euo pipefail

readonly tests_of_a_share=40
readonly most_seconds=1200  # Of a share.
build=$(realpath "$1")
shares=$(mktemp -d)
trap 'rm -rf "$shares"' EXIT

total=0
for program in "$build"/bin/*_tests; do
  name=$(basename "$program")
  # Catch2 ends this with the number of tests. What it would take for syntax is escaped.
  { "$program" --list-test-names-only '~[text]~[long]' || true; } | sed 's/[][,\\"]/\\&/g' \
    >"$shares/$name.names"
  count=$(wc -l <"$shares/$name.names")
  if [[ $count -eq 0 ]]; then
    echo "run_in_shares.sh: $program lists no tests" >&2
    exit 1
  fi
  total=$((total + count))
  # In turn, so that the long tests of one file do not meet in one share.
  split --number="r/$(((count + tests_of_a_share - 1) / tests_of_a_share))" --numeric-suffixes \
    --suffix-length=3 "$shares/$name.names" "$shares/$name.share."
done

# Who asked for memory is written down with five callers instead of thirty: a tenth of the time or
# more. What is found is the same. ASAN_OPTIONS of the caller come later, and win.
export ASAN_OPTIONS=malloc_context_size=6:${ASAN_OPTIONS:-}

# A share that dies or takes too long has no closing line in its log.
cd "$build"
find "$shares" -name '*.share.*' -print0 | sort -z |
  xargs -0 -P "$(nproc)" -I SHARE bash -c '
    program=$(basename "${0%.share.*}")
    timeout "$1" "bin/$program" --durations yes --input-file "$0" >"$0.log" 2>&1 ||
      echo "exit status $?" >>"$0.log"' SHARE "$most_seconds" || true

passed=0
for log in "$shares"/*.log; do
  expected=$(wc -l <"${log%.log}")
  summary=$(tail -n 3 "$log")
  if [[ $summary =~ All\ tests\ passed\ \([0-9]+\ assertions?\ in\ $expected\ test\ cases?\) ]]
  then
    passed=$((passed + expected))
  else
    cat "$log"
    if [[ $summary =~ test\ cases:.*\|\ *([0-9]+)\ passed ]]; then
      passed=$((passed + BASH_REMATCH[1]))
    fi
  fi
done
echo "the longest tests:"
cat "$shares"/*.log | grep -E '^[0-9]+\.[0-9]+ s: ' | sort -rn | head -n 20 || true
failed=$((total - passed))
echo "$((100 * passed / total))% tests passed, $failed tests failed out of $total"
[[ $failed -eq 0 ]]
