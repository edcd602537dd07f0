// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/doctor/doctor.h"

#include <cmath>
#include <filesystem>
#include <string>

#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

const std::filesystem::path kDoctorConfigs = source_dir() / "configs";

Cluster one_server(const std::string& name) {
  return load_cluster(kDoctorConfigs / "clusters" / (name + ".yaml"), shipped_catalogue(),
                      {.nodes = 1});
}

std::vector<DoctorRun> two_runs() {
  std::vector<DoctorRun> runs(2);
  runs[1].operation = Operation::AllGather;
  for (DoctorRun& run : runs) {
    for (Bytes size = kib(4); size <= gib(1); size = size * 4) {
      run.points.push_back({.size = size, .time = {}});
    }
  }
  return runs;
}

Hypotheses hypotheses_of(const Cluster& cluster, std::span<const DoctorRun> runs) {
  const nccl::Profile profile = nccl::Profile::load(kDoctorConfigs / "nccl/profile.yaml");
  return predict_hypotheses({cluster, profile, runs},
                            [](std::size_t count, const std::function<void(std::size_t)>& task) {
                              for (std::size_t index = 0; index < count; ++index) {
                                task(index);
                              }
                            });
}

const Intervals& shipped_intervals() {
  static const Intervals intervals = Intervals::load(kDoctorConfigs / "nccl/intervals.yaml");
  return intervals;
}

// The runs as this candidate predicts them.
void measure(std::vector<DoctorRun>& runs, const Candidate& candidate) {
  std::size_t row = 0;
  for (DoctorRun& run : runs) {
    for (DoctorPoint& point : run.points) {
      point.time = SimTime(std::llround(std::exp(candidate.log_times[row++]) * 1e6));
    }
  }
}

}  // namespace

TEST_CASE("each simulated fault is found in its own log, over two operations") {
  std::vector<DoctorRun> runs = two_runs();
  const Cluster cluster = one_server("dgx-h100");
  const Hypotheses all = hypotheses_of(cluster, runs);
  REQUIRE(all.rows.size() == runs[0].points.size() + runs[1].points.size());
  REQUIRE(all.machine.gpu == "hopper");
  for (const Candidate& truth : all.candidates) {
    measure(runs, truth);
    const DoctorResult result = examine(all, runs, shipped_intervals());
    const std::vector<std::size_t>& unseen = result.diagnosis.unseen;
    if (std::ranges::find(unseen, truth.fault) != unseen.end()) {
      REQUIRE(result.is_normal());
      continue;
    }
    INFO(all.faults[truth.fault].code);
    const std::vector<std::size_t>& first = result.diagnosis.explanations.front().faults;
    REQUIRE(std::ranges::find(first, truth.fault) != first.end());
    REQUIRE(result.diagnosis.fits);
    REQUIRE(result.is_normal() == (truth.fault == 0));
  }
}

TEST_CASE("rows are below, within or above their range") {
  std::vector<DoctorRun> runs = two_runs();
  const Cluster cluster = one_server("rtx4090-pcie");
  const Hypotheses all = hypotheses_of(cluster, runs);
  measure(runs, all.candidates.front());
  runs[0].points[0].time = runs[0].points[0].time * 10;
  runs[1].points[1].time = SimTime(runs[1].points[1].time.picoseconds() / 10);
  const DoctorResult result = examine(all, runs, shipped_intervals());
  REQUIRE(result.rows[0].verdict == Verdict::Above);
  REQUIRE(result.rows[1].verdict == Verdict::Within);
  REQUIRE(result.rows[runs[0].points.size() + 1].verdict == Verdict::Below);
  REQUIRE(to_string(Verdict::Below) == "below");
  REQUIRE(result.is_known_kind);
}

TEST_CASE(
    "more than a quarter of the rows above their ranges is not normal, whatever explains them") {
  std::vector<DoctorRun> runs = two_runs();
  const Cluster cluster = one_server("dgx-h100");
  const Hypotheses all = hypotheses_of(cluster, runs);
  const std::size_t count = all.rows.size();
  for (std::size_t slow = 0; slow <= count / 2; ++slow) {
    measure(runs, all.candidates.front());
    std::vector<DoctorPoint*> points;
    for (DoctorRun& run : runs) {
      for (DoctorPoint& point : run.points) {
        points.push_back(&point);
      }
    }
    for (std::size_t row = 0; row < slow; ++row) {
      SimTime& time = points[count - 1 - row]->time;
      time = SimTime(time.picoseconds() * 3);
    }
    const DoctorResult result = examine(all, runs, shipped_intervals());
    REQUIRE(result.above == slow);
    REQUIRE(result.below == 0);
    REQUIRE(result.is_slow() == (4 * slow > count && slow >= 3));
    if (result.is_slow()) {
      REQUIRE_FALSE(result.is_normal());
      for (const Explanation& one : result.diagnosis.explanations) {
        REQUIRE(one.faults.front() != 0);
      }
    }
  }
  measure(runs, all.candidates.front());
  for (DoctorRun& run : runs) {
    for (DoctorPoint& point : run.points) {
      point.time = SimTime(point.time.picoseconds() / 3);
    }
  }
  const DoctorResult fast = examine(all, runs, shipped_intervals());
  REQUIRE(fast.is_fast());
  REQUIRE_FALSE(fast.is_normal());
}

TEST_CASE("a fault that takes the machine apart is left out with the reason") {
  std::vector<DoctorRun> runs(1);
  runs[0].points.push_back({.size = mib(1), .time = {}});
  const Cluster cluster = load_cluster(kDoctorConfigs / "clusters/h100-1gpu-400g.yaml",
                                       shipped_catalogue(), {.nodes = 2});
  const Hypotheses all = hypotheses_of(cluster, runs);
  bool seen = false;
  for (const MachineFault& fault : all.faults) {
    if (fault.code == "nic-down") {
      seen = fault.left_out.find("cannot reach each other") != std::string::npos;
    }
  }
  REQUIRE(seen);
}

TEST_CASE("machines that no table shows have the errors of strangers") {
  const nccl::MachineKind stranger{.gpu = "volta", .scale_up = "nvswitch", .network = "efa"};
  REQUIRE(error_model(stranger, shipped_intervals()).local ==
          error_model(std::string(kUnlikeAny)).local);
  const nccl::MachineKind known{.gpu = "hopper", .scale_up = "nvswitch", .network = "none"};
  REQUIRE(error_model(known, shipped_intervals()).local == error_model("nvswitch").local);
}

}  // namespace trainyard
