// SPDX-License-Identifier: Apache-2.0
// Faults are planted in simulated logs, and the doctor must name them. Every machine is simulated
// with every fault once; a trial draws what the log has beside that:
//
//   plain   3 % of noise in each row
//   biased  also the mean error of a measured system of this family, range by range of sizes
//   curves  also all of its errors, size by size: what the model really gets wrong
//
// A fault is found if it is in the first explanation, alone or with those that predict the same.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calibration/doctor/doctor.h"
#include "nccl/timing/profile.h"
#include "sim/random.h"
#include "support/effort.h"
#include "support/ledger_curves.h"
#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

const std::filesystem::path kRoot = source_dir();
constexpr double kRowNoise = 0.03;

enum class Bias { Plain, Biased, Curves };

// What an all_reduce_perf -b 1K -e 1G -f 2 prints, or another program.
struct Ward {
  std::string cluster;
  int nodes = 1;
  Operation operation = Operation::AllReduce;
  std::vector<std::string> settings = {};
};

struct Planted {
  Ward ward;
  std::string fault;
  std::string change;  // Of the variant.
};

const Ward kH100{.cluster = "dgx-h100", .nodes = 1};
const Ward kH100x2{.cluster = "dgx-h100", .nodes = 2};
const Ward kH100Gather{.cluster = "dgx-h100", .nodes = 2, .operation = Operation::AllGather};
const Ward kA100{.cluster = "dgx-a100", .nodes = 1};
const Ward kA100x2{.cluster = "dgx-a100", .nodes = 2};
const Ward kClos{.cluster = "hgx-h100-clos",
                 .nodes = 4,
                 .operation = Operation::AllGather,
                 .settings = {"fabric.nodes_per_leaf=2", "fabric.routing=static"}};
const Ward kCards{.cluster = "rtx4090-pcie", .nodes = 1};

class Hospital {
 public:
  explicit Hospital(const Ward& ward) {
    const Cluster cluster =
        load_cluster(kRoot / "configs/clusters" / (ward.cluster + ".yaml"), shipped_catalogue(),
                     {.nodes = ward.nodes, .settings = ward.settings});
    const nccl::Profile profile = nccl::Profile::load(kRoot / "configs/nccl/profile.yaml");
    DoctorRun run{.item = {}, .operation = ward.operation, .points = {}};
    for (Bytes size = kib(1); size <= gib(1); size = size * 2) {
      run.points.push_back({.size = size, .time = {}});
    }
    all_ = predict_hypotheses({cluster, profile, std::span(&run, 1)},
                              [](std::size_t count, const std::function<void(std::size_t)>& task) {
                                for (std::size_t index = 0; index < count; ++index) {
                                  task(index);
                                }
                              });
    const std::string family =
        intervals_.is_known(all_.machine) ? family_of(all_.machine) : std::string(kUnlikeAny);
    std::map<std::string, std::vector<LedgerCurve>> systems;
    for (LedgerCurve& curve : ledger_curves()) {
      if (curve.family == family) {
        systems[curve.system].push_back(std::move(curve));
      }
    }
    for (auto& [system, curves] : systems) {
      curves_.push_back(std::move(curves));
    }
  }

  // Of the variant whose change begins so, of a fault with this code.
  [[nodiscard]] std::size_t candidate(const std::string& code, const std::string& change) const {
    for (std::size_t index = 0; index < all_.candidates.size(); ++index) {
      const Candidate& one = all_.candidates[index];
      const MachineFault& fault = all_.faults[one.fault];
      if (fault.code == code && fault.variants[one.variant].change.starts_with(change)) {
        return index;
      }
    }
    FAIL("no fault " << code << " with " << change);
    return 0;
  }

  [[nodiscard]] std::size_t fault_of(std::size_t candidate) const {
    return all_.candidates[candidate].fault;
  }
  [[nodiscard]] const std::string& code(std::size_t fault) const { return all_.faults[fault].code; }

  [[nodiscard]] DoctorResult trial(std::size_t candidate, Bias bias, RandomStream& random) const {
    std::vector<double> log = all_.candidates[candidate].log_times;
    // Each system weighs the same, as in the intervals.
    const std::vector<LedgerCurve>& of_system = curves_[random.below(curves_.size())];
    const LedgerCurve& curve = of_system[random.below(of_system.size())];
    for (std::size_t row = 0; row < log.size(); ++row) {
      log[row] += kRowNoise * normal(random);
      const Bytes size = all_.rows[row].size;
      log[row] += bias == Bias::Biased   ? curve.mean_like(size)
                  : bias == Bias::Curves ? curve.at(size)
                                         : 0.0;
    }
    DoctorRun run{.item = {}, .operation = {}, .points = {}};
    for (std::size_t row = 0; row < log.size(); ++row) {
      run.points.push_back(
          {.size = all_.rows[row].size, .time = SimTime(std::llround(std::exp(log[row]) * 1e6))});
    }
    return examine(all_, std::span(&run, 1), intervals_);
  }

