# SPDX-License-Identifier: Apache-2.0
sweep torus
sweep torus-tree
tail -n +2 "$data/torus-tree.csv" >>"$data/torus.csv"

for operation in all_reduce alltoall; do
  echo "$operation of 1 GiB: share of the bound, in %"
  pivot torus --where operation=$operation --rows cluster,nodes,set.fabric.routing --columns algo \
    --values efficiency --scale 100 --digits 3 --name set.fabric.routing=routing --name nodes=servers
  echo
done

plot torus study-torus --kind bars --x algo --y efficiency --scale 100 --log y \
  --where nodes=128,512 --by cluster,set.fabric.routing --where set.fabric.routing=ecmp,static \
  --name "cluster=tpu-v5p=torus 8 x 8 x 8" --name "cluster=fat-tree-k16-100g=fat tree" \
  --name "algo=ring=reduce, ring" --name "algo=multi-ring=reduce, multi-ring" \
  --name "algo=pairwise=alltoall, pairwise" --name "algo=direct=alltoall, direct" \
  --x-label "512 accelerators, 1 GiB" --y-label "share of the bound (%)"
