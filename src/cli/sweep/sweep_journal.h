// SPDX-License-Identifier: Apache-2.0
// A journal keeps the finished points of a sweep in files beside its output, so that a sweep that
// was cut off can continue: OUTPUT.partial, and OUTPUT.partial.N of process N where there are
// several. A line for each point, in JSON with its CRC-32, flushed as it comes; the last one may be
// cut off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

namespace trainyard {

// The CSV that the command printed at one point, or the reason why it did not.
struct SweepResult {
  std::string csv;
  std::string error;

  [[nodiscard]] bool operator==(const SweepResult&) const = default;
};

using SweepResults = std::map<std::size_t, SweepResult>;  // The key is the point.

// As text, for a message to another process.
[[nodiscard]] std::string to_text(const SweepResults& results);
[[nodiscard]] SweepResults results_from(const std::string& text);

// Reads the results of all journals beside `output`. `sweep` represents what is swept: journals of
// anything else are refused, and without `resumes` all are. Throws ConfigError.
[[nodiscard]] SweepResults read_journals(const std::string& output, std::uint64_t sweep,
                                         bool resumes);
// When the results are where they belong.
void remove_journals(const std::string& output);

// The journal of one process.
class SweepJournal {
 public:
  // Keeps what is in it, but for a line that was cut off. Throws ConfigError.
  SweepJournal(const std::string& output, std::size_t process, std::uint64_t sweep);

  // May be called by any thread. Throws ConfigError if it cannot be written.
  void add(std::size_t point, const SweepResult& result);

 private:
  std::filesystem::path file_;
  std::ofstream out_;
  std::mutex mutex_;
};

}  // namespace trainyard
