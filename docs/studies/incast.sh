# SPDX-License-Identifier: Apache-2.0
# case NAME OPTION...: a run; lines of its two groups and what its ports counted, into incast.csv.
case_of() {
  name=$1
  shift
  # A run in which connections give up has status 1; their flows are counted.
  trainyard traffic "$studies/incast-traffic.yaml" --cluster fat-tree-k8-100g --fidelity packet \
    --transport default "$@" --format csv --counters "$data/ports.csv" --output "$data/run.csv" 2>/dev/null ||
    [ $? -eq 1 ]
  awk -F, -v name="$name" '
    FNR == 1 { for (i = 1; i <= NF; ++i) { column[i] = $i } next }
    { for (i = 1; i <= NF; ++i) { cell[column[i]] = $i } }
    FILENAME ~ /ports/ {
      pauses += cell["pause_frames_sent"]; lost += cell["dropped"]
      if (cell["queue_max_bytes"] > queue) { queue = cell["queue_max_bytes"] }
      next
    }
    cell["group"] == "incast" { incast = cell["fct_p99_us"] / 1000; given_up = cell["unfinished"] }
    cell["group"] == "victims" { victims = cell["slowdown_mean"]; worst = cell["slowdown_max"] }
    END {
      printf "%s,%.6g,%.6g,%.6g,%d,%d,%d,%.6g\n", name, incast, victims, worst, pauses, lost, given_up, queue / 1e6
    }' "$data/ports.csv" "$data/run.csv" >>"$data/incast.csv"
}

echo "setting,incast_p99_ms,victims_mean,victims_worst,pause_frames,lost,given_up,queue_mb" >"$data/incast.csv"
case_of "PFC alone" --control none
case_of "PFC; DCQCN of NICs; ECN hpcc"
case_of "PFC; DCQCN of NICs; ECN sonic" --ecn sonic
case_of "PFC; DCQCN of the paper; ECN of the paper" --control dcqcn-paper --ecn dcqcn
case_of "PFC; HPCC" --control hpcc
case_of "PFC; Swift" --control swift
case_of "no PFC; DCQCN of NICs; go-back-n" --pfc off --retransmission go-back-n
case_of "no PFC; DCQCN of NICs; selective" --pfc off --retransmission selective
case_of "no PFC; Swift; selective" --pfc off --control swift --retransmission selective

pivot incast --rows setting --digits 3 \
  --values incast_p99_ms,victims_mean,victims_worst,pause_frames,lost,given_up,queue_mb \
  --name "incast_p99_ms=incast p99 (ms)" --name "victims_mean=victims: mean" \
  --name "victims_worst=worst slowdown" --name "pause_frames=pauses" --name "given_up=given up" --name "queue_mb=queue (MB)"

if [ -n "$figures" ]; then
  # Nothing is lost with PFC; without retransmission the samples count packets as they leave.
  trainyard traffic "$studies/incast-traffic.yaml" --cluster fat-tree-k8-100g --fidelity packet \
    --samples "$data/samples.csv" --sample-every 200us --output "$data/run.csv"
  plot samples study-incast --kind rates --size 7x5 --title "DCQCN of NICs with PFC: 64 to 1, twice"
fi
