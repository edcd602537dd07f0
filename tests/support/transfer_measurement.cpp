// SPDX-License-Identifier: Apache-2.0
#include "support/transfer_measurement.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "network/traffic/transfers.h"
#include "sim/check.h"
#include "sim/config.h"
#include "sim/units.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr std::array<std::string_view, 3> kSets = {"p2p", "h2d", "d2h"};
constexpr std::array kSetOf = {TransferSet::PeerToPeer, TransferSet::HostToDevice,
                               TransferSet::DeviceToHost};
constexpr Bytes kLargeMessage = 256_MiB;
constexpr Bytes kSmallMessage{8};

// A rate in GB/s or a time in microseconds, whichever the text is.
double read_value(const ConfigNode& node, bool is_latency) {
  return is_latency ? node.as_time().microseconds() : node.as_bandwidth().gigabytes_per_second();
}

void read_measured(const ConfigNode& node, MeasuredTransfer& row) {
  const std::vector<ConfigNode> ends =
      node.is_sequence() ? node.items() : std::vector<ConfigNode>{node};
  if (ends.empty() || ends.size() > 2) {
    node.fail("a value or a range [least, greatest]", node.found());
  }
  row.is_latency =
      ends.front().as_string().ends_with('s') && !ends.front().as_string().ends_with("/s");
  row.min = read_value(ends.front(), row.is_latency);
  row.greatest = read_value(ends.back(), row.is_latency);
  if (row.min > row.greatest) {
    node.fail("a range [least, greatest]", node.found());
  }
}

void read_devices(const ConfigNode& node, MeasuredTransfer& row) {
  const auto matrix = node.optional("matrix");
  if (matrix) {
    row.set = kSetOf[matrix->as_choice(kSets)];
    return;
  }
  row.from = node.required("from").as_string();
  row.to = node.required("to").as_string();
}

std::string cluster_of(const ConfigNode& node, const std::filesystem::path& file) {
  std::string name = node.as_string();
  return name.ends_with(".yaml") ? (file.parent_path() / name).string() : name;
}

MeasuredTransfer read_row(const ConfigNode& node, const MeasuredTransfer& common,
                          const std::filesystem::path& file) {
  MeasuredTransfer row = common;
  row.what = node.required("what").as_string();
  if (const auto cluster = node.optional("cluster")) {
    row.cluster = cluster_of(*cluster, file);
  }
  if (const auto settings = node.optional("settings")) {
    for (const ConfigNode& setting : settings->items()) {
      row.settings.push_back(setting.as_string());
    }
  }
  read_devices(node, row);
  if (const auto both = node.optional("both_ways")) {
    row.both_ways = both->as_bool();
  }
  read_measured(node.required("measured"), row);
  row.budget_percent = node.required("budget_percent").as_number(0.0, 1e6);
  if (const auto remark = node.optional("remark")) {
    row.remark = remark->as_string();
  }
  return row;
}

NodeId device(const Cluster& cluster, const std::string& name, const std::string& what) {
  const auto node = cluster.topology.find(name);
  if (!node) {
    throw ConfigError(
        fmt::format("{}: expected a device of {}, found \"{}\"", what, cluster.name, name));
  }
  return *node;
}

std::vector<Transfer> transfers_of(const MeasuredTransfer& row, const Cluster& cluster) {
  switch (row.set) {
    case TransferSet::Pair:
      return {{.source = device(cluster, row.from, row.what),
               .target = device(cluster, row.to, row.what)}};
    case TransferSet::PeerToPeer:
      return peer_transfers(cluster, Pairs::Ordered);
    case TransferSet::HostToDevice:
      return host_transfers(cluster, HostDirection::ToGpu);
    case TransferSet::DeviceToHost:
      return host_transfers(cluster, HostDirection::FromGpu);
  }
  CHECK(false, "unknown set of transfers");
}

}  // namespace

double MeasuredTransfer::error_percent(double predicted) const {
  const double nearest = std::clamp(predicted, min, greatest);
  return 100.0 * (predicted / nearest - 1.0);
}

TransferMeasurements load_transfers(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  TransferMeasurements result;
  result.source = root.required("source").as_string();
  MeasuredTransfer common;
  common.cluster = cluster_of(root.required("cluster"), file);
  if (const auto nodes = root.optional("nodes")) {
    common.nodes = static_cast<int>(nodes->as_integer(1, 1'000'000));
  }
  const ConfigNode rows = root.required("rows");
  for (const ConfigNode& node : rows.items()) {
    result.rows.push_back(read_row(node, common, file));
  }
  if (result.rows.empty()) {
    rows.fail("at least one row", "none");
  }
  document.finish();
  return result;
}

double predict(const MeasuredTransfer& row, const std::filesystem::path& clusters,
               const Catalogue& catalogue) {
  const std::filesystem::path file = row.cluster.ends_with(".yaml")
                                         ? std::filesystem::path(row.cluster)
                                         : clusters / (row.cluster + ".yaml");
  const Cluster cluster =
      load_cluster(file, catalogue, {.nodes = row.nodes, .settings = row.settings});
  std::vector<Transfer> transfers = transfers_of(row, cluster);
  if (row.is_latency) {
    return run_transfers(cluster, std::span(transfers).first(1), kSmallMessage)
        .front()
        .microseconds();
  }
  if (row.both_ways) {
    transfers = with_opposites(transfers);
  }
  return total_gigabytes_per_second(run_transfers(cluster, transfers, kLargeMessage),
                                    kLargeMessage);
}

}  // namespace trainyard
