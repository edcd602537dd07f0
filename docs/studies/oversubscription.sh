# SPDX-License-Identifier: Apache-2.0
sweep
names="--name set.model=model --name set.model=llama-3-70b=Llama_3_70B
  --name set.model=qwen3-235b-a22b=Qwen3_235B-A22B
  --name set.fabric.nodes_per_leaf=servers_per_leaf"

echo "Step time over that at 1:1, by oversubscription"
# shellcheck disable=SC2086
pivot oversubscription --rows set.model,set.fabric.nodes_per_leaf --values step_time_s \
  --columns set.fabric.oversubscription --relative first --digits 3 $names
echo
echo "Where the time of the step is, in s; two servers below a leaf"
# shellcheck disable=SC2086
pivot oversubscription --rows set.model,set.fabric.oversubscription \
  --where set.fabric.nodes_per_leaf=2 --values step_time_s,expert_s,data_s,pipeline_s,tensor_s \
  --digits 3 $names --name set.fabric.oversubscription=oversubscription

# shellcheck disable=SC2086
plot oversubscription study-oversubscription --kind lines --x set.fabric.oversubscription \
  --y tokens_per_s_per_gpu --by set.model,set.fabric.nodes_per_leaf $names --log x \
  --x-label "oversubscription of the leaves" --y-label "tokens/s for each GPU"
