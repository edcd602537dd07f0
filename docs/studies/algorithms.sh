# SPDX-License-Identifier: Apache-2.0
sweep
sweep algorithms-clusters

for nodes in 8 64 512 4096; do
  echo "Time on $nodes GPUs, in us"
  pivot algorithms --where nodes=$nodes --rows algo --columns size_bytes --values time_us --digits 3
  echo
done

for cluster in dgx-h100 fat-tree-k8-100g tpu-v4 ascend-910b; do
  echo "Time on $cluster, in us"
  pivot algorithms-clusters --where cluster=$cluster --rows algo --columns size_bytes --values time_us --digits 3
  echo
done

for nodes in 8 512; do
  plot algorithms study-algorithms-$nodes --kind algorithms --where nodes=$nodes --size 7x4.5 \
    --title "all-reduce on $nodes GPUs of one 400G NIC each"
done
