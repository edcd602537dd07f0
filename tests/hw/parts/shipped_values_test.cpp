// SPDX-License-Identifier: Apache-2.0
// The shipped catalogue holds the published values, and they add up to what was measured.
#include "support/catch.h"

#include <cmath>
#include <string>
#include <vector>

#include "hw/parts/catalogue.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

bool near(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance * expected;
}

// All GPU-to-GPU links of a GPU together, per direction.
double scale_up_gigabytes_per_second(const GpuModel& gpu) {
  return shipped_catalogue().link(gpu.scale_up_link).bandwidth.value.gigabytes_per_second() *
         gpu.scale_up_links.value;
}

}  // namespace

TEST_CASE("NVSwitches from NVLink 4 on and Quantum switches reduce in the network, no others") {
  const auto names_of = [](const auto& parts) {
    std::vector<std::string> names;
    for (const auto& [name, part] : parts) {
      if (part.in_network_reduction && part.in_network_reduction->value) {
        names.push_back(name);
      }
    }
    return names;
  };
  REQUIRE(names_of(shipped_catalogue().links()) == std::vector<std::string>{"NVLink4", "NVLink5"});
  REQUIRE(names_of(shipped_catalogue().switches()) ==
          std::vector<std::string>{"Quantum-QM8700", "Quantum-QM8700-80x100G", "Quantum2-QM9700",
                                   "Quantum2-QM9700-128x200G", "QuantumX800-Q3400"});
}

