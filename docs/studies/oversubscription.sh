# SPDX-License-Identifier: Apache-2.0
sweep

echo "Step time over that at 1:1, by oversubscription"
pivot oversubscription --rows set.model,set.fabric.nodes_per_leaf --values step_time_s \
  --columns set.fabric.oversubscription --relative first --digits 3 --name set.model=model \
  --name "set.fabric.nodes_per_leaf=servers below a leaf"
echo
echo "What the step is spent on with two servers below a leaf, in s"
pivot oversubscription --rows set.model,set.fabric.oversubscription \
  --where set.fabric.nodes_per_leaf=2 --values step_time_s,tensor_s,expert_s,data_s,pipeline_s \
  --digits 3 --name set.model=model --name set.fabric.oversubscription=oversubscription \
  --name step_time_s=step --name tensor_s=tensor --name expert_s=expert --name data_s=data \
  --name pipeline_s=pipeline

plot oversubscription study-oversubscription --kind lines --x set.fabric.oversubscription \
  --y tokens_per_s_per_gpu --by set.model,set.fabric.nodes_per_leaf --log x \
  --name "set.model=llama-3-70b=Llama 3 70B" --name "set.model=qwen3-235b-a22b=Qwen3 235B-A22B" \
  --name "set.fabric.nodes_per_leaf=servers below a leaf:" \
  --x-label "oversubscription of the leaves" --y-label "tokens/s for each GPU"
