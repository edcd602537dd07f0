// SPDX-License-Identifier: Apache-2.0
// The shipped catalogue loads, every value has a source, and look-ups suggest names.
#include "support/catch.h"

#include "hw/parts/catalogue.h"

#include <algorithm>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/config.h"
#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

const std::filesystem::path kShippedFolder = source_dir() / "configs" / "hardware";

template <typename T>
bool has_source(const Sourced<T>& value) {
  return value.source.size() > 10;
}

template <typename T>
bool has_source(const std::optional<Sourced<T>>& value) {
  return !value || has_source(*value);
}

// What looking up the GPU `name` in the shipped catalogue says.
std::string look_up_error(const std::string& name) {
  ConfigDocument document = ConfigDocument::parse("gpu: " + name, "cluster.yaml");
  try {
    static_cast<void>(open_catalogue().gpu(document.root().required("gpu")));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the shipped catalogue holds every part that clusters need") {
  const std::vector<std::string> cpus = {"Xeon-Broadwell",
                                         "Xeon-Skylake",
                                         "Xeon-CascadeLake",
                                         "Xeon-IceLake",
                                         "Xeon-SapphireRapids",
                                         "Xeon-EmeraldRapids",
                                         "EPYC-Rome",
                                         "EPYC-Milan",
                                         "EPYC-Genoa",
                                         "EPYC-Turin",
                                         "Grace"};
  const std::vector<std::string> gpus = {
      "V100-SXM2-16GB", "V100-SXM2-32GB", "A100-SXM-40GB", "A100-SXM-80GB",
      "A100-PCIe-40GB", "A100-PCIe-80GB", "H100-SXM",      "H100-PCIe",
      "H800-SXM",       "H200-SXM",       "H20",           "GH200",
      "B200",           "GB200",          "B300",          "GB300",
      "L40S",           "RTX-4090",       "MI300X"};
  const std::vector<std::string> links = {"NVLink1",
                                          "NVLink2",
                                          "NVLink3",
                                          "NVLink4",
                                          "NVLink5",
                                          "PCIe3",
                                          "PCIe4",
                                          "PCIe5",
                                          "PCIe6",
                                          "C2C-Grace-Hopper",
                                          "C2C-Grace-Blackwell",
                                          "xGMI-MI300X",
                                          "QPI-Broadwell",
                                          "UPI-Skylake",
                                          "UPI-Sapphire-Rapids",
                                          "UPI-Emerald-Rapids",
                                          "Grace-Grace",
                                          "xGMI-EPYC-Rome",
                                          "xGMI-EPYC-Genoa",
                                          "xGMI-EPYC-Turin",
                                          "ICI-v4",
                                          "ICI-v5p",
                                          "NeuronLink3"};
  const std::vector<std::string> nics = {
      "ConnectX-5", "ConnectX-6",        "ConnectX-7", "ConnectX-8",  "BlueField-3",
      "EFA-100G",   "EFA-200G",          "EFA-400G",   "EFA-100G-v1", "Cassini",
      "Thor2",      "ConnectX-7-2x200G", "Ideal-100G"};
  const std::vector<std::string> switches = {
      "Quantum-QM8700",   "Quantum2-QM9700",  "QuantumX800-Q3400", "Spectrum3-SN4600C",
      "Spectrum4-SN5600", "Spectrum4-SN5400", "Tomahawk3",         "Tomahawk4",
      "Tomahawk5",        "Rosetta",          "Ideal-64x100G"};
  const auto holds = [](const auto& parts, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      INFO(name);
      REQUIRE(parts.contains(name));
      REQUIRE(parts.at(name).name == name);
    }
  };
  holds(shipped_catalogue().cpus(), cpus);
  holds(shipped_catalogue().gpus(), gpus);
  holds(shipped_catalogue().links(), links);
  holds(shipped_catalogue().nics(), nics);
  holds(shipped_catalogue().nvswitches(), {"NVSwitch1", "NVSwitch2", "NVSwitch3", "NVSwitch4"});
  holds(shipped_catalogue().switches(), switches);
}

