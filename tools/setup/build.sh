#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds a preset of CMakePresets.json in build/PRESET. Prints nothing when all is
# well but one line before a first build, and the whole output when something fails.
#
#   tools/setup/build.sh PRESET [TARGET]     TARGET defaults to everything
set -euo pipefail

preset=${1:?usage: tools/setup/build.sh PRESET [TARGET]}
target=${2:-all}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

# Where nothing may be written outside the checkout, the compiler cache lies in it.
if [[ ! -w ${HOME:-/nonexistent} ]]; then
  export CCACHE_DIR=${CCACHE_DIR:-$root/build/ccache}
fi
mkdir -p "build/$preset"
log=build/$preset/build.log

# A build folder that was made elsewhere (a checkout that was moved or mounted) is of no use.
configure=(cmake --preset "$preset")
cache=build/$preset/CMakeCache.txt
if [[ -f $cache ]] && ! grep -q -x -F -e "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
  configure=(cmake --fresh --preset "$preset")
fi
if [[ ! -f $cache ]]; then
  echo "building preset $preset; the first time takes a few minutes" >&2
fi

if ! { "${configure[@]}" && cmake --build --preset "$preset" --target "$target"; } >"$log" 2>&1
then
  cat "$log" >&2
  echo "build.sh: preset $preset could not be built (see above, or $log)" >&2
  exit 1
fi
