// SPDX-License-Identifier: Apache-2.0
// Cases whose tables the model itself has measured, with constants that a test knows.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calibration/predict/nccl_prediction.h"
#include "calibration/predict/profile_constants.h"
#include "calibration/predict/validation_case.h"
#include "support/built_clusters.h"
#include "support/case_files.h"
#include "support/paths.h"

namespace trainyard {

[[nodiscard]] inline const ProfileConstants& shipped_constants() {
  static const ProfileConstants instance(kConfigsFolder / "nccl" / "profile.yaml",
                                         kConfigsFolder / "nccl" / "profile-priors.yaml");
  return instance;
}

// Three systems: "small" and "large" of H100 servers, "old" the only one of A100. AllReduce by Ring
// with Simple. Times are those of `profile`, one per cent up and down in turns.
class SyntheticCases {
 public:
  explicit SyntheticCases(const nccl::Profile& profile) {
    add(profile, "small", "dgx-h100", 4);
    add(profile, "large", "dgx-h100", 8);
    add(profile, "old", "dgx-a100", 8);
  }
  [[nodiscard]] const std::vector<LoadedCase>& cases() const { return cases_; }
  [[nodiscard]] std::string folder() const { return (scratch_.path() / "cases").string(); }

 private:
  void add(const nccl::Profile& profile, const std::string& system, const std::string& cluster,
           int gpus) {
    const std::string head = fmt::format(
        "source: {{title: \"A page\", repo_or_site: \"site\"}}\n"
        "system: {{name: \"A box\", nodes: 1, gpus_per_node: {0}}}\n"
        "test: {{op: \"all_reduce\", ranks: {0}}}\nrows:\n",
        gpus);
    const std::string rest = fmt::format(
        "class: {1}\nsystem: {0}\nreference: {0}.txt\ncluster: {1}\nenv: {{NCCL_ALGO: Ring, "
        "NCCL_PROTO: Simple}}\n",
        system, cluster);
    std::filesystem::create_directories(scratch_.path() / "cases");
    const std::filesystem::path file = scratch_.write("cases/" + system + ".yaml", rest);
    const auto row = [](Bytes size, double us) {
      return fmt::format("  - {{bytes: {}, time_us: {:.3f}}}\n", size.count(), us);
    };
    std::string rows;
    for (const Bytes size : sizes()) {
      rows += row(size, 1.0);
    }
    (void)scratch_.write("cases/" + system + ".txt", head + rows);
    const LoadedCase loaded = load_validation_case(file, source_dir());
    const Cluster machine = cluster_of(loaded.item, shipped_catalogue());
    const std::vector<PredictedTime> times =
        nccl_predictor(profile)(loaded.item, machine, loaded.operation, sizes());
    rows.clear();
    for (std::size_t i = 0; i < times.size(); ++i) {
      rows += row(sizes()[i], times[i].time.microseconds() * (i % 2 == 0 ? 1.01 : 0.99));
    }
    (void)scratch_.write("cases/" + system + ".txt", head + rows);
    cases_.push_back(load_validation_case(file, source_dir()));
  }

  [[nodiscard]] static std::vector<Bytes> sizes() {
    return {kib(4), kib(256), mib(2), mib(8), mib(32), mib(63)};
  }

  ScratchFolder scratch_;
  std::vector<LoadedCase> cases_;
};

inline void one_by_one(std::size_t count, const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < count; ++i) {
    task(i);
  }
}

}  // namespace trainyard