 private:
  // A sum of twelve uniform numbers.
  static double normal(RandomStream& random) {
    double sum = -6.0;
    for (int draw = 0; draw < 12; ++draw) {
      sum += random.uniform();
    }
    return sum;
  }

  Hypotheses all_;
  Intervals intervals_ = Intervals::load(kRoot / "configs/nccl/intervals.yaml");
  std::vector<std::vector<LedgerCurve>> curves_;  // One list for each system.
};

struct Score {
  int found = 0;
  int trials = 0;
  [[nodiscard]] double share() const { return trials > 0 ? 1.0 * found / trials : 0.0; }
};

using Wards = std::map<std::string, Hospital>;

const Hospital& hospital(Wards& wards, const Ward& ward) {
  const std::string key =
      ward.cluster + std::to_string(ward.nodes) + std::string(to_string(ward.operation));
  return wards.try_emplace(key, ward).first->second;
}

void report(const std::string& what, const std::array<Score, 3>& scores) {
  UNSCOPED_INFO(what << ": " << scores[0].share() << " " << scores[1].share() << " "
                     << scores[2].share());
}

struct Outcome {
  std::array<Score, 3> faults;
  std::array<Score, 3> healthy;
};

constexpr std::array kBiases{Bias::Plain, Bias::Biased, Bias::Curves};

void add(const std::array<Score, 3>& own, std::array<Score, 3>& all) {
  for (std::size_t bias = 0; bias < kBiases.size(); ++bias) {
    all.at(bias).found += own.at(bias).found;
    all.at(bias).trials += own.at(bias).trials;
  }
}

std::array<Score, 3> trials_of(const Planted& one, const Hospital& place, RandomStream& random) {
  const std::size_t truth = place.candidate(one.fault, one.change);
  std::array<Score, 3> own;
  for (std::size_t bias = 0; bias < kBiases.size(); ++bias) {
    for (std::uint64_t trial = 0; trial < cases(truth == 0 ? 1000 : 200); ++trial) {
      const DoctorResult result = place.trial(truth, kBiases.at(bias), random);
      const std::vector<std::size_t>& first = result.diagnosis.explanations.front().faults;
      const bool found =
          truth == 0 ? result.is_normal()
                     : std::find(first.begin(), first.end(), place.fault_of(truth)) != first.end();
      own.at(bias).found += found ? 1 : 0;
      ++own.at(bias).trials;
    }
  }
  return own;
}

Outcome outcome_of(const std::vector<Planted>& planted) {
  RandomStream random(20261122, "doctor trials");
  Wards wards;
  Outcome outcome;
  for (const Planted& one : planted) {
    const auto own = trials_of(one, hospital(wards, one.ward), random);
    report(one.ward.cluster + " x " + std::to_string(one.ward.nodes) + " " + one.fault, own);
    add(own, outcome.faults);
  }
  for (const auto& [key, place] : wards) {
    const auto own = trials_of({.ward = {}, .fault = "healthy", .change = ""}, place, random);
    report(key + " healthy", own);
    add(own, outcome.healthy);
  }
  report("faults", outcome.faults);
  report("healthy", outcome.healthy);
  return outcome;
}

// Healthy ones are drawn with errors of other systems of the family: with a thousand trials 92 to
// 98 % of them are called normal.
void require_shares(const Outcome& outcome) {
  for (std::size_t bias = 0; bias < 2; ++bias) {
    REQUIRE(outcome.faults.at(bias).share() >= 0.8);
    REQUIRE(outcome.healthy.at(bias).share() >= 0.9);
  }
}

}  // namespace

TEST_CASE("faults planted in one node are found, and healthy nodes are not called ill", "[long]") {
  require_shares(outcome_of({{kH100, "nvls-off", "NCCL_NVLS_ENABLE=0"},
                             {kH100, "slow-gpu", "thread blocks at 50 %"},
                             {kH100, "few-channels", "NCCL_MAX_NCHANNELS=4"},
                             {kA100, "nvlink-lanes", ""},
                             {kA100, "p2p-off", ""},
                             {kCards, "pcie-generation", ""}}));
}

TEST_CASE("faults planted in two DGX A100 are found, and healthy ones are not called ill",
          "[long]") {
  require_shares(outcome_of({{kA100x2, "protocol", "NCCL_PROTO=Simple"},
                             {kA100x2, "rail-down", ""},
                             {kA100x2, "gpudirect-off", ""}}));
}

TEST_CASE("faults planted in two DGX H100 are found, and healthy ones are not called ill",
          "[long]") {
  require_shares(outcome_of({{kH100x2, "sockets", ""}, {kH100x2, "nvls-off", ""}}));
}

TEST_CASE("faults planted in an AllGather are found, and healthy nodes are not called ill",
          "[long]") {
  require_shares(outcome_of({{kH100Gather, "nic-pcie-x8", ""}, {kH100Gather, "nic-down", ""}}));
}

TEST_CASE("faults planted in a fabric are found, and a healthy one is not called ill", "[long]") {
  require_shares(outcome_of({{kClos, "oversubscription", "links between switches at 1/4"},
                             {kClos, "ecmp", ""},
                             {kClos, "nic-numa", ""}}));
}

}  // namespace trainyard
