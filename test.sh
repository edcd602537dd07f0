#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs all tests. Arguments go to ctest: ./test.sh -R random
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$root/tools/setup/packages.sh"
"$root/tools/setup/build.sh" release

cd "$root"
ctest --preset release --output-on-failure -j2 "$@"
