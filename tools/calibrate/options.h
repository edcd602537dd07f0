// SPDX-License-Identifier: Apache-2.0
// The command line of trainyard-calibrate.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::calibrate {

enum class Action { Measure, Help, Version, List, DryRun, Check, Child };

struct Options {
  Action action = Action::Measure;
  std::string output = "measurements.json";
  bool resume = false;
  std::vector<std::string> only;  // Patterns of identifiers; empty for all.
  int repetitions = 30;
  int warmup = 5;
  // For each measurement, instead of what the plan says.
  std::optional<int> timeout_seconds = {};
  std::string nccl;      // Library; empty for the one that the loader finds.
  std::string cublaslt;  // The same.
  std::string cudnn;     // The same.
  // Several processes, one for each GPU: from options, or from what srun and mpirun set.
  int rank = 0;
  int ranks = 1;
  std::string rendezvous;  // A folder that all of them see.
  std::string check;       // The file of --check.
  std::string child;       // The measurement that this process takes, or "machine".
  std::string token;       // Names this measurement in the rendezvous folder.
};

// Reads arguments and the environment. Throws ConfigError.
[[nodiscard]] Options parse_arguments(std::span<const std::string> arguments);

// The arguments of the child that takes measurement `id` under these options.
[[nodiscard]] std::vector<std::string> child_arguments(const Options& options,
                                                       const std::string& id,
                                                       const std::string& token);

// "gpu.memory.*": * represents any text.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view id);
// Whether any pattern does; all do where there is none.
[[nodiscard]] bool is_selected(const Options& options, std::string_view id);

[[nodiscard]] std::string help_text();

}  // namespace trainyard::calibrate
