#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles each header of src/, tests/ and tools/ alone, so that none relies on what was included
# before it. Where x.cpp begins by including x.h, the build has done so already. Headers that need
# those of CUDA or NCCL are left to nvcc. The compiler is $CXX or g++.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export CXX=${CXX:-g++}

# What only nvcc compiles is in one folder.
is_for_nvcc() { [[ $1 == tools/calibrate/cuda/* ]]; }

needs_cuda() {
  local needed
  needed=$("$CXX" -std=c++20 -Isrc -Itools -M -MG -x c++ "$1")
  [[ $needed =~ (cuda_runtime|cublasLt|cudnn|nccl)\.h([[:space:]]|$) ]]
}

headers_to_compile() {
  local header source first
  while read -r header; do
    source=${header%.h}.cpp
    if is_for_nvcc "$header"; then
      if needs_cuda "$header"; then
        continue
      fi
    elif [[ -f $source ]]; then
      first=$(grep -m 1 '^#include' "$source")
      if [[ $first == "#include \"${header#*/}\"" ]]; then
        continue
      fi
    fi
    echo "$header"
  done < <(find src tests tools -name '*.h' -printf '%p\n' | sort)
}

# From standard input, because a header that is compiled itself warns of its #pragma once.
# shellcheck disable=SC2016  # The inner shell expands.
headers_to_compile | xargs -r -P "$(nproc)" -I HEADER bash -c '
  printf "#include \"%s\"\n" "${0#*/}" |
    "$CXX" -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror \
      -Isrc -Itests -Itools -x c++ - || { echo "$0: does not compile alone" >&2; exit 255; }' HEADER
