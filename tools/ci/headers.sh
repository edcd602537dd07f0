#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles each header of src/ and tests/ alone, so that none relies on what was included before it.
# The compiler is $CXX or g++.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export CXX=${CXX:-g++}

# The build of the tests defines TRAINYARD_SOURCE_DIR. From standard input, because a header that is
# compiled itself warns of its #pragma once.
# shellcheck disable=SC2016  # The inner shell expands.
find src tests -name '*.h' -printf '%p\n' | sort | xargs -r -P "$(nproc)" -I HEADER bash -c '
  printf "#include \"%s\"\n" "${0#*/}" |
    "$CXX" -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror \
      -DTRAINYARD_SOURCE_DIR=\"\" -Isrc -Itests -x c++ - || { echo "$0: does not compile alone" >&2; exit 255; }' HEADER
