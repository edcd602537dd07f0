// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/packet/link_packets.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

using namespace literals;

}  // namespace

TEST_CASE("PCIe leaves the golden rates", "[transport]") {
  const GoldenTable table(transport_goldens("pcie"));
  REQUIRE(table.rows() == 18);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const int lanes = static_cast<int>(table.integer(row, "lanes"));
    const Bytes payload(table.integer(row, "mps"));
    const double raw =
        pcie_raw_rate(static_cast<int>(table.integer(row, "gen")), lanes).gigabytes_per_second();
    const auto require = [&](double share, std::string_view column) {
      REQUIRE(raw * share == Approx(table.number(row, column)).margin(0.51e-4));
    };
    const double writes = pcie_share(payload, kPcieWriteOverhead);
    require(1.0, "raw_GBps");
    require(writes, "write64_GBps");
    require(writes * pcie_control_share(pcie_control_interval(lanes, payload).value()),
            "write64_with_dllp_guideline_GBps");
    require(pcie_share(payload, kPcieCompletionOverhead), "completion_at_mps_GBps");
    require(pcie_share(kPcieReadBoundary, kPcieCompletionOverhead), "completion_at_rcb64_GBps");
  }
}

TEST_CASE("what the tables of PCIe do not hold has no interval", "[transport]") {
  REQUIRE(!pcie_control_interval(16, Bytes(1024)).has_value());
  REQUIRE(!pcie_control_interval(4, Bytes(256)).has_value());
}

TEST_CASE("open reads bound the rate", "[transport]") {
  REQUIRE(pcie_read_bound(256, Bytes(512), 1_us).gigabytes_per_second() == Approx(131.072));
  REQUIRE(pcie_read_bound(32, Bytes(512), 1_us).gigabytes_per_second() == Approx(16.384));
}

TEST_CASE("NVLink leaves the golden rates", "[transport]") {
  const GoldenTable table(transport_goldens("nvlink"));
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double raw = table.number(row, "GBps_per_link_dir") * table.number(row, "links");
    REQUIRE(raw == table.number(row, "raw_GBps_dir"));
    const auto require = [&](double share, std::string_view column) {
      REQUIRE(raw * share == Approx(table.number(row, column)).margin(0.51e-3));
    };
    require(nvlink_share(Bytes(256)), "uni_256B");
    require(nvlink_share(Bytes(256), 0, 1), "bidir_256B");
    require(nvlink_share(Bytes(64)), "uni_64B");
    require(nvlink_share(Bytes(64), 0, 1), "bidir_64B");
  }
}

TEST_CASE("small and scattered stores waste flits of NVLink", "[transport]") {
  REQUIRE(nvlink_share(Bytes(32), 1) == Approx(0.5));
  REQUIRE(nvlink_share(Bytes(1)) == Approx(1.0 / 32.0));
}

}  // namespace trainyard
