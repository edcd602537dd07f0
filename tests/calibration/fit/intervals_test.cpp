// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/fit/intervals.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "report/accuracy/ledger_report.h"
#include "sim/config_error.h"
#include "sim/random.h"
#include "support/ledger_curves.h"
#include "support/ledgers.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

using namespace literals;
using Catch::Matchers::Contains;

// Two systems, so that every regime has a band for machines that no table shows, also without one.
void add_strangers(std::vector<LedgerRow>& ledger, double surprise) {
  for (const char* const system : {"stranger", "other stranger"}) {
    for (const Bytes size : {Bytes(8), 1_MiB, 1_GiB}) {
      for (const double sign : {-1.0, 1.0}) {
        LedgerRow row = ledger_row(system, size, sign * surprise);
        row.machine = kLedgerVolta;
        row.is_alone = true;
        ledger.push_back(row);
      }
    }
  }
}

TEST_CASE("sizes fall into three regimes") {
  REQUIRE(regime_of(Bytes(0)) == SizeRegime::Latency);
  REQUIRE(regime_of(Bytes(64 * 1024 - 1)) == SizeRegime::Latency);
  REQUIRE(regime_of(64_KiB) == SizeRegime::Between);
  REQUIRE(regime_of(16_MiB) == SizeRegime::Bandwidth);
}

TEST_CASE("two systems at every size give intervals") {
  std::vector<LedgerRow> ledger;
  add_strangers(ledger, 0.1);
  REQUIRE(gives_intervals(ledger));
  ledger.resize(6);  // One system.
  REQUIRE_FALSE(gives_intervals(ledger));
}

TEST_CASE("every system weighs the same, however many rows it has") {
  std::vector<LedgerRow> ledger;
  // A thousand rows that were foreseen, and two systems that were not.
  for (int i = 0; i < 1'000; ++i) {
    ledger.push_back(ledger_row("large", 1_GiB, 0.0));
  }
  ledger.push_back(ledger_row("slow", 1_GiB, 0.4));
  ledger.push_back(ledger_row("fast", 1_GiB, -0.2));
  add_strangers(ledger, 0.0);
  const TimeBand band = Intervals::of(ledger, "").band(kLedgerHopper, 1_GiB);
  REQUIRE(band.low == Approx(std::exp(-0.2)).epsilon(1e-6));
  REQUIRE(band.high == Approx(std::exp(0.4)).epsilon(1e-6));
  REQUIRE(band.systems == 3);
  REQUIRE(band.rows == 1'002);
  REQUIRE(Intervals::of(ledger, "slow").band(kLedgerHopper, 1_GiB).high == Approx(1.0));
}

TEST_CASE("machines that no table shows get the interval of those that were alone") {
  std::vector<LedgerRow> ledger;
  for (int i = 0; i < 40; ++i) {
    ledger.push_back(ledger_row("s" + std::to_string(i), 1_MiB, i % 2 == 0 ? 0.1 : -0.1));
  }
  add_strangers(ledger, 1.0);
  const Intervals intervals = Intervals::of(ledger, "");
  const nccl::MachineKind other{.gpu = "blackwell", .scale_up = "nvswitch", .network = "none"};
  REQUIRE(intervals.is_known(kLedgerHopper));
  REQUIRE_FALSE(intervals.is_known(other));
  const TimeInterval near = intervals.around(100_us, kLedgerHopper, 1_MiB);
  const TimeInterval far = intervals.around(100_us, other, 1_MiB);
  REQUIRE(near.high.microseconds() == Approx(110.517).epsilon(1e-4));
  REQUIRE(far.low < near.low);
  REQUIRE(far.high > near.high);
  // A family without rows of this size is as unknown.
  REQUIRE(intervals.around(100_us, kLedgerHopper, 1_GiB).high == far.high);
}

TEST_CASE("systems of other families count as three, so that few of a kind are not too sure") {
  std::vector<LedgerRow> ledger;
  for (int i = 0; i < 30; ++i) {
    ledger.push_back(ledger_row("s" + std::to_string(i), 1_GiB, 0.0));
  }
  add_strangers(ledger, 1.0);
  // Of 33, one and a half beyond each end: less than 5 %.
  REQUIRE(Intervals::of(ledger, "").band(kLedgerHopper, 1_GiB).high == Approx(1.0));
  ledger.erase(ledger.begin(), ledger.begin() + 15);
  REQUIRE(Intervals::of(ledger, "").band(kLedgerHopper, 1_GiB).high == Approx(std::exp(1.0)));
}

TEST_CASE("nine rows in ten of a new system lie in the interval of those before") {
  RandomStream random(1, "intervals");
  std::vector<LedgerRow> ledger;
  // A factor of each system, and less of each row.
  const auto normal = [&] {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) {
      sum += random.uniform();
    }
    return sum;
  };
  for (int system = 0; system < 60; ++system) {
    const double own = 0.2 * normal();
    for (int row = 0; row < 20; ++row) {
      ledger.push_back(ledger_row("s" + std::to_string(system), 1_MiB, own + 0.05 * normal()));
    }
  }
  add_strangers(ledger, 1.0);
  const auto coverage = coverage_of(ledger);
  REQUIRE(coverage.size() == 63);  // Their classes, and all.
  REQUIRE(coverage.at("all").share() > 0.85);
  REQUIRE(coverage.at("all").share() < 0.95);
}

