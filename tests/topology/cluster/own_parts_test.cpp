// SPDX-License-Identifier: Apache-2.0
// Parts that users describe themselves: in place, by --set, below `parts` and in files.
#include "support/catch.h"

#include "support/program.h"
#include "support/shipped.h"
#include "topology/cluster/cluster.h"

#include <string>
#include <vector>

namespace trainyard {
namespace {

std::string two_servers(const std::string& nic, const std::string& more = "") {
  return "name: two\nsource: a test\nnodes: 2\n" + more +
         "server: {template: pcie, gpu: RTX-4090, gpus: 2, cpu: EPYC-Rome, nics: 1,\n         "
         "nic: " +
         nic + "}\nfabric: {template: single-switch, leaf: Quantum2-QM9700, cable: 2 m}\n";
}

Cluster built(const std::string& text, const ClusterOverrides& overrides = {}) {
  ConfigDocument document = ConfigDocument::parse(text, "my.yaml");
  return build_cluster(document, shipped_catalogue(), overrides);
}

std::string refusal_of(const std::string& text, const ClusterOverrides& overrides = {}) {
  try {
    static_cast<void>(built(text, overrides));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// The slowest link between a NIC and a switch.
Bandwidth network_rate(const Cluster& cluster) {
  std::optional<Bandwidth> rate;
  for (const Link& link : cluster.topology.links()) {
    if (link.spec.kind == LinkKind::Network && (!rate || link.spec.bandwidth < *rate)) {
      rate = link.spec.bandwidth;
    }
  }
  return rate.value();
}

const std::string kVariant = "ConnectX-6 (speed = 25 Gb/s)";
const std::vector<std::string> kOwnLines{kVariant +
                                         ": speed = 25 Gb/s: my.yaml:5:15: its data sheet"};

TEST_CASE("a cluster may describe a part as what differs from another") {
  const Cluster own =
      built(two_servers("{base: ConnectX-6, speed: 25 Gb/s, source: its data sheet}"));
  const NicModel& nic = own.catalogue.nics().at(kVariant);
  const NicModel& base = shipped_catalogue().nics().at("ConnectX-6");
  REQUIRE(nic.speed.value == Bandwidth(25'000'000'000));
  REQUIRE(nic.speed.evidence == Evidence::User);
  REQUIRE(nic.latency.value == base.latency.value);
  REQUIRE(nic.latency.evidence == base.latency.evidence);
  REQUIRE(own.catalogue.base_of(kVariant) == "ConnectX-6");
  REQUIRE(own.own_parts == kOwnLines);
  REQUIRE(network_rate(own) == nic.speed.value.scaled(nic.efficiency.value));
  REQUIRE_FALSE(shipped_catalogue().nics().contains(kVariant));
}

TEST_CASE("a setting below the name of a part describes a variant of it") {
  for (const char* path : {"server.nic.speed", "nic.speed"}) {
    const Cluster own =
        built(two_servers("ConnectX-6"), {.settings = {std::string(path) + "=25 Gb/s"}});
    REQUIRE(own.catalogue.nics().contains(kVariant));
    REQUIRE(own.own_parts ==
            std::vector{kVariant + ": speed = 25 Gb/s: --set server.nic.speed=25 Gb/s"});
  }
  REQUIRE(refusal_of(two_servers("ConnectX-6"), {.settings = {"nic.sped=25 Gb/s"}}) ==
          "--set server.nic.sped=25 Gb/s: server.nic: expected what differs from the base, found "
          "none of it");
}

TEST_CASE("parts of one's own have names for the whole file, and a warning where none is used") {
  const std::string parts =
      "parts:\n"
      "  links: {slow-pcie: {base: PCIe4, bandwidth: 10 Gb/s, source: measured}}\n"
      "  gpus: {modded: {base: RTX-4090, memory: 48 GB, peak: {bf16: 100 TFLOP/s}}}\n"
      "  nics: {mine: {base: ConnectX-6, pcie: slow-pcie}, spare: {base: mine, ports: 2}}\n";
  const Cluster own = built(two_servers("mine", parts), {.settings = {"server.gpu=modded"}});
  const GpuModel& gpu = own.catalogue.gpus().at("modded");
  REQUIRE(gpu.memory.value == Bytes(48'000'000'000));
  REQUIRE(gpu.peak.at("bf16").value.teraflops() == 100.0);
  REQUIRE(gpu.peak.size() == shipped_catalogue().gpus().at("RTX-4090").peak.size());
  REQUIRE(gpu.base == "RTX-4090");
  REQUIRE(own.catalogue.base_of("spare") == "ConnectX-6");
  REQUIRE(own.own_parts.size() == 3);
  REQUIRE(own.warnings ==
          std::vector<std::string>{"parts.nics.spare: nothing in the cluster is of this part"});
}

TEST_CASE("a part without a base needs what the catalogue needs") {
  const std::string whole =
      "{name: mine, title: Mine, speed: 25 Gb/s, ports: 1, pcie: PCIe3, pcie_lanes: 8, "
      "efficiency: 0.9, latency: 1 us}";
  REQUIRE(network_rate(built(two_servers(whole))) == Bandwidth(22'500'000'000));
  REQUIRE(refusal_of(two_servers("{name: mine, title: Mine, speed: 25 Gb/s}"))
              .find("my.yaml:5:15: server.nic: missing key \"ports\"") == 0);
}

TEST_CASE("mistakes in parts of one's own are one line") {
  const auto error = [](const std::string& nic) { return refusal_of(two_servers(nic)); };
  REQUIRE(error("{base: ConnectX-66, speed: 1 Gb/s}") ==
          "my.yaml:5:22: server.nic.base: expected the name of a NIC in the catalogue, found "
          "\"ConnectX-66\"; did you mean \"ConnectX-6\"?");
  REQUIRE(error("{base: ConnectX-6, speed: 25}").find("my.yaml:5:41: server.nic.speed") == 0);
  REQUIRE(error("{base: ConnectX-6, sped: 1, ports: 2}") ==
          "my.yaml:5:34: server.nic: unknown key \"sped\"; did you mean \"speed\"?");
  REQUIRE(
      error("{base: ConnectX-6, name: ConnectX-7, ports: 2}") ==
      "my.yaml:5:15: server.nic: expected another name than \"ConnectX-7\", which a part of the "
      "catalogue has (for a variant of it, give it as base), found \"ConnectX-7\"");
}

TEST_CASE("parts of one's own may come from a file") {
  const ScratchFolder folder;
  const std::string file =
      folder.write("mine.yaml", "nics: {mine: {base: ConnectX-6, speed: 25 Gb/s, source: x}}\n")
          .string();
  REQUIRE(built(two_servers("mine"), {.parts = {file}}).own_parts.front() ==
          "mine: speed = 25 Gb/s: " + file + ":1:14: x");
}

}  // namespace
}  // namespace trainyard