TEST_CASE("every value of the shipped catalogue has a source") {
  for (const auto& [name, cpu] : shipped_catalogue().cpus()) {
    INFO(name);
    REQUIRE(has_source(cpu.memory_bandwidth));
    REQUIRE(has_source(cpu.memory_latency));
    REQUIRE(has_source(cpu.root_bandwidth));
    REQUIRE(cpu.identity.has_value() == (cpu.arch == "x86_64"));
    if (cpu.identity) {
      REQUIRE(has_source(cpu.identity->family));
      REQUIRE(has_source(cpu.identity->model));
    }
  }
  for (const auto& [name, gpu] : shipped_catalogue().gpus()) {
    INFO(name);
    REQUIRE(!gpu.peak.empty());
    for (const auto& [type, rate] : gpu.peak) {
      REQUIRE(has_source(rate));
    }
    REQUIRE(has_source(gpu.multiprocessors));
    REQUIRE(has_source(gpu.memory));
    REQUIRE(has_source(gpu.memory_bandwidth));
    REQUIRE(has_source(gpu.memory_efficiency));
    REQUIRE(has_source(gpu.scale_up_links));
    REQUIRE((gpu.pcie.empty() || has_source(gpu.pcie_lanes)));
    REQUIRE(gpu.pcie.empty() != gpu.c2c.empty());
  }
  for (const auto& [name, link] : shipped_catalogue().links()) {
    INFO(name);
    REQUIRE(has_source(link.bandwidth));
    REQUIRE(has_source(link.efficiency));
    REQUIRE(has_source(link.max_payload));
    REQUIRE(has_source(link.latency));
    REQUIRE(has_source(link.gpu_latency));
    REQUIRE(has_source(link.switch_latency));
    REQUIRE(has_source(link.root_latency));
    REQUIRE(has_source(link.in_network_reduction));
  }
  for (const auto& [name, nic] : shipped_catalogue().nics()) {
    INFO(name);
    REQUIRE(has_source(nic.speed));
    REQUIRE(has_source(nic.ports));
    REQUIRE(has_source(nic.pcie_lanes));
    REQUIRE(has_source(nic.efficiency));
    REQUIRE(has_source(nic.latency));
  }
  for (const auto& [name, model] : shipped_catalogue().nvswitches()) {
    INFO(name);
    REQUIRE(has_source(model.ports));
    REQUIRE(has_source(model.in_network_reduction));
  }
  for (const auto& [name, model] : shipped_catalogue().switches()) {
    INFO(name);
    REQUIRE(has_source(model.ports));
    REQUIRE(has_source(model.speed));
    REQUIRE(has_source(model.latency));
    REQUIRE(has_source(model.buffer));
    REQUIRE(has_source(model.in_network_reduction));
  }
}

TEST_CASE("an unknown name in a cluster file suggests the nearest part") {
  REQUIRE(look_up_error("H100") ==
          "cluster.yaml:1:6: gpu: expected the name of a GPU in the catalogue, found \"H100\"; did "
          "you mean \"H100-SXM\"?");
  REQUIRE(look_up_error("h100-pcie") ==
          "cluster.yaml:1:6: gpu: expected the name of a GPU in the catalogue, found "
          "\"h100-pcie\"; did you mean \"H100-PCIe\"?");
  REQUIRE(look_up_error("H200-SXN") ==
          "cluster.yaml:1:6: gpu: expected the name of a GPU in the catalogue, found "
          "\"H200-SXN\"; did you mean \"H200-SXM\"?");
  REQUIRE_THAT(look_up_error("a-very-odd-device"),
               Catch::Contains("found \"a-very-odd-device\"; known are A10, "));
  REQUIRE(look_up_error("MI300X") == "no error");
}

}  // namespace trainyard
