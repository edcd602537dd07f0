// SPDX-License-Identifier: Apache-2.0
// How the processes of a launcher agree without MPI: files in a folder that all of them see, each
// written in whole by a rename. Rank 0 leads: it announces measurement after measurement, and the
// others take part.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace trainyard::calibrate {

class Rendezvous {
 public:
  explicit Rendezvous(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // For rank 0: makes the folder. Throws ConfigError if it holds anything, such as the files of an
  // earlier run, which others would take for this one's.
  void open_as_leader() const;

  // A name is published once.
  void publish(const std::string& name, const std::string& text) const;
  // Waits for it; nothing if `patience` passes.
  [[nodiscard]] std::optional<std::string> await(const std::string& name,
                                                 std::chrono::milliseconds patience) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace trainyard::calibrate
