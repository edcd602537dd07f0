// SPDX-License-Identifier: Apache-2.0
// Functions that the subcommands share.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/parts/catalogue.h"

namespace trainyard {

// A file as it is, or the name of one that Trainyard ships: "dgx-h100" is clusters/dgx-h100.yaml of
// the configs folder. `kind` is the folder: "clusters". Throws ConfigError listing the names.
[[nodiscard]] std::filesystem::path find_config(std::string_view kind,
                                                std::string_view name_or_file);

// The configs that Trainyard ships. Throws ConfigError if they are not there.
[[nodiscard]] std::filesystem::path configs_folder();
// How far predictions of NCCL's times may be off (calibration/fit/intervals.h).
[[nodiscard]] std::filesystem::path intervals_file();
[[nodiscard]] std::filesystem::path step_intervals_file();

// The catalogue of the configs folder.
// The catalogue is read once for all calls.
[[nodiscard]] const Catalogue& load_default_catalogue();

// The text of a file that the user names. Throws ConfigError if it cannot be read or has more than
// `max_bytes`, a number of MiB.
[[nodiscard]] std::string read_file(const std::string& name, std::size_t max_bytes);

// To the file, whole or not at all, or to `out`.
void write_output(const std::optional<std::string>& file, const std::string& text,
                  std::ostream& out);

// "1 node", "2 nodes".
[[nodiscard]] std::string counted(int count, std::string_view noun);

// Appends those of `more` that are not there yet.
void append_once(const std::vector<std::string>& more, std::vector<std::string>& notes);

// Runs task(0) .. task(count - 1) on up to `threads` threads (0: as many as the machine has). If
// one throws, the exception of the lowest index is thrown here after all have ended. Shows progress
// on a terminal once it takes longer than two seconds.
void run_tasks(std::size_t count, unsigned threads, std::string_view what,
               const std::function<void(std::size_t)>& task);

// The same as a value, for functions that run tasks by what they are given.
[[nodiscard]] std::function<void(std::size_t, const std::function<void(std::size_t)>&)> task_runner(
    unsigned threads, std::string_view what);

}  // namespace trainyard
