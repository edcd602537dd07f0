// SPDX-License-Identifier: Apache-2.0
// The event model of NCCL as a predictor of measured tables.
#pragma once

#include <span>
#include <vector>

#include "calibration/validation.h"
#include "nccl/profile.h"

namespace trainyard {

class NcclPredictor {
 public:
  // Both must outlive the predictor.
  NcclPredictor(const Catalogue& catalogue, const nccl::Profile& profile)
      : catalogue_(catalogue), profile_(profile) {}

  // Throws ConfigError for what NCCL or the model does not do.
  [[nodiscard]] std::vector<PredictedTime> operator()(const ValidationCase& item,
                                                      const Cluster& cluster, Operation operation,
                                                      std::span<const Bytes> sizes) const;

 private:
  const Catalogue& catalogue_;
  const nccl::Profile& profile_;
};

}  // namespace trainyard
