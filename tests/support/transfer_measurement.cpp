// SPDX-License-Identifier: Apache-2.0
#include "support/transfer_measurement.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "network/traffic/transfers.h"
#include "sim/check.h"
#include "sim/config.h"
#include "sim/fields.h"
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

std::string cluster_of(const ConfigNode& node, const std::filesystem::path& file) {
  std::string name = node.as_string();
  return name.ends_with(".yaml") ? (file.parent_path() / name).string() : name;
}

// A value, or the least and the greatest of several.
struct Measured {
  static void read(const Fields& /*parent*/, const ConfigNode& node, MeasuredTransfer& row) {
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
  static void describe(Schema& schema, MeasuredTransfer& /*row*/) {
    constexpr Either kValue{Duration{}, Rate{}};
    Either{kValue, List{kValue}}.describe(schema);
  }
};

void row_fields(Fields& fields, MeasuredTransfer& row, const std::filesystem::path& file) {
  const auto cluster = [&](const ConfigNode& node) { return cluster_of(node, file); };
  fields.required("what", row.what, Text{}, "What was measured.");
  fields.optional("cluster", row.cluster, Via{Text{}, cluster}, "Its cluster: the file's.");
  fields.optional("settings", row.settings, List{Text{}}, "Its settings, as `--set` takes them.");
  const auto set_of = [](const ConfigNode& node) { return kSetOf[node.as_choice(kSets)]; };
  const bool is_matrix = fields.optional("matrix", row.set, Via{Choice{kSets}, set_of},
                                         "All GPUs at once, instead of `from` and `to`.");
  fields.where(!is_matrix, [&] {
    fields.required("from", row.from, Text{}, "Device that sends.");
    fields.required("to", row.to, Text{}, "Device that receives.");
  });
  fields.optional("both_ways", row.both_ways, Flag{}, "Both directions at once.");
  fields.required("measured", row, Measured{}, "A rate or a time, or `[least, greatest]`.");
  fields.required("budget_percent", row.budget_percent, Number{.min = 0.0, .max = 1e6},
                  "The error that was seen, rounded up.");
  fields.optional("remark", row.remark, Text{}, "Why the error is what it is.");
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

void transfer_fields(Fields& fields, TransferMeasurements& all, const std::filesystem::path& file) {
  MeasuredTransfer common;
  const auto cluster = [&](const ConfigNode& node) { return cluster_of(node, file); };
  fields.required("source", all.source, Text{}, "Where the rows are from.");
  fields.required("cluster", common.cluster, Via{Text{}, cluster}, "A name, or a file beside.");
  fields.optional("nodes", common.nodes, Whole{1, 1'000'000}, "Servers of it.");
  const auto row = [&](Fields& inner, MeasuredTransfer& one) {
    one.cluster = common.cluster;
    one.nodes = common.nodes;
    row_fields(inner, one, file);
  };
  fields.required("rows", all.rows, List{Group{row}}, "What was measured.");
  fields.check([&](const ConfigNode& node) {
    if (all.rows.empty()) {
      node.required("rows").fail("at least one row", "none");
    }
  });
}

TransferMeasurements load_transfers(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  TransferMeasurements result;
  read_fields(document.root(), result, [&](Fields& fields, TransferMeasurements& all) {
    transfer_fields(fields, all, file);
  });
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
