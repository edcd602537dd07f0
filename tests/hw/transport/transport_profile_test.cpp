// SPDX-License-Identifier: Apache-2.0
// The shipped transport, what it means for a port, and the errors of files that say nonsense.
#include "support/catch.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/transport/transport_profile.h"
#include "support/paths.h"

namespace trainyard {
namespace {

using namespace literals;

std::filesystem::path folder() {
  return source_dir() / "configs/transport";
}

TransportProfile shipped(const std::vector<std::pair<std::string, std::string>>& sets = {}) {
  ConfigDocument document = ConfigDocument::load(folder() / "default.yaml");
  for (const auto& [path, value] : sets) {
    document.set(path, value);
  }
  return TransportProfile::read(document, folder(), folder());
}

std::string error_with(const std::string& path, const std::string& value) {
  try {
    static_cast<void>(shipped({{path, value}}));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the shipped transport is DCQCN of NICs over PFC and ECN by speed", "[transport]") {
  const TransportProfile profile = shipped();
  REQUIRE(profile.control.name == "dcqcn-nic");
  REQUIRE(profile.ecn->name == "hpcc");
  REQUIRE(profile.ecn->mark_at == MarkAt::Dequeue);
  REQUIRE(profile.pfc.is_lossless(3));
  REQUIRE(!profile.pfc.is_lossless(6));
  REQUIRE(!profile.pfc.watchdog.has_value());
  REQUIRE(profile.buffer.lossless_alpha == -3);
  REQUIRE(profile.rdma.path_mtu == Bytes(4096));
  REQUIRE(!profile.rdma.is_what_if);
  REQUIRE(profile.rdma.recovery == Retransmission::GoBackN);
  REQUIRE(profile.rdma.retry.timeout == retransmission_timeout(20));
}

TEST_CASE("presets of ECN scale, stay, or hold for their own rates only", "[transport]") {
  const auto preset = [](const std::string& name) { return *shipped({{"ecn", name}}).ecn; };
  REQUIRE(preset("hpcc").at(gigabits_per_second(400))->kmin == Bytes(1'600'000));
  REQUIRE(preset("dcqcn-paper").at(gigabits_per_second(400))->kmax == Bytes(200'000));
  REQUIRE(preset("simai").at(gigabits_per_second(200))->pmax == 0.8);
  REQUIRE(!preset("simai").at(gigabits_per_second(800)).has_value());
  REQUIRE(preset("simai").at(Bandwidth(199'999'999'999))->pmax == 0.8);
  REQUIRE(preset("dctcp").at(gigabits_per_second(100))->kmin == Bytes(300'000));
  REQUIRE(preset("dctcp").at(gigabits_per_second(100))->kmax == Bytes(300'000));
  REQUIRE(!shipped({{"ecn", "off"}}).ecn.has_value());
  for (const std::string name : {"hpcc", "dcqcn-paper", "ns3-rdma", "simai", "dctcp", "sonic"}) {
    const RedMarker marker(preset(name).at(gigabits_per_second(100)).value());
    REQUIRE(!marker.marks(Bytes(0), 0));
  }
}

TEST_CASE("what --set says is taken", "[transport]") {
  REQUIRE(shipped({{"control", "none"}}).control.name == "none");
  REQUIRE(shipped({{"pfc.priorities.value", "[]"}}).pfc.priorities.empty());
  REQUIRE(shipped({{"pfc.watchdog.value", "on"}}).pfc.watchdog->detection == 200_ms);
  REQUIRE(shipped({{"rdma.recovery.value", "selective"}}).rdma.recovery ==
          Retransmission::SelectiveRepeat);
  const TransportProfile jumbo =
      shipped({{"rdma.path_mtu.value", "9000 B"}, {"rdma.path_mtu.what_if", "true"}});
  REQUIRE(jumbo.rdma.is_what_if);
  REQUIRE(jumbo.rdma.path_mtu == Bytes(9000));
}

TEST_CASE("nonsense is refused at its place", "[transport]") {
  REQUIRE(contains(error_with("control", "dcqcn-nik"), "dcqcn-nic"));
  REQUIRE(contains(error_with("ecn", "none"), ", off, found \"none\""));
  REQUIRE(contains(error_with("rdma.path_mtu.value", "9000 B"), "what_if"));
  REQUIRE(contains(error_with("buffer.lossless_alpha.value", "0.3"), "power of two"));
  REQUIRE(contains(error_with("pfc.priorities.value", "[3, 3]"), "once"));
  REQUIRE(contains(error_with("pfc.priorities.value", "[8]"), "7"));
  REQUIRE(contains(error_with("rdma.timeout.value", "32"), "31"));
  REQUIRE(contains(error_with("pfc.quanta.value", "70000"), "65535"));
  REQUIRE(contains(error_with("buffer.size.value", "0 B"), "above zero"));
  REQUIRE(contains(error_with("pfc.storm", "1"), "storm"));
}

TEST_CASE("a file may take the default as its base, and have a control of its own", "[transport]") {
  const std::filesystem::path mine =
      std::filesystem::temp_directory_path() / "trainyard_transport_profile_test";
  std::filesystem::create_directories(mine);
  std::filesystem::copy_file(folder() / "control/dctcp.yaml", mine / "my-dctcp.yaml",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(mine / "mine.yaml") << "base: default\ncontrol: my-dctcp.yaml\necn: dctcp\n";
  ConfigDocument document = ConfigDocument::load(mine / "mine.yaml");
  const TransportProfile profile = TransportProfile::read(document, mine, folder());
  REQUIRE(profile.control.name == "my-dctcp");
  REQUIRE(profile.ecn->name == "dctcp");
  REQUIRE(profile.pfc.is_lossless(3));
  std::filesystem::remove_all(mine);
}

}  // namespace trainyard
