// SPDX-License-Identifier: Apache-2.0
// The event model of NCCL as a predictor of measured tables.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calibration/predict/validation.h"
#include "nccl/timing/profile.h"
#include "nccl/tuning/communicator.h"

namespace trainyard {

// The rows of one case with all that does not depend on the profile computed once: graphs, rings
// and plans. The event model itself is all that is left to run for each profile.
class NcclSession {
 public:
  // The cluster must outlive it; the profile need not. Throws ConfigError for what NCCL or the
  // model does not do.
  NcclSession(const ValidationCase& item, const Cluster& cluster, const nccl::Profile& profile,
              Operation operation, std::span<const Bytes> sizes);
  NcclSession(const NcclSession&) = delete;
  NcclSession& operator=(const NcclSession&) = delete;
  ~NcclSession();

  // Times from now on are of this profile.
  void use(const nccl::Profile& profile);
  [[nodiscard]] std::size_t rows() const;
  [[nodiscard]] nccl::MachineKind machine() const;
  [[nodiscard]] const nccl::Communicator& communicator() const;
  // Returns the time that nccl-tests would print for a row. Only one thread may call it at a time.
  [[nodiscard]] SimTime time(std::size_t row);
  // Describes what runs, in a few words.
  [[nodiscard]] std::string how(std::size_t row) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The profile must outlive the predictor.
[[nodiscard]] Predictor nccl_predictor(const nccl::Profile& profile);

}  // namespace trainyard
