// SPDX-License-Identifier: Apache-2.0
// Runs the built program as its users do: in a process and a folder of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {

struct ProgramResult {
  int status = -1;  // 128 + N if signal N ended it.
  std::string output;
  std::string error;
};

// An empty folder that is removed with everything in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Writes a file in it and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

// trainyard ARGUMENTS, in `folder`.
[[nodiscard]] ProgramResult run_program(const std::vector<std::string>& arguments,
                                        const std::filesystem::path& folder);
// A line for the shell in which `trainyard` is the built program.
[[nodiscard]] ProgramResult run_shell(const std::string& command,
                                      const std::filesystem::path& folder);

[[nodiscard]] std::string read_text_file(const std::filesystem::path& file);

}  // namespace trainyard
