// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/link_rates.h"

#include <string>
#include <tuple>
#include <vector>

namespace trainyard::nccl {
namespace {

NcclCpu cpu(const std::string& arch, const std::string& vendor, int family, int model) {
  NcclCpu result;
  result.arch = arch;
  result.vendor = vendor;
  result.familyid = family;
  result.modelid = model;
  return result;
}

TEST_CASE("a PCIe link has generation times width, in either spelling", "[nccl]") {
  REQUIRE(pcie_bandwidth("8.0 GT/s PCIe", 16) == 12.0F);
  REQUIRE(pcie_bandwidth("8 GT/s", 16) == 12.0F);
  REQUIRE(pcie_bandwidth("16.0 GT/s PCIe", 16) == 24.0F);
  REQUIRE(pcie_bandwidth("32.0 GT/s PCIe", 8) == 24.0F);
  REQUIRE(pcie_bandwidth("64.0 GT/s PCIe", 16) == 96.0F);
  REQUIRE(pcie_bandwidth("2.5 GT/s", 16) == 3.0F);
  REQUIRE(pcie_bandwidth("2.5 GT/s PCIe", 16) == 3.0F);
  REQUIRE(pcie_bandwidth("32 GT/s PCIe/s", 16) == 48.0F);
}

TEST_CASE("an unknown PCIe link counts as generation 3 of 16 lanes", "[nccl]") {
  REQUIRE(pcie_bandwidth("", 0) == 12.0F);
  REQUIRE(pcie_bandwidth("Unknown speed", 16) == 12.0F);
  REQUIRE(pcie_bandwidth("32.0 GT/s", 16) == 12.0F);
  REQUIRE(pcie_bandwidth("16.0 GT/s PCIe", 0) == 24.0F);
}

TEST_CASE("sockets are joined at the rate of their CPU", "[nccl]") {
  const std::vector<std::tuple<NcclCpu, float>> rates{
      {cpu("x86_64", "GenuineIntel", 6, 79), 6.0F},
      {cpu("x86_64", "GenuineIntel", 6, 0x55), 10.0F},
      {cpu("x86_64", "GenuineIntel", 6, 0x8F), 22.0F},
      {cpu("x86_64", "GenuineIntel", 6, 0xCF), 40.0F},
      {cpu("x86_64", "AuthenticAMD", 175, 49), 16.0F},
      {cpu("x86_64", "CentaurHauls", 7, 0x3B), 6.0F},
      {cpu("x86_64", "  Shanghai  ", 7, 0x5B), 9.0F},
      {cpu("arm64", "", 0, 0), 6.0F},
      {cpu("ppc64", "", 0, 0), 32.0F},
      {cpu("x86_64", "", 0, 0), kLocalBandwidth}};
  for (const auto& [model, rate] : rates) {
    REQUIRE(socket_bandwidth(model) == rate);
  }
}

TEST_CASE("only x86 has vendors", "[nccl]") {
  REQUIRE(vendor_of(cpu("x86_64", "GenuineIntel", 6, 1)) == CpuVendor::Intel);
  REQUIRE(vendor_of(cpu("arm64", "GenuineIntel", 6, 1)) == CpuVendor::Unknown);
  REQUIRE(arch_of(NcclCpu{}) == CpuArch::Unknown);
}

}  // namespace
}  // namespace trainyard::nccl
