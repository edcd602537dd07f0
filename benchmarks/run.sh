#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All speed runs, one after the other, each in a process of its own on one core.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/tools/setup/build.sh" release speed_runs
bin=$root/build/release/bin

"$bin/micro"
for case in "ring 256" "ring 1024" "ring 4096" "alltoall 256" "alltoall 1024" \
  "maxmin 1000" "maxmin 3000" "maxmin 10000" "maxmin 30000" "maxmin-equal 10000" \
  "maxmin-equal 30000"; do
  # shellcheck disable=SC2086
  "$bin/scale" $case
done
for case in "clos 125" "clos 1250" "clos 12500" "rail-optimised 12500"; do
  # shellcheck disable=SC2086
  "$bin/fabric_scale" $case
done
for case in "16 16 16" "32 32 16" "64 32 32" "dragonfly 32" "dragonfly 128"; do
  # shellcheck disable=SC2086
  "$bin/torus_scale" $case
done
for case in "128" "128 ring" "128 tree" "256"; do
  # shellcheck disable=SC2086
  "$bin/nccl_scale" $case
done
for case in "permutation 8 10000000" "permutation 8 10000000 bare" "permutation 16 1000000" \
  "permutation 16 1000000 2" "permutation 16 1000000 bare" "incast 8 2000000" "ring 8 64000000"; do
  # shellcheck disable=SC2086
  "$bin/packet_scale" $case
done
schedules=$(mktemp -d)
trap 'rm -r "$schedules"' EXIT
for engine in flow analytical; do
  "$bin/goal_scale" 1024 "$schedules/ring.goal" "$engine"
done
