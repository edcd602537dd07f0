// SPDX-License-Identifier: Apache-2.0
// Writes a profile of NCCL with other values of some constants, and where these are from.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/predict/profile_constants.h"
#include "nccl/timing/profile.h"
#include "sim/config.h"

namespace trainyard {

// A constant that was fitted; texts as constant_text() makes them.
struct FittedText {
  std::string name;  // Name of the ProfileConstant.
  std::string value;
  std::string low;  // Lower end of the 90 % interval.
  std::string high;
  std::size_t rows = 0;
  std::vector<std::string> files = {};
};

struct ProfileOrigin {
  std::string cluster;
  std::vector<std::string> files;
  nccl::ProfileBasis basis;
};

// The text as a scalar of YAML, plain where it may be, also within braces.
[[nodiscard]] std::string yaml_scalar(const std::string& text);

// A mapping without its comments, and with one more source, "calibration". `leaf` writes a mapping
// with its path on one line, or gives nothing where the mapping is of others.
using LeafText =
    std::function<std::optional<std::string>(const ConfigNode& leaf, const std::string& path)>;
[[nodiscard]] std::string rewritten(const ConfigNode& root, const std::string& source,
                                    const LeafText& leaf);

// The LeafText of values with evidence and source.
[[nodiscard]] std::optional<std::string> cited_text(const ConfigNode& node,
                                                    const std::string& path);

// The document of `constants` in its order, without its comments. A constant that is not fitted
// keeps value, evidence and source; one that is has `evidence: measured`, `source: calibration` and
// its interval, rows and files under `fit`. nccl::Profile reads it.
[[nodiscard]] std::string calibrated_profile(const ProfileConstants& constants,
                                             const std::vector<FittedText>& fitted,
                                             const ProfileOrigin& origin);

}  // namespace trainyard
