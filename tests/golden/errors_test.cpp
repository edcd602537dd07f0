// SPDX-License-Identifier: Apache-2.0
// One mistake for each file in errors/: what the reader says of NAME.yaml is the one line in
// NAME.expected. UPDATE_GOLDEN=1 rewrites the expectations. A seeded test then damages a right file
// at random: the reader must take it or throw ConfigError.
#include "support/catch.h"

#include <array>
#include <string>
#include <string_view>

#include "sim/config.h"
#include "support/golden_errors.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 3> kRoutings = {"ecmp", "rail", "spray"};

// A reader with one key of each kind.
void read_server(const ConfigNode& server) {
  static_cast<void>(server.required("gpu").as_string());
  static_cast<void>(server.required("gpus").as_integer(1, 64));
  for (const ConfigNode& nic : server.required("nics").items()) {
    static_cast<void>(nic.required("bandwidth").as_bandwidth());
    static_cast<void>(nic.required("latency").as_time());
  }
  if (const auto memory = server.optional("memory")) {
    static_cast<void>(memory->as_bytes());
  }
  if (const auto peak = server.optional("peak")) {
    static_cast<void>(peak->as_flop_rate());
  }
  if (const auto efficiency = server.optional("efficiency")) {
    static_cast<void>(efficiency->as_number(0.0, 1.0));
  }
  if (const auto gpudirect = server.optional("gpudirect")) {
    static_cast<void>(gpudirect->as_bool());
  }
}

void read_cluster(const std::string& text, const std::string& name) {
  ConfigDocument document = ConfigDocument::parse(text, name);
  const ConfigNode root = document.root();
  if (const auto labels = root.optional("labels")) {
    for (const auto& [key, value] : labels->entries()) {
      value.skip();
    }
  }
  if (const auto sources = root.optional("sources")) {
    sources->skip();
  }
  read_server(root.required("server"));
  if (const auto routing = root.optional("routing")) {
    static_cast<void>(routing->as_choice(kRoutings));
  }
  document.finish();
}

std::string error_of(const std::string& text, const std::string& name) {
  try {
    read_cluster(text, name);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* kRightText = R"(# Every feature of the reader.
labels: {rack: 12, 'row one': [a, "b\n", ~]}
sources:
  - "a datasheet: \u00e9\t"
  - |
    literal
      text
  - >-
    folded
    text
server: &server
  gpu: H100
  gpus: 8
  nics:
    - &nic
      bandwidth: 400 Gb/s   # In each direction.
      latency: 1.25 us
    - *nic
    - {bandwidth: 25 GB/s, latency: 900 ns}
  memory: 80 GB
  peak: 989 TFLOP/s
  efficiency: 0.75
  gpudirect: true
? routing
: ecmp
)";

// Bytes that mean something to YAML.
constexpr std::string_view kLikely = "[]{}:,-?&*!|>'\"%@`#~ \n\t\\0a<.\xff";

}  // namespace

TEST_CASE("each mistake in a file gives its one line", "[golden]") {
  require_golden_errors("errors", 41, error_of);
}

TEST_CASE("a damaged file is read or refused in one line") {
  REQUIRE(refused_damage(kRightText, kLikely, 600, error_of) > 100);
}

TEST_CASE("a file cut off anywhere is read or refused in one line") {
  const std::string text = kRightText;
  for (std::size_t length = 0; length < text.size(); ++length) {
    INFO("length " << length);
    REQUIRE(error_of(text.substr(0, length), "cut.yaml").find('\n') == std::string::npos);
  }
}

}  // namespace trainyard
