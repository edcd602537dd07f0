# SPDX-License-Identifier: Apache-2.0
# Two of the points are no plans, as the batch does not divide; they have their reason in the table.
sweep plan-175b --log-level off || [ $? -eq 1 ]
sweep plan-175b-64

for key in model_tflops_per_gpu memory_peak_gib; do
  case $key in
    model*) echo "1,024 A100: TFLOP/s of the model for each GPU, pipeline ranks across" ;;
    *) echo "1,024 A100: highest memory of a GPU in GiB (79.6 are there)" ;;
  esac
  pivot plan-175b --rows set.plan.tensor --columns set.plan.pipeline --values $key --digits 3 \
    --name set.plan.tensor=tensor
  echo
done
echo "64 A100, 145B: TFLOP/s for each GPU, by batch"
pivot plan-175b-64 --rows set.plan.tensor,set.plan.pipeline --columns set.batch.global \
  --values model_tflops_per_gpu --digits 3 --name set.plan.tensor=tensor \
  --name set.plan.pipeline=pipeline

plot plan-175b study-plan-175b --kind heatmap --x set.plan.pipeline --y set.plan.tensor \
  --value model_tflops_per_gpu --where memory_fits=true --x-label "pipeline ranks" \
  --y-label "tensor ranks" --value-label "TFLOP/s of the model for each GPU" \
  --title "GPT-3 175B on 1,024 A100: plans that fit"
plot plan-175b-64 study-plan-175b-64 --kind lines --x set.plan.tensor --y model_tflops_per_gpu \
  --by set.batch.global --name set.batch.global=batch --log x \
  --x-label "tensor ranks (pipeline: 64 over that)" --y-label "TFLOP/s of the model for each GPU"
