#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles each header of src/, tests/ and tools/ and each source of src/ alone, so that none relies
# on what was included before it: builds join the files of a room. A header that the source of its
# name includes first is compiled with that one. Headers that need those of CUDA, NCCL or MPI are left
# to nvcc and mpicxx, and so are the sources beside them, and the program of mpirun is left to the build,
# which knows where MPI is. The compiler is $CXX or g++.
#
#   tools/ci/alone.sh             all
#   tools/ci/alone.sh --last N    those that the last N commits changed, and those that include a
#                                 header which these made include less
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export CXX=${CXX:-g++}

# All that only nvcc compiles is in one folder, and all of the harness that only mpicxx does.
is_for_others() { [[ $1 == tools/calibrate/cuda/* || $1 == tools/calibrate/hosts/* ]]; }

needs_others() {
  local needed
  needed=$("$CXX" -std=c++20 -Isrc -Itools -M -MG -x c++ "$1")
  [[ $needed =~ (cuda_runtime|cublasLt|cudnn|nccl|mpi)\.h([[:space:]]|$) ]]
}

# Whether FILE changed, or includes a header that includes less than before: nothing else that changes
# in a header is seen by this check alone. Everything changed where git cannot say.
changed=
includes_less=
is_changed() {
  [[ -z $changed ]] || grep -q -x -F -e "$1" <<<"$changed" ||
    { [[ -n $includes_less && -f $1 ]] && grep -q -F -e "$includes_less" "$1"; }
}
if [[ ${1:-} == --last ]] && git rev-parse -q --verify "HEAD~$2" >/dev/null; then
  changed=$(git diff --name-only "HEAD~$2" HEAD -- src tests tools; echo none)
  includes_less=$(git diff -U0 "HEAD~$2" HEAD -- src tests tools | awk '
    /^--- / { sub("^--- a/[a-z]+/", ""); header = $0 }
    /^-#include/ && header ~ /[.]h$/ { print "#include \"" header "\"" }' | sort -u)
fi

files_to_compile() {
  local file source
  while read -r file; do
    source=${file%.h}.cpp
    if is_for_others "$file"; then
      if needs_others "$file"; then
        continue
      fi
    elif [[ $file == *.h && $source != "$file" && -f $source ]] &&
      [[ $(grep -m 1 '^#include' "$source") == "#include \"${file#*/}\"" ]]; then
      file=$source
    fi
    if is_changed "$file" || is_changed "${file%.cpp}.h"; then
      echo "$file"
    fi
  done < <(find src tests tools -name '*.h' -printf '%p\n' -o -path 'src/*.cpp' ! -name mpi_main.cpp \
    -printf '%p\n' |
    sort) | sort -u
}

# From standard input, because a header that is compiled itself warns of its #pragma once.
# shellcheck disable=SC2016  # The inner shell expands.
files_to_compile | xargs -r -P "$(nproc)" -I FILE bash -c '
  printf "#include \"%s\"\n" "${0#*/}" |
    "$CXX" -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror \
      -Isrc -Isrc/api -Itests -Itools -isystem /usr/include/eigen3 -x c++ - || { echo "$0: does not compile alone" >&2; exit 255; }' FILE