// After a new ledger, or another rule: UPDATE_GOLDEN=1 writes them.
TEST_CASE("the shipped intervals, and those in the ledger, are of the shipped ledger") {
  const std::vector<LedgerRow> ledger = ledger_rows();
  const std::filesystem::path intervals = source_dir() / "configs/nccl/intervals.yaml";
  const std::filesystem::path rows = source_dir() / "validation/ledger.csv";
  const std::string shipped = read_text_file(intervals);
  const std::string schema = shipped.substr(0, shipped.find('\n') + 1);
  const std::string of_ledger = schema + Intervals::of(ledger, "").to_yaml();
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(intervals) << of_ledger;
    std::ofstream(rows) << ledger_csv(ledger);
  }
  REQUIRE(read_text_file(intervals) == of_ledger);
  REQUIRE(read_text_file(rows) == ledger_csv(ledger));
}

TEST_CASE("racks and meshes of NVLink are families of their own on several nodes") {
  const auto family = [](const char* scale_up, const char* network) {
    return family_of({.gpu = "blackwell", .scale_up = scale_up, .network = network});
  };
  REQUIRE(family("nvswitch", "none") == "nvswitch");
  REQUIRE(family("nvswitch-rack", "none") == "nvswitch");
  REQUIRE(family("nvlink", "none") == "pcie");
  REQUIRE(family("nvswitch", "rdma") == "rdma");
  REQUIRE(family("nvswitch-rack", "rdma") == "rdma-rack");
  REQUIRE(family("nvlink", "rdma") == "rdma-mesh");
  REQUIRE(family("pcie", "rdma") == "rdma-pcie");
  REQUIRE(family("nvswitch-rack", "efa") == "other-network");
}

TEST_CASE("intervals are written as they are read") {
  std::vector<LedgerRow> ledger{ledger_row("one", 1_MiB, 0.1), ledger_row("two", 1_MiB, -0.1)};
  add_strangers(ledger, 0.7);
  const std::string text = Intervals::of(ledger, "").to_yaml();
  const ScratchFolder folder;
  REQUIRE(Intervals::load(folder.write("intervals.yaml", text)).to_yaml() == text);
  REQUIRE_THROWS_WITH(Intervals::load(folder.write("none.yaml", "known: []\nbands: {}\n")),
                      Contains("expected bands.unlike-any.latency, found none"));
  REQUIRE_THROWS_WITH(
      Intervals::load(folder.write("bad.yaml", "known: []\nbands: {rdma: {huge: {low: 1}}}\n")),
      Contains("unknown key \"huge\""));
}

}  // namespace
}  // namespace trainyard
