// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs.
#pragma once

#include "calibrate/backend.h"

namespace trainyard::calibrate {

class CudaBackend final : public Backend {
 public:
  [[nodiscard]] std::string name() const override { return "cuda"; }
  [[nodiscard]] Machine machine(const Options& options) override;
  void measure(const std::string& id, const Options& options, SampleSink& sink) override;
};

}  // namespace trainyard::calibrate
