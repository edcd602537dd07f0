# SPDX-License-Identifier: Apache-2.0
sweep

echo "Bus bandwidth of 1 GiB, in GB/s"
pivot rails --rows algo,set.fabric.template,set.fabric.routing --columns seed \
  --values busbw_gb_per_s --digits 3 --name set.fabric.template=fabric \
  --name set.fabric.routing=routing --name "seed=1=seed 1" --name "seed=2=seed 2" \
  --name "seed=3=seed 3"

plot rails study-rails --kind bars --x algo --y busbw_gb_per_s --where seed=1 \
  --by set.fabric.template,set.fabric.routing --log y \
  --name "algo=ring=all-reduce: ring" --name "algo=pairwise=alltoall: pairwise" \
  --name "algo=two-hop=alltoall: over NVLink, then rail" \
  --name "set.fabric.template=clos=plain Clos" \
  --x-label "256 H100, 1 GiB" --y-label "bus bandwidth (GB/s)"
