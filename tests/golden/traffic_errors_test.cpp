// SPDX-License-Identifier: Apache-2.0
// One mistake for each file in errors/traffic/: what read_traffic says of NAME.yaml on a cluster of
// ten hosts is the one line in NAME.expected. UPDATE_GOLDEN=1 rewrites the expectations. A seeded
// test then damages a right file at random.
#include "support/catch.h"

#include <string>
#include <string_view>

#include "network/traffic/traffic_spec.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/golden_errors.h"

namespace trainyard {
namespace {

const Cluster& hosts() {
  static const Cluster cluster = shipped_cluster("h100-1gpu-400g");
  return cluster;
}

std::string error_of(const std::string& text, const std::string& name) {
  try {
    ConfigDocument document = ConfigDocument::parse(text, name);
    const TrafficSpec spec = read_traffic(
        document, hosts(), {.shipped_sizes = kConfigsFolder / "traffic/sizes", .seed = {}});
    document.finish();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* kRightText = R"(name: right
source: a test
seed: 3
groups:
  - name: one
    kind: permutation
    endpoints: ["server[0-3]/nic0", server*/gpu0]
    size: {cdf: [[1 KB, 0], [9 KB, 50.5], [1 MB, 100]]}
    start: 5 us
    repeat: 3
    interval: 10 us
    priority: 3
  - {name: two, kind: incast, size: 64 KiB, senders: 4, targets: 2, seed: 9}
  - {name: three, kind: poisson, size: web-search, load: 0.3, duration: 1 ms, flows: 100}
  - name: four
    kind: flows
    size: 1 MB
    flows:
      - {source: server0/nic0, target: server1/gpu0, start: 1 us}
)";

constexpr std::string_view kLikely = "[]{}:,-*/0123456789 \n.%ab";

}  // namespace

TEST_CASE("each mistake in a traffic file gives its one line", "[golden][traffic]") {
  require_golden_errors("errors/traffic", 40, error_of);
}

TEST_CASE("a damaged traffic file is read or refused in one line", "[traffic]") {
  REQUIRE(refused_damage(kRightText, kLikely, 300, error_of) > 50);
}

}  // namespace trainyard