TEST_CASE("the shipped values are the published ones") {
  const auto& gpus = shipped_catalogue().gpus();
  REQUIRE(gpus.at("V100-SXM2-16GB").peak.at("fp16").value == FlopRate(125e12));
  REQUIRE(gpus.at("A100-SXM-40GB").memory_bandwidth.value == gigabytes_per_second(1555));
  REQUIRE(gpus.at("A100-SXM-80GB").memory.value == Bytes(80'000'000'000));
  REQUIRE(gpus.at("H100-SXM").peak.at("bf16").value.teraflops() == Approx(989.0));
  REQUIRE(gpus.at("H100-SXM").multiprocessors->value == 132);
  REQUIRE(gpus.at("H100-SXM").multiprocessors->evidence == Evidence::Datasheet);
  REQUIRE(gpus.at("H200-SXM").memory_efficiency->value == Approx(0.81));
  REQUIRE(gpus.at("H20").memory_bandwidth.evidence == Evidence::Secondary);
  REQUIRE(gpus.at("B200").multiprocessors->value == 148);
  REQUIRE(gpus.at("GB200").peak.at("fp4").value.teraflops() == Approx(10000.0));
  REQUIRE(gpus.at("GB200").c2c == "C2C-Grace-Blackwell");
  REQUIRE(!gpus.at("GB200").multiprocessors.has_value());
  REQUIRE(gpus.at("RTX-4090").scale_up_links.value == 0);
  REQUIRE(gpus.at("RTX-4090").scale_up_link.empty());
  REQUIRE(gpus.at("MI300X").memory_bandwidth.value == gigabytes_per_second(5300));

  const auto& links = shipped_catalogue().links();
  REQUIRE(links.at("NVLink4").efficiency.value == Approx(0.82));
  REQUIRE(links.at("NVLink5").bandwidth.value == gigabytes_per_second(50));
  REQUIRE(links.at("UPI-Skylake").bandwidth.evidence == Evidence::Shipped);
  REQUIRE(links.at("PCIe5").switch_latency->value == nanoseconds(115));

  const auto& nics = shipped_catalogue().nics();
  REQUIRE(nics.at("ConnectX-7").speed.value == gigabits_per_second(400));
  REQUIRE(nics.at("ConnectX-7").efficiency.value == Approx(0.96));
  REQUIRE(nics.at("ConnectX-6").latency.value == nanoseconds(125));

  const auto& switches = shipped_catalogue().switches();
  REQUIRE(switches.at("Quantum2-QM9700").ports.value == 64);
  REQUIRE(switches.at("Tomahawk4").buffer->value == Bytes(113'660'000));
  REQUIRE(switches.at("Rosetta").latency.value == nanoseconds(350));
}

TEST_CASE("the links of a GPU add up to its published bandwidth") {
  const auto total = [](const char* name) {
    return scale_up_gigabytes_per_second(shipped_catalogue().gpus().at(name));
  };
  REQUIRE(total("V100-SXM2-32GB") == Approx(150.0));
  REQUIRE(total("H800-SXM") == Approx(200.0));
  REQUIRE(total("A100-SXM-80GB") == Approx(300.0));
  REQUIRE(total("A100-PCIe-80GB") == Approx(300.0));
  REQUIRE(total("H100-SXM") == Approx(450.0));
  REQUIRE(total("B200") == Approx(900.0));
  REQUIRE(total("MI300X") == Approx(448.0));
}

TEST_CASE("a socket says who it is, what its memory carries and how it joins others") {
  // The extended family of CPUID as the high digit: 15 + 16 x (25 - 15).
  const CpuModel& milan = shipped_catalogue().cpus().at("EPYC-Milan");
  REQUIRE(milan.identity->vendor == "AuthenticAMD");
  REQUIRE(milan.identity->family.value == 15 + 16 * (25 - 15));
  REQUIRE(milan.identity->model.value == 1);
  REQUIRE(shipped_catalogue().cpus().at("EPYC-Turin").identity->family.value ==
          15 + 16 * (26 - 15));
  const CpuModel& xeon = shipped_catalogue().cpus().at("Xeon-SapphireRapids");
  REQUIRE(xeon.identity->vendor == "GenuineIntel");
  REQUIRE(xeon.identity->model.value == 0x8F);
  REQUIRE(xeon.socket_link == "UPI-Sapphire-Rapids");
  // Channels x transfers a second x 8 bytes.
  REQUIRE(xeon.memory_bandwidth.value.gigabytes_per_second() == Approx(8 * 4.8 * 8));
  REQUIRE(
      shipped_catalogue().cpus().at("EPYC-Genoa").memory_bandwidth.value.gigabytes_per_second() ==
      Approx(12 * 4.8 * 8));
  REQUIRE(shipped_catalogue().cpus().at("Grace").arch == "arm64");
}

TEST_CASE("PCIe reaches the published rates for each payload size") {
  struct Row {
    const char* link;
    int lanes;
    double encoded;  // GB/s after encoding, then with payloads of 128, 256 and 512 bytes.
    double payload[3];
  };
  const Row rows[] = {{"PCIe3", 16, 15.75, {12.8, 14.1, 14.9}},
                      {"PCIe4", 16, 31.5, {25.5, 28.2, 29.8}},
                      {"PCIe5", 16, 63.0, {51.0, 56.4, 59.5}},
                      {"PCIe4", 8, 15.75, {12.8, 14.1, 14.9}}};
  for (const Row& row : rows) {
    INFO(row.link << " x" << row.lanes);
    const LinkModel& link = shipped_catalogue().link(row.link);
    const double encoded = link.bandwidth.value.gigabytes_per_second() * row.lanes;
    REQUIRE(near(encoded, row.encoded, 0.001));
    REQUIRE(near(encoded * pcie_efficiency(Bytes(128)), row.payload[0], 0.005));
    REQUIRE(near(encoded * pcie_efficiency(Bytes(256)), row.payload[1], 0.005));
    REQUIRE(near(encoded * pcie_efficiency(Bytes(512)), row.payload[2], 0.005));
    REQUIRE(link.efficiency.value == Approx(pcie_efficiency(Bytes(256))));
  }
  const LinkModel& flits = shipped_catalogue().link("PCIe6");
  REQUIRE(near(flits.bandwidth.value.gigabytes_per_second() * 16 * flits.efficiency.value, 121.0,
               0.001));
}

TEST_CASE("the latencies of PCIe and NVLink add up to the measured ones") {
  const LinkModel& pcie = shipped_catalogue().link("PCIe5");
  const SimTime gpu_link = pcie.latency.value + pcie.gpu_latency->value;
  const SimTime one_switch = gpu_link * 2 + pcie.switch_latency->value;
  REQUIRE(one_switch > nanoseconds(633));
  REQUIRE(one_switch < nanoseconds(727));
  const SimTime through_root = gpu_link * 2 + pcie.latency.value * 2 +
                               pcie.switch_latency->value * 2 + pcie.root_latency->value;
  REQUIRE(through_root > nanoseconds(1039));
  REQUIRE(through_root < nanoseconds(1116));
  const LinkModel& nvlink = shipped_catalogue().link("NVLink4");
  REQUIRE(nvlink.latency.value * 2 + nvlink.switch_latency->value == nanoseconds(800));
}

}  // namespace trainyard
