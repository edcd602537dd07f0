// SPDX-License-Identifier: Apache-2.0
// Every table of validation/verbs/perftest.yaml against the model of verbs, size by size. The
// section "Verbs" of docs/accuracy/accuracy.md is written from the result (UPDATE_GOLDEN=1).
//
// Budgets are the median and the greatest error that were seen when a run was added, rounded up to
// whole per cents. They may only go down.
#include "support/catch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "network/traffic/verbs.h"
#include "sim/config.h"
#include "support/page_part.h"
#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

constexpr const char* kVerbsBegin =
    "<!-- written by tests/calibration/measured/verb_measurement_test.cpp -->\n";
constexpr const char* kVerbsEnd = "<!-- end of verbs -->\n";
// Sizes of the columns of the table.
constexpr auto kVerbSizes =
    std::to_array<std::int64_t>({8, 64, 256, 1024, 4096, 16384, 65536, 1048576});

struct VerbRun {
  std::string what;
  std::string remark = {};
  bool is_latency = false;
  double median_budget = 0.0;
  double worst_budget = 0.0;
  std::vector<std::pair<std::int64_t, double>> errors = {};  // In per cent, by size.

  [[nodiscard]] double median() const {
    std::vector<double> sizes;
    for (const auto& [size, error] : errors) {
      sizes.push_back(std::abs(error));
    }
    const auto middle = sizes.begin() + std::ssize(sizes) / 2;
    std::ranges::nth_element(sizes, middle);
    return *middle;
  }
  [[nodiscard]] std::pair<std::int64_t, double> worst() const {
    return *std::ranges::max_element(errors, {},
                                     [](const auto& point) { return std::abs(point.second); });
  }
};

VerbSettings settings_of(const ConfigNode& node) {
  VerbSettings settings;
  settings.verb = static_cast<Verb>(node.required("verb").as_choice(kVerbs));
  if (const auto pairs = node.optional("qps")) {
    settings.queue_pairs = static_cast<int>(pairs->as_integer(1, 1000));
  }
  if (const auto mtu = node.optional("mtu")) {
    settings.mtu = Bytes(mtu->as_integer(256, 4096));
  }
  if (const auto limit = node.optional("inline")) {
    settings.inline_limit = Bytes(limit->as_integer(0, 4096));
  }
  if (const auto connection = node.optional("connection")) {
    settings.connection = static_cast<Connection>(connection->as_choice(kConnections));
  }
  if (const auto events = node.optional("events")) {
    settings.events = events->as_bool();
  }
  return settings;
}

Cluster cluster_of_run(const ConfigNode& node) {
  const std::string name = node.required("cluster").as_string();
  const std::filesystem::path file = name.ends_with(".yaml")
                                         ? source_dir() / "validation/verbs" / name
                                         : source_dir() / "configs/clusters" / (name + ".yaml");
  ClusterOverrides overrides;
  if (const auto settings = node.optional("settings")) {
    for (const ConfigNode& setting : settings->items()) {
      overrides.settings.push_back(setting.as_string());
    }
  }
  return load_cluster(file, shipped_catalogue(), overrides);
}

VerbRun read_run(const ConfigNode& node) {
  VerbRun run{.what = node.required("what").as_string()};
  REQUIRE(!node.required("source").as_string().empty());
  if (const auto remark = node.optional("remark")) {
    run.remark = remark->as_string();
  }
  const ConfigNode budget = node.required("budget_percent");
  run.median_budget = budget.required("median").as_number(0, 1000);
  run.worst_budget = budget.required("worst").as_number(0, 1000);
  const VerbSettings settings = settings_of(node);
  const Cluster cluster = cluster_of_run(node);
  const VerbPath path = verb_path(cluster, cluster.topology.find("server0/memory0").value(),
                                  cluster.topology.find(node.required("to").as_string()).value());
  const auto latencies = node.optional("microseconds");
  run.is_latency = latencies.has_value();
  for (const auto& [text, value] : (latencies ? *latencies : node.required("mpps")).entries()) {
    const Bytes size(std::stoll(text));
    const double predicted = run.is_latency
                                 ? verb_latency(path, settings, size).microseconds()
                                 : verb_rate(path, settings, size).messages_per_second / 1e6;
    const double measured = value.as_number(0, 1e9);
    run.errors.emplace_back(size.count(), 100.0 * (predicted / measured - 1.0));
  }
  return run;
}

std::string verb_line(const VerbRun& run) {
  const auto [size, worst] = run.worst();
  std::string line = fmt::format("| {} | {} | {:.1f} % | {:+.1f} % at {} B |", run.what,
                                 run.errors.size(), run.median(), worst, size);
  for (const std::int64_t shown : kVerbSizes) {
    const auto point =
        std::ranges::find(run.errors, shown, &std::pair<std::int64_t, double>::first);
    line += point == run.errors.end() ? " |" : fmt::format(" {:+.0f} |", point->second);
  }
  return line + fmt::format(" {} |\n", run.remark);
}

TEST_CASE("tables of perftest are predicted within their budgets") {
  ConfigDocument document = ConfigDocument::load(source_dir() / "validation/verbs/perftest.yaml");
  std::string text =
      "| test | sizes | median | worst | 8 B | 64 | 256 | 1 KiB | 4 | 16 | 64 | 1 MiB | remark |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  std::vector<std::string> beyond;
  for (const ConfigNode& node : document.root().required("runs").items()) {
    const VerbRun run = read_run(node);
    text += verb_line(run);
    const double worst = std::abs(run.worst().second);
    if (run.median() > run.median_budget || worst > run.worst_budget) {
      beyond.push_back(
          fmt::format("{}: median {:.2f}, worst {:.2f}", run.what, run.median(), worst));
    }
  }
  document.finish();
  CAPTURE(beyond);
  hold_part("docs/accuracy/accuracy.md", kVerbsBegin, kVerbsEnd, text);
  REQUIRE(beyond.empty());
}

}  // namespace
}  // namespace trainyard
