// SPDX-License-Identifier: Apache-2.0
// Processes that work through one sweep together: one, or those that mpirun started.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cli/sweep/sweep_journal.h"

namespace trainyard {

class SweepTeam {
 public:
  SweepTeam() = default;
  SweepTeam(const SweepTeam&) = delete;
  SweepTeam& operator=(const SweepTeam&) = delete;
  virtual ~SweepTeam() = default;

  [[nodiscard]] virtual std::size_t rank() const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  // Waits for all. The complaint of the lowest rank that has one.
  [[nodiscard]] virtual std::optional<std::string> agree(
      const std::optional<std::string>& complaint) = 0;
  // Waits for all. On rank 0 the results of all; elsewhere nothing.
  [[nodiscard]] virtual SweepResults gather(SweepResults results) = 0;
};

class LoneTeam final : public SweepTeam {
 public:
  [[nodiscard]] std::size_t rank() const override { return 0; }
  [[nodiscard]] std::size_t size() const override { return 1; }
  [[nodiscard]] std::optional<std::string> agree(
      const std::optional<std::string>& complaint) override {
    return complaint;
  }
  [[nodiscard]] SweepResults gather(SweepResults results) override { return results; }
};

}  // namespace trainyard
