#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs Trainyard: one command from a fresh Debian machine to
# results.
#
#   ./run.sh                                    the comparisons below
#   ./run.sh topology --cluster dgx-h100        any command of trainyard
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$root/tools/setup/packages.sh"
"$root/tools/setup/build.sh" release trainyard
trainyard=$root/build/release/bin/trainyard

if [[ $# -gt 0 ]]; then
  exec "$trainyard" "$@"
fi

show_and_run() {
  printf '\n$ trainyard'
  printf ' %s' "$@"
  printf '\n'
  "$trainyard" "$@"
}

# All-reduce on DGX H100 servers, as NCCL chooses and runs it and with three algorithms of which the
# links alone are simulated, next to what was measured with nccl-tests. The last table was measured
# on another number of servers, so only bus bandwidth can be compared.
cd "$root"
all_reduce=(collective all_reduce --cluster dgx-h100 -b 8 -e 8G -f 4)
one_server=(--nodes 1 --against validation/nccl/aws-p5-1x8-h100-nvswitch-allreduce.yaml)
plain=(--runtime plain --algo "ring,tree,halving-doubling")
show_and_run "${all_reduce[@]}" "${one_server[@]}" --runtime nccl
show_and_run "${all_reduce[@]}" "${one_server[@]}" "${plain[@]}"
show_and_run "${all_reduce[@]}" --nodes 8 --runtime nccl \
  --against validation/nccl/h100-8x8-400g-allreduce.yaml
show_and_run "${all_reduce[@]}" --nodes 4 "${plain[@]}" \
  --against validation/nccl/h100-8x8-400g-allreduce.yaml --against-other-ranks
