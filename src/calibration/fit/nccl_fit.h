// SPDX-License-Identifier: Apache-2.0
// The constants of the event model of NCCL, fitted to measured tables: to all of them, and to those
// of all systems but one, which it then predicts (docs/commands/validate.md).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibration/fit/nccl_fit_model.h"
#include "calibration/predict/profile_constants.h"
#include "calibration/predict/validation.h"
#include "calibration/predict/validation_case.h"
#include "calibration/solver/robust_fit.h"
#include "hw/parts/catalogue.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// A system that was left out of a fit.
struct LeftOut {
  std::string system;
  Fit fit;  // Without its tables.
  // Constants, by their number, that move rows of this system and of no other: what no remaining
  // table shows, so that neighbours and priors decide.
  std::vector<std::size_t> unseen;
  // Its cases with such rows, in the order of their names.
  std::vector<std::string> alone = {};
};

class NcclFit {
 public:
  // Takes the rows that count of the cases that are covered. The cases, `constants` and `catalogue`
  // must outlive it.
  NcclFit(std::span<const LoadedCase> cases, const Catalogue& catalogue,
          const ProfileConstants& constants, const FitOptions& options,
          const TaskRunner& run_tasks);
  NcclFit(const NcclFit&) = delete;
  NcclFit& operator=(const NcclFit&) = delete;
  ~NcclFit();

  // The fit to all tables.
  [[nodiscard]] const Fit& all() const { return all_; }
  // Leaves these systems out in turn, as many at once as tasks run.
  [[nodiscard]] std::vector<LeftOut> leave_out(std::span<const std::string> systems);
  // Returns the tables that are fitted to, by name.
  [[nodiscard]] std::vector<std::string> systems() const;
  [[nodiscard]] nccl::Profile profile(const Fit& fit) const;

 private:
  // One task at a time uses it.
  struct Lane {
    std::vector<std::unique_ptr<Cluster>> clusters = {};
    std::unique_ptr<NcclFitModel> model = nullptr;
    std::unique_ptr<RobustFit> fit = nullptr;
  };

  // Returns a lane without a fit, and the tables.
  [[nodiscard]] std::pair<Lane, std::vector<FitTable>> lane(const TaskRunner& run_tasks) const;
  [[nodiscard]] LeftOut left_out(const std::string& system, Fit fit) const;

  std::span<const LoadedCase> cases_;
  const Catalogue& catalogue_;
  const ProfileConstants& constants_;
  TaskRunner run_tasks_;
  std::vector<FitTable> tables_;
  Lane lane_;
  Fit all_;
};

}  // namespace trainyard
