// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/log_context.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

using Words = std::vector<std::string_view>;

std::optional<int> small_number(std::string_view text) {
  const auto value = imported_number(text, std::numeric_limits<int>::max());
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

// The words from this one on; none where it does not occur.
Words words_from(const Words& words, std::string_view first) {
  return {std::find(words.begin(), words.end(), first), words.end()};
}

// Rank 0 [Group 0] Pid 1234 on HOST device 0 [BUS] NAME OF THE GPU
bool is_device(const Words& words) {
  return words.size() > 3 && small_number(words[1]) && (words[2] == "Group" || words[2] == "Pid");
}

// The words of a comment; those of the whole line where the '#' is lost.
Words comment_words(std::string_view line) {
  const std::size_t hash = line.find('#');
  return imported_words(hash == std::string_view::npos ? line : line.substr(hash + 1));
}

}  // namespace

std::optional<Operation> program_operation(std::string_view program) {
  const std::size_t end = program.find("_perf");
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  program = program.substr(0, end);
  const std::size_t begin = program.find_last_not_of("abcdefghijklmnopqrstuvwxyz_");
  return parse_operation(begin == std::string_view::npos ? program : program.substr(begin + 1));
}

std::optional<int> listed_rank(std::string_view line) {
  const Words words = words_from(comment_words(line), "Rank");
  return is_device(words) ? small_number(words[1]) : std::nullopt;
}

void LogContext::read(std::string_view line) {
  for (const std::string_view word : imported_words(line)) {
    if (const std::optional<Operation> operation = program_operation(word)) {
      mentioned_.insert(*operation);
    }
  }
  is_rccl_ = is_rccl_ || line.find("rccl-tests") != std::string_view::npos;
  const Words words = comment_words(line);
  if (const Words test = words_from(words, "Collective"); test.size() > 3 && test[1] == "test") {
    said_.operation = program_operation(test[3]);
  } else if (words.size() > 2 && words[0] == "nccl-tests" && words[1] == "version") {
    version_ = words[2];
  } else if (const Words device = words_from(words, "Rank"); is_device(device)) {
    read_device(device);
  } else if (const Words launch = words_from(words, "nThread");
             launch.size() > 3 && launch[2] == "nGpus") {
    read_launch(launch);
  } else if (words.size() == 6 && words[0] == "ranks" && words[2] == "nodes") {
    said_.ranks = small_number(words[1]);
    said_.nodes = small_number(words[3]);
    said_.gpus_per_node = small_number(words[5]);
  } else if (line.find("# Simulated by Trainyard") != std::string_view::npos) {
    simulated_ = true;
  } else if (line.find("Out of bounds values") != std::string_view::npos) {
    failed_ = line.find("FAILED") != std::string_view::npos;
  } else if (line.find("Avg bus bandwidth") != std::string_view::npos) {
    ended_ = true;
  } else if (words.size() == 1 && words[0] == "in-place") {
    in_place_only_ = true;
  }
}

MeasuredTable LogContext::described() const {
  MeasuredTable table = said_;
  const std::string_view tests = is_rccl_ ? "rccl-tests" : "nccl-tests";
  table.source = simulated_         ? "Trainyard output"
                 : version_.empty() ? fmt::format("{} log", tests)
                                    : fmt::format("{0} log ({0} {1})", tests, version_);
  describe_operation(table);
  describe_ranks(table);
  if (simulated_) {
    table.remarks.emplace_back("the file is output of this program: simulated, not measured");
  }
  if (in_place_only_) {
    table.remarks.emplace_back("the log has in-place times alone");
  }
  if (failed_) {
    table.remarks.emplace_back(
        fmt::format("{} reported wrong results (\"Out of bounds values\")", tests));
  }
  if (!ended_) {
    table.remarks.emplace_back(
        "the log has no \"Avg bus bandwidth\" line: the run may not have finished");
  }
  return table;
}

// nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 ... graph: 0
void LogContext::read_launch(const Words& words) {
  said_.threads_per_process = small_number(words[1]);
  said_.gpus_per_process = small_number(words[3]);
  const auto graph = std::find(words.begin(), words.end(), "graph:");
  said_.cuda_graph = graph != words.end() && graph + 1 != words.end() && *(graph + 1) != "0";
}

void LogContext::read_device(const Words& words) {
  ++device_lines_;
  listed_.insert(small_number(words[1]).value());
  for (std::size_t i = 2; i + 1 < words.size(); ++i) {
    if (words[i] == "Group" && words[i + 1] != "0") {
      several_groups_ = true;
    } else if (words[i] == "on") {
      hosts_.insert(words[i + 1]);
    } else if (words[i].ends_with("]")) {
      const char* const begin = words[i + 1].data();
      const char* const end = words.back().data() + words.back().size();
      said_.system = std::string(begin, end);
      break;
    }
  }
}

void LogContext::describe_operation(MeasuredTable& table) const {
  if (!table.operation && mentioned_.size() == 1) {
    table.operation = *mentioned_.begin();
  }
  if (!table.operation) {
    table.remarks.emplace_back("the log does not say which operation was measured");
  }
}

void LogContext::describe_ranks(MeasuredTable& table) const {
  if (!listed_.empty()) {
    table.ranks = table.nodes = table.gpus_per_node = std::nullopt;
  }
  if (several_groups_) {
    table.remarks.emplace_back("the log lists several groups of ranks: their size is unknown");
  } else if (!listed_.empty()) {
    describe_listed_ranks(table);
  }
  if (!table.ranks) {
    table.remarks.emplace_back("the log does not say how many ranks took part");
  }
}

void LogContext::describe_listed_ranks(MeasuredTable& table) const {
  const int ranks = *listed_.rbegin() + 1;
  table.ranks = ranks;
  if (listed_.size() < static_cast<std::size_t>(ranks)) {
    table.remarks.push_back(fmt::format("the log lists {} of {} ranks", listed_.size(), ranks));
  } else if (device_lines_ > listed_.size()) {
    table.remarks.push_back(fmt::format(
        "the log lists {} devices but only {} ranks: nccl-tests built without MPI runs as "
        "separate programs",
        device_lines_, ranks));
  } else if (!hosts_.empty()) {
    const int hosts = static_cast<int>(hosts_.size());
    table.nodes = hosts;
    if (ranks % hosts == 0) {
      table.gpus_per_node = ranks / hosts;
    }
  }
}

}  // namespace trainyard
