// SPDX-License-Identifier: Apache-2.0
// The constants of a profile of NCCL that are fitted, as numbers: which there are, what is assumed
// of each before any table is looked at (configs/nccl/profile-priors.yaml), and the profile with
// other values of them.
//
// Fitted are the values whose evidence is "measured" or "estimate". What NCCL ships and what a
// datasheet states stays as it is.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nccl/timing/profile.h"
#include "sim/fields.h"

namespace trainyard {

enum class ConstantKind { Time, Rate, Share };

// Values are seconds, bits per second, or shares.
struct ProfileConstant {
  std::string name;  // "gpus.hopper.ll_cost"; of lists "networks.rdma.latency.Simple".
  std::string path;  // Path of its value in the document.
  ConstantKind kind = ConstantKind::Time;
  double in_file = 0.0;      // May be zero.
  bool is_estimate = false;  // True by its evidence; otherwise it was measured somewhere.
  double start = 0.0;        // Assumed value; positive, as all that follow.
  double min = 0.0;
  double max = 0.0;
  double spread = 1.0;  // A factor above one.
  // The same constant of the generation of GPUs before, which it is tied to instead of `start`,
  // and the spread of their ratio.
  std::optional<std::size_t> neighbour = {};
  double neighbour_spread = 1.0;
};

// Rows of a file of priors, which only describe it.
void prior_file_fields(Fields& fields);

class ProfileConstants {
 public:
  // Throws ConfigError, also for a fitted value of which the priors say nothing.
  ProfileConstants(const std::filesystem::path& profile, const std::filesystem::path& priors);

  [[nodiscard]] const std::vector<ProfileConstant>& all() const { return constants_; }
  // The file that it was read from, and its text.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  // The profile with these values, one for each constant, within its limits.
  [[nodiscard]] nccl::Profile profile(std::span<const double> values) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<ProfileConstant> constants_;
};

// "7.85 us", "13.9 GB/s", "0.864".
[[nodiscard]] std::string constant_text(ConstantKind kind, double value, int digits = 3);

}  // namespace trainyard
