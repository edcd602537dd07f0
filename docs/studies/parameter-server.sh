# SPDX-License-Identifier: Apache-2.0
sweep parameter-server
sweep parameter-server-ring

# A row for each run of both sweeps: its workers, who adds up, and what of a step its traffic takes.
awk -F, '
  FNR == 1 { for (i = 1; i <= NF; ++i) { column[$i] = i } next }
  {
    gsub(/"[^"]*"/, "text")  # Names with commas.
    workers = $column["set.batch.global"]; servers = $column["set.plan.servers.count"]
    if (FILENAME ~ /ring/) { scheme = "ring" }
    else if ($column["set.plan.servers.place"] == "workers") { scheme = "a server on each worker" }
    else if (servers == 1 && ++ones <= 4) { scheme = "one server" }
    else if (servers == workers) { scheme = "as many servers" }
    else { scheme = "half as many servers" }
    print workers "," scheme "," $column["data_s"]
  }' "$data/parameter-server.csv" "$data/parameter-server-ring.csv" >"$data/rows.csv"
{
  echo "workers,scheme,data_s"
  for scheme in "one server" "half as many servers" "as many servers" "a server on each worker" ring; do
    grep ",$scheme," "$data/rows.csv"
  done
} >"$data/schemes.csv"

echo "Traffic that a step shows, in s"
pivot schemes --rows scheme --columns workers --values data_s --digits 3 --name "scheme=workers:"
echo

# What tools/cluster-in-a-box measured beside what is predicted for it (validation/box).
"$root/validation/box/compare" "$(dirname "$(command -v trainyard)")" --points --only server,ring \
  "$root"/validation/box/run-? >"$data/points.csv"
{
  echo "bytes,hosts,scheme,measured_ms,predicted_ms,error_percent"
  awk -F, 'NR > 1 && !/push/ {
    split($2, part, "-"); split($3, point, " ")
    printf "%d,%d,%s,%.4g,%.4g,%.1f\n", point[1], part[2], part[1], 1000 * $4, 1000 * $7, 100 * ($7 / $4 - 1)
  }' "$data/points.csv" | sort -t, -k1n -k2n -k3r
} >"$data/box.csv"
echo "A megabyte (2^20 bytes) in a box, 30 Mb/s: measured and predicted, in ms, and how far that is off, in percent"
pivot box --where bytes=1048576 --rows hosts,scheme --digits 4 \
  --values measured_ms,predicted_ms,error_percent --name measured_ms=measured \
  --name predicted_ms=predicted --name error_percent=error
