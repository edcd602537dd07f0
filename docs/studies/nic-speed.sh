# SPDX-License-Identifier: Apache-2.0
sweep

nics="--name set.server.nic=ConnectX-7-200G=200G --name set.server.nic=ConnectX-7=400G
  --name set.server.nic=ConnectX-8=800G"
echo "Tokens/s for each GPU"
# shellcheck disable=SC2086
pivot nic-speed --rows set.model --columns set.server.nic --values tokens_per_s_per_gpu \
  --digits 4 --name set.model=model $nics
echo
echo "The same over that with 200G"
# shellcheck disable=SC2086
pivot nic-speed --rows set.model --columns set.server.nic --values tokens_per_s_per_gpu \
  --digits 3 --relative first --name set.model=model $nics
echo
echo "Traffic that shows, in s of a step"
# shellcheck disable=SC2086
pivot nic-speed --rows set.model,set.server.nic --values step_time_s,data_s,pipeline_s,expert_s \
  --digits 3 --name set.model=model --name set.server.nic=NIC --name step_time_s=step \
  --name data_s=data --name pipeline_s=pipeline --name expert_s=expert $nics

# shellcheck disable=SC2086
plot nic-speed study-nic-speed --kind bars --x set.model --y tokens_per_s_per_gpu --log y \
  --by set.server.nic $nics --x-label "256 B300" --y-label "tokens/s for each GPU"
