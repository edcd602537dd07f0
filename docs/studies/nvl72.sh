# SPDX-License-Identifier: Apache-2.0
sweep nvl72
sweep nvl72-servers
tail -n +2 "$data/nvl72-servers.csv" >>"$data/nvl72.csv"

for key in tokens_per_s_per_gpu expert_s memory_peak_gib; do
  case $key in
    tokens*) echo "Tokens/s for each GPU, by expert ranks" ;;
    expert*) echo "Traffic of experts that shows, in s of a step" ;;
    *) echo "Highest memory of a GPU, in GiB" ;;
  esac
  pivot nvl72 --rows cluster --columns set.plan.expert --values $key --digits 4
  echo
done

plot nvl72 study-nvl72 --kind lines --x set.plan.expert --y tokens_per_s_per_gpu --by cluster \
  --log x --x-label "GPUs over which the experts are dealt out" --y-label "tokens/s for each GPU" \
  --name "cluster=gb200-nvl72=GB200 NVL72, 400G" --name "cluster=gb300-nvl72=GB300 NVL72, 800G" \
  --name "cluster=hgx-b200=HGX B200, 400G" --name "cluster=hgx-b300=HGX B300, 800G"
