// SPDX-License-Identifier: Apache-2.0
// Every point of validation/tcp/published.yaml against the model of the kernel's TCP. The table of
// docs/models/tcp.md is written from the result (UPDATE_GOLDEN=1).
//
// Budgets are the errors that were seen when a point was added, rounded up. They may only go down.
#include "support/catch.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "network/traffic/tcp.h"
#include "sim/config.h"
#include "support/page_part.h"
#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

constexpr const char* kTcpBegin =
    "<!-- written by tests/calibration/measured/tcp_measurement_test.cpp -->\n";
constexpr const char* kTcpEnd = "<!-- end of points -->\n";

struct TcpPoint {
  std::string what;
  std::string remark = {};
  bool is_constant = false;
  double budget_percent = 0.0;
  std::string_view unit = {};
  double measured = 0.0;
  double predicted = 0.0;
  std::string limit = {};
  [[nodiscard]] double error() const { return 100.0 * (predicted / measured - 1.0); }
};

SocketSettings tcp_settings_of(const ConfigNode& node) {
  constexpr std::array<std::string_view, 3> kKinds{"off", "on", "huge-pages"};
  SocketSettings settings;
  settings.cores = static_cast<int>(node.required("cores").as_integer(1, 1000));
  if (const auto mtu = node.optional("mtu")) {
    settings.mtu = Bytes(mtu->as_integer(576, 65'535));
  }
  if (const auto gro = node.optional("gro")) {
    settings.gro = gro->as_bool();
  }
  if (const auto kind = node.optional("zero_copy")) {
    settings.zero_copy = static_cast<ZeroCopy>(kind->as_choice(kKinds));
  }
  return settings;
}

VerbPath path_of_point(const ConfigNode& node) {
  ClusterOverrides overrides{.settings = {"fabric.leaf=Spectrum-SN2700"}};
  for (const ConfigNode& setting : node.required("settings").items()) {
    overrides.settings.push_back(setting.as_string());
  }
  const Cluster cluster = load_cluster(source_dir() / "validation/verbs/clusters/one-switch.yaml",
                                       shipped_catalogue(), overrides);
  return verb_path(cluster, cluster.topology.find("server0/memory0").value(),
                   cluster.topology.find("server1/memory0").value());
}

TcpPoint read_point(const ConfigNode& node) {
  TcpPoint point{.what = node.required("what").as_string()};
  REQUIRE(!node.required("source").as_string().empty());
  if (const auto remark = node.optional("remark")) {
    point.remark = remark->as_string();
  }
  if (const auto constant = node.optional("constant")) {
    point.is_constant = constant->as_bool();
  }
  point.budget_percent = node.required("budget_percent").as_number(0, 1000);
  const SocketSettings settings = tcp_settings_of(node);
  const VerbPath path = path_of_point(node);
  const auto given_size = node.optional("size");
  const Bytes size(given_size ? given_size->as_integer(1, 1 << 30)
                              : 1 << 17);  // iperf3 has 128 KiB.
  const TcpCpu cpu = tcp_cpu(settings, size);
  const TcpRate rate = tcp_rate(path, settings, size);
  const std::array<std::pair<std::string_view, double>, 4> kinds{
      std::pair<std::string_view, double>{"gbps", rate.bytes_per_second * 8e-9},
      {"microseconds", tcp_latency(path, settings, size).microseconds()},
      {"sender_ns_per_byte", cpu.sender},
      {"receiver_ns_per_byte", cpu.receiver()}};
  constexpr std::array<std::string_view, 4> kUnits{"Gb/s", "us", "ns/B", "ns/B"};
  for (std::size_t index = 0; index < kinds.size(); ++index) {
    if (const auto value = node.optional(std::string(kinds.at(index).first))) {
      point.unit = kUnits.at(index);
      point.measured = value->as_number(1e-3, 1e6);
      point.predicted = kinds.at(index).second;
      point.limit = index == 0 ? rate.limit : "";
    }
  }
  return point;
}

TEST_CASE("published rates, latencies and CPU times of TCP are predicted within their budgets") {
  ConfigDocument document = ConfigDocument::load(source_dir() / "validation/tcp/published.yaml");
  std::string text =
      "| point | | measured | model | error | limit | remark |\n|---|---|---|---|---|---|---|\n";
  std::vector<std::string> beyond;
  for (const ConfigNode& node : document.root().required("points").items()) {
    const TcpPoint point = read_point(node);
    REQUIRE(!point.unit.empty());
    text += fmt::format("| {} | {} | {:.4g} {} | {:.4g} | {:+.0f} % | {} | {} |\n", point.what,
                        point.is_constant ? "constant" : "", point.measured, point.unit,
                        point.predicted, point.error(), point.limit, point.remark);
    if (std::abs(point.error()) > point.budget_percent) {
      beyond.push_back(fmt::format("{}: {:+.2f} %", point.what, point.error()));
    }
  }
  document.finish();
  CAPTURE(beyond);
  hold_part("docs/models/tcp.md", kTcpBegin, kTcpEnd, text);
  REQUIRE(beyond.empty());
}

}  // namespace
}  // namespace trainyard
