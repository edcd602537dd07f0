// SPDX-License-Identifier: Apache-2.0
// A host whose rows are made by the model itself, with other constants than those that are shipped:
// the fit must find them, and the profile that it writes must be read.
#include "support/catch.h"

#include "calibration/hosts/host_calibration.h"

#include "calibration/hosts/host_collectives.h"
#include "sim/config.h"
#include "sim/fields.h"
#include "sim/random.h"
#include "support/built_clusters.h"
#include "support/mpi.h"

namespace trainyard {
namespace {

void run_in_order(std::size_t count, const std::function<void(std::size_t)>& task) {
  for (std::size_t index = 0; index < count; ++index) {
    task(index);
  }
}

// Rows of the tests that are fitted to and one collective, as `profile` makes them.
HostSet made_by(const MpiProfile& profile) {
  HostSet set{.name = "host.yaml", .cpu = "some CPU", .cores = 2, .mpi = "Open MPI", .rows = {}};
  const auto add = [&](const char* test, const char* path, std::int64_t bytes) {
    HostRow row{.test = test, .path = path, .ranks = 2, .size = Bytes(bytes)};
    if (const auto seconds = host_time(row, profile)) {
      row.least = *seconds * 1e6 * (bytes % 3 == 0 ? 1.01 : 0.99);
      row.median = row.least;
      set.rows.push_back(row);
    }
  };
  for (std::int64_t bytes = 8; bytes <= 1 << 28; bytes = bytes * 3 / 2) {
    for (const char* const test : {"written", "returned", "exchange", "exchange-written"}) {
      add(test, "shared", bytes);
    }
    for (const char* const path : {"shared", "tcp"}) {
      add("ping-pong", path, bytes);
      if (bytes <= 256) {
        add("sends", path, bytes);
      }
    }
    for (const char* const test : {"copy", "sum", "rewrite-copy", "rewrite-sum"}) {
      add(test, "memory", bytes);
    }
  }
  return set;
}

HostCalibration calibrated(HostSet set) {
  return calibrate_host(std::move(set), shipped_cluster("dgx-a100", {.nodes = 1}),
                        shipped_mpi_rules(), source_dir() / "configs" / "mpi" / "profile.yaml", {},
                        run_in_order);
}

}  // namespace

TEST_CASE("a fit to a host finds the constants that made its rows", "[calibration][mpi]") {
  MpiProfile truth = shipped_mpi_profile();
  truth.shared->send = nanoseconds(100);
  truth.shared->receive = nanoseconds(100);
  truth.shared->latency = nanoseconds(300);
  truth.shared->rendezvous = nanoseconds(1500);
  truth.shared->read = gigabits_per_second(100);
  truth.tcp.send = microseconds(5);
  truth.sum = gigabits_per_second(200);
  truth.shared->rewrite = gigabits_per_second(20);
  truth.shared->written = gigabits_per_second(50);
  truth.shared->crossing = nanoseconds(700);
  const HostCalibration made = calibrated(made_by(truth));
  ConfigDocument document = ConfigDocument::parse(made.profile, "profile.yaml");
  MpiProfile found;
  read_fields(document.root(), found, mpi_fields);
  const auto near = [](double value) { return Approx(value).epsilon(0.05); };
  REQUIRE(found.shared->send.seconds() == near(truth.shared->send.seconds()));
  REQUIRE(found.shared->receive == found.shared->send);
  REQUIRE(found.shared->latency.seconds() == near(truth.shared->latency.seconds()));
  REQUIRE(found.shared->rendezvous.seconds() == near(truth.shared->rendezvous.seconds()));
  REQUIRE(found.tcp.send.seconds() == near(truth.tcp.send.seconds()));
  REQUIRE(found.tcp.receive.seconds() == near(truth.tcp.receive.seconds()));
  const auto rate = [](Bandwidth of) { return static_cast<double>(of.bits_per_second()); };
  REQUIRE(rate(found.shared->read) == near(rate(truth.shared->read)));
  REQUIRE(rate(found.sum) == near(rate(truth.sum)));
  REQUIRE(rate(found.copy) == near(rate(truth.copy)));
  REQUIRE(rate(found.shared->rewrite) == near(rate(truth.shared->rewrite)));
  REQUIRE(rate(found.shared->written) == near(rate(truth.shared->written)));
  REQUIRE(found.shared->crossing.seconds() == near(truth.shared->crossing.seconds()));
  for (const FittedConstant& constant : made.constants) {
    INFO(constant.name);
    REQUIRE(constant.is_fitted);
    REQUIRE(constant.low < constant.value);
    REQUIRE(constant.value < constant.high);
  }
}

TEST_CASE("collectives of a host are compared and not fitted to", "[calibration][mpi]") {
  HostSet set = made_by(shipped_mpi_profile());
  const std::string before = calibrated(set).profile;
  for (const int ranks : {2, 4}) {
    HostRow row{.test = "all_reduce", .path = "shared", .ranks = ranks, .size = kib(64)};
    row.least = 1.0;
    row.median = 1.0;
    set.rows.push_back(row);
  }
  const HostCalibration made = calibrated(set);
  REQUIRE(made.profile == before);
  REQUIRE(made.collectives.size() == 1);
  REQUIRE(made.collectives[0].measured_us == 1.0);
  REQUIRE(made.collectives[0].shipped_us > 5.0);
  REQUIRE(made.notes.size() == 1);
  REQUIRE(made.notes[0] == "1 rows of more ranks than the host has cores: not compared");
}

TEST_CASE("collectives between hosts give the costs of messages of TCP", "[calibration][mpi]") {
  MpiProfile truth = shipped_mpi_profile();
  truth.tcp.send = microseconds(12);
  truth.tcp.receive = microseconds(6);
  const Cluster cluster = shipped_cluster("dgx-a100", {.nodes = 4});
  const MpiRules rules = shipped_mpi_rules();
  HostSet set{.name = "hosts.yaml", .cpu = "some CPU", .cores = 1, .mpi = "Open MPI", .rows = {}};
  for (const char* const test : {"broadcast", "all_reduce", "alltoall"}) {
    for (const int ranks : {2, 3, 4}) {
      for (const Bytes size : {kib(1), kib(4), kib(16)}) {
        set.rows.push_back({.test = test, .path = "tcp", .ranks = ranks, .size = size});
      }
    }
  }
  REQUIRE(set.hosts() == 4);
  const HostCollectives collectives(set, cluster, rules);
  for (std::size_t row = 0; row < set.rows.size(); ++row) {
    set.rows[row].least = collectives.time(row, truth).microseconds();
  }
  const HostCalibration made = calibrate_host(
      set, cluster, rules, source_dir() / "configs" / "mpi" / "profile.yaml", {}, run_in_order);
  REQUIRE(made.collectives.empty());
  ConfigDocument document = ConfigDocument::parse(made.profile, "profile.yaml");
  MpiProfile found;
  read_fields(document.root(), found, mpi_fields);
  REQUIRE(found.tcp.send.seconds() + found.tcp.receive.seconds() == Approx(18e-6).epsilon(0.05));
}

}  // namespace trainyard
