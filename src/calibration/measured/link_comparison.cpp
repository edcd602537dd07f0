// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/link_comparison.h"

#include <map>
#include <string_view>
#include <utility>

#include "network/traffic/transfers.h"
#include "sim/config_error.h"
#include "sim/statistics.h"

namespace trainyard {
namespace {

constexpr Bytes kLarge = mib(256);
constexpr Bytes kSmall{8};
// Below, a rate is that of messages and not of bytes.
constexpr Bytes kMinOfRates = kib(64);

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The tests of a pair of devices.
enum class Ways { One, FirstOfBoth, Both };
enum class Ends { ToGpu, FromGpu, Peers, FirstGpus, ServerGpus, Servers };
struct Meaning {
  Ends ends = Ends::Peers;
  Ways ways = Ways::One;
  std::string remark = {};  // Why there is no counterpart; empty if there is one.
};

// NVIDIA/nvbandwidth, README.md: in bidirectional tests between host and device the rate is of one
// direction while the other is loaded; between devices there are both and their total.
Meaning nvbandwidth_meaning(std::string_view test) {
  const bool both = has(test, "bidirectional");
  if (test.starts_with("host_to_device_")) {
    return {.ends = Ends::ToGpu, .ways = both ? Ways::FirstOfBoth : Ways::One};
  }
  if (test.starts_with("device_to_host_")) {
    return {.ends = Ends::FromGpu, .ways = both ? Ways::FirstOfBoth : Ways::One};
  }
  if (test.starts_with("device_to_device_") && !has(test, "latency")) {
    const bool total = test.ends_with(" total");
    return {.ends = Ends::Peers,
            .ways = !both   ? Ways::One
                    : total ? Ways::Both
                            : Ways::FirstOfBoth};
  }
  return {.ends = Ends::FromGpu, .remark = "several transfers at once: not compared"};
}

Meaning peer_test_meaning(std::string_view test, bool is_latency) {
  if (is_latency) {
    return {.remark = "with the launch of a copy: not compared"};
  }
  if (has(test, "P2P=Disabled")) {
    return {.remark = "without peer access: not compared"};
  }
  return {.ends = Ends::Peers, .ways = test.starts_with("Bidirectional") ? Ways::Both : Ways::One};
}

// Buffers of the GPU where the test says so.
Meaning osu_meaning(const PastedValue& value, bool is_one_server) {
  if (!value.is_latency && value.size < kMinOfRates) {
    return {.ends = Ends::Servers, .remark = "a rate of messages: not compared"};
  }
  const bool is_on_gpus = value.test.ends_with("D to D");
  if (!is_on_gpus && (is_one_server || !value.test.ends_with("H to H"))) {
    return {.ends = Ends::Servers,
            .remark = "between host memory of one server, or host and GPU: not compared"};
  }
  return {.ends = is_one_server ? Ends::FirstGpus
                  : is_on_gpus  ? Ends::ServerGpus
                                : Ends::Servers,
          .ways = has(value.test, "Bi-Directional") ? Ways::Both : Ways::One};
}

Meaning meaning_of(PastedTool tool, const PastedValue& value, bool is_one_server) {
  switch (tool) {
    case PastedTool::NvBandwidth:
      return nvbandwidth_meaning(value.test);
    case PastedTool::PeerToPeerTest:
      return peer_test_meaning(value.test, value.is_latency);
    case PastedTool::Osu:
      return osu_meaning(value, is_one_server);
    case PastedTool::Perftest:
      break;
  }
  if (!value.is_latency && value.size < kMinOfRates) {
    return {.ends = Ends::Servers, .remark = "a rate of messages: not compared"};
  }
  return {.ends = Ends::Servers, .ways = has(value.test, "Bidirectional") ? Ways::Both : Ways::One};
}

std::optional<Transfer> transfer_of(const PastedValue& value, Ends ends, const Cluster& cluster) {
  const auto gpu = [&](int index) -> std::optional<NodeId> {
    const auto place = static_cast<std::size_t>(index);
    return place < cluster.gpus.size() ? std::optional(cluster.gpus[place]) : std::nullopt;
  };
  switch (ends) {
    case Ends::ToGpu:
    case Ends::FromGpu: {
      const std::vector<Transfer> all = host_transfers(
          cluster, ends == Ends::ToGpu ? HostDirection::ToGpu : HostDirection::FromGpu);
      const auto place = static_cast<std::size_t>(value.column);
      return place < all.size() ? std::optional(all[place]) : std::nullopt;
    }
    case Ends::Peers: {
      const auto source = gpu(value.row);
      const auto target = gpu(value.column);
      return source && target && value.row != value.column
                 ? std::optional(Transfer{.source = *source, .target = *target})
                 : std::nullopt;
    }
    case Ends::FirstGpus:
      return cluster.gpus.size() > 1
                 ? std::optional(Transfer{.source = cluster.gpus[0], .target = cluster.gpus[1]})
                 : std::nullopt;
    case Ends::ServerGpus:
    case Ends::Servers:
      break;
  }
  const std::string end = ends == Ends::ServerGpus ? "/gpu0" : "/memory0";
  const auto source = cluster.topology.find("server0" + end);
  const auto target = cluster.topology.find("server1" + end);
  return source && target ? std::optional(Transfer{.source = *source, .target = *target})
                          : std::nullopt;
}

double simulate(const Cluster& cluster, const Transfer& transfer, Ways ways, bool is_latency) {
  std::vector<Transfer> transfers{transfer};
  if (is_latency) {
    return run_transfers(cluster, transfers, kSmall).front().microseconds();
  }
  if (ways != Ways::One) {
    transfers = with_opposites(transfers);
  }
  std::vector<SimTime> times = run_transfers(cluster, transfers, kLarge);
  if (ways == Ways::FirstOfBoth) {
    times.resize(1);
  }
  return total_gigabytes_per_second(times, kLarge);
}

struct Gathered {
  Meaning meaning;
  const Cluster* cluster = nullptr;
  std::vector<const PastedValue*> values = {};
};

LinkComparison comparison_of(const Gathered& gathered, const std::string& file) {
  const PastedValue& first = *gathered.values.front();
  LinkComparison made{.file = file,
                      .test = first.test,
                      .size = first.size,
                      .is_latency = first.is_latency,
                      .remark = gathered.meaning.remark};
  Samples measured;
  Samples simulated;
  for (const PastedValue* const value : gathered.values) {
    // The diagonal of a matrix of peers is a copy within one GPU.
    if (gathered.meaning.ends == Ends::Peers && value->row == value->column) {
      continue;
    }
    measured.add(value->value);
    if (!made.remark.empty()) {
      continue;
    }
    if (gathered.cluster == nullptr) {
      made.remark = "the cluster has one server";
      continue;
    }
    const auto transfer = transfer_of(*value, gathered.meaning.ends, *gathered.cluster);
    if (!transfer) {
      made.remark = "the cluster has fewer devices";
      continue;
    }
    simulated.add(simulate(*gathered.cluster, *transfer, gathered.meaning.ways, made.is_latency));
  }
  made.values = measured.count();
  if (made.values > 0) {
    made.measured = measured.median();
    made.min = measured.min();
    made.max = measured.max();
  }
  if (made.remark.empty() && simulated.count() > 0) {
    made.simulated = simulated.median();
  }
  return made;
}

}  // namespace

std::vector<LinkComparison> compare_links(const PastedOutput& output, const std::string& file,
                                          const Cluster& one, const Cluster* two) {
  std::vector<Gathered> tests;
  std::map<std::pair<std::string, Bytes>, std::size_t> places;
  for (const PastedValue& value : output.values) {
    const auto [place, is_new] = places.try_emplace({value.test, value.size}, tests.size());
    if (is_new) {
      const Meaning meaning = meaning_of(output.tool, value, two == nullptr);
      const bool is_between = meaning.ends == Ends::Servers || meaning.ends == Ends::ServerGpus;
      tests.push_back({.meaning = meaning, .cluster = is_between ? two : &one});
    }
    tests[place->second].values.push_back(&value);
  }
  std::vector<LinkComparison> comparisons;
  for (const Gathered& gathered : tests) {
    LinkComparison made = comparison_of(gathered, file);
    if (made.values > 0) {
      comparisons.push_back(std::move(made));
    }
  }
  return comparisons;
}

}  // namespace trainyard
