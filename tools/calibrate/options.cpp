// SPDX-License-Identifier: Apache-2.0
#include "calibrate/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "calibrate/text.h"
#include "sim/config_error.h"

namespace trainyard::calibrate {
namespace {

// The arguments one after the other, with "--name=value" as two.
class Arguments {
 public:
  explicit Arguments(std::span<const std::string> all) : all_(all) {}

  [[nodiscard]] bool empty() const { return next_ == all_.size(); }
  std::string take_name() {
    const std::string& whole = all_[next_++];
    const std::size_t equals = whole.starts_with("--") ? whole.find('=') : std::string::npos;
    attached_.reset();
    if (equals == std::string::npos) {
      return whole;
    }
    attached_ = whole.substr(equals + 1);
    return whole.substr(0, equals);
  }
  void take_nothing(const std::string& name) const {
    if (attached_) {
      throw ConfigError(
          fmt::format("{}: expected no value, found {}", name, in_quotes(*attached_)));
    }
  }
  std::string take_value(const std::string& name) {
    const bool has_next = next_ < all_.size() && !all_[next_].starts_with("--");
    std::string value = attached_ ? *attached_ : has_next ? all_[next_++] : "";
    if (value.empty()) {
      throw ConfigError(fmt::format("{}: expected a value, found none", name));
    }
    return value;
  }

 private:
  std::span<const std::string> all_;
  std::size_t next_ = 0;
  std::optional<std::string> attached_;
};

int to_integer(const std::string& name, const std::string& value, int min, int max) {
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || rest != end || number < min || number > max) {
    throw ConfigError(fmt::format("{}: expected a whole number from {} to {}, found {}", name, min,
                                  max, in_quotes(value)));
  }
  return number;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::size_t first = 0;
  while (true) {
    const std::size_t comma = std::min(list.find(',', first), list.size());
    parts.push_back(list.substr(first, comma - first));
    if (comma == list.size()) {
      return parts;
    }
    first = comma + 1;
  }
}

constexpr int kMaxRanks = 1 << 20;

// False where there is no such option.
bool take_flag(const std::string& name, Options& options) {
  struct Flag {
    std::string_view name;
    Action action;
  };
  static constexpr std::array kFlags{
      Flag{"--help", Action::Help}, Flag{"-h", Action::Help}, Flag{"--version", Action::Version},
      Flag{"--list", Action::List}, Flag{"--dry-run", Action::DryRun}};
  for (const Flag& flag : kFlags) {
    if (name == flag.name) {
      options.action = flag.action;
      return true;
    }
  }
  if (name == "--resume") {
    options.resume = true;
    return true;
  }
  return false;
}

bool take_text(const std::string& name, Arguments& arguments, Options& options) {
  struct Text {
    std::string_view name;
    std::string Options::*member;
  };
  static constexpr std::array kTexts{
      Text{"--output", &Options::output},
      Text{"-o", &Options::output},
      Text{"--nccl", &Options::nccl},
      Text{"--cublaslt", &Options::cublaslt},
      Text{"--check", &Options::check},
      Text{"--cudnn", &Options::cudnn},
      Text{"--rendezvous", &Options::rendezvous},
      Text{"--child", &Options::child},
      Text{"--token", &Options::token},
  };
  for (const Text& text : kTexts) {
    if (name == text.name) {
      options.*text.member = arguments.take_value(name);
      return true;
    }
  }
  return false;
}

bool take_number(const std::string& name, Arguments& arguments, Options& options) {
  if (name == "--repetitions") {
    // Fewer say nothing about percentiles.
    options.repetitions = to_integer(name, arguments.take_value(name), 30, 100'000);
  } else if (name == "--warmup") {
    options.warmup = to_integer(name, arguments.take_value(name), 1, 100'000);
  } else if (name == "--timeout") {
    options.timeout_seconds = to_integer(name, arguments.take_value(name), 1, 86'400);
  } else if (name == "--rank") {
    options.rank = to_integer(name, arguments.take_value(name), 0, kMaxRanks - 1);
  } else if (name == "--ranks") {
    options.ranks = to_integer(name, arguments.take_value(name), 1, kMaxRanks);
  } else {
    return false;
  }
  return true;
}

// srun and mpirun (Open MPI, then PMI of MPICH and its relatives) tell each process who it is.
void read_launcher(Options& options) {
  struct Launcher {
    const char* rank;
    const char* ranks;
  };
  static constexpr std::array kLaunchers{Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                         Launcher{"PMI_RANK", "PMI_SIZE"},
                                         Launcher{"SLURM_PROCID", "SLURM_NTASKS"}};
  for (const Launcher& launcher : kLaunchers) {
    const char* rank = std::getenv(launcher.rank);
    const char* ranks = std::getenv(launcher.ranks);
    if (rank != nullptr && ranks != nullptr) {
      options.ranks = to_integer(launcher.ranks, ranks, 1, kMaxRanks);
      options.rank = to_integer(launcher.rank, rank, 0, kMaxRanks - 1);
      return;
    }
  }
}

void check_together(const Options& options) {
  if (options.rank >= options.ranks) {
    throw ConfigError(fmt::format("--rank: expected less than --ranks {}, found {}", options.ranks,
                                  options.rank));
  }
  if (options.ranks > 1 && options.rendezvous.empty() && options.action == Action::Measure) {
    throw ConfigError(fmt::format(
        "--rendezvous: expected a folder that all {} ranks see, found none", options.ranks));
  }
}

}  // namespace

Options parse_arguments(std::span<const std::string> arguments) {
  Options options;
  Arguments rest(arguments);
  bool launched_by_hand = false;
  while (!rest.empty()) {
    const std::string name = rest.take_name();
    if (take_flag(name, options)) {
      rest.take_nothing(name);
    } else if (name == "--only") {
      for (std::string& pattern : split(rest.take_value(name))) {
        options.only.push_back(std::move(pattern));
      }
    } else if (take_number(name, rest, options)) {
      launched_by_hand = launched_by_hand || name == "--rank" || name == "--ranks";
    } else if (!take_text(name, rest, options)) {
      throw ConfigError(fmt::format("expected an option, found {}; see trainyard-calibrate --help",
                                    in_quotes(name)));
    }
  }
  // Without a folder to meet in, a process under srun measures its own node.
  if (!launched_by_hand && !options.rendezvous.empty()) {
    read_launcher(options);
  }
  if (!options.child.empty()) {
    options.action = Action::Child;
  } else if (!options.check.empty()) {
    options.action = Action::Check;
  }
  check_together(options);
  return options;
}

std::vector<std::string> child_arguments(const Options& options, const std::string& id,
                                         const std::string& token) {
  std::vector<std::string> arguments = {"--child",       id,
                                        "--repetitions", std::to_string(options.repetitions),
                                        "--warmup",      std::to_string(options.warmup),
                                        "--rank",        std::to_string(options.rank),
                                        "--ranks",       std::to_string(options.ranks)};
  const auto add = [&arguments](const std::string& name, const std::string& value) {
    if (!value.empty()) {
      arguments.push_back(name);
      arguments.push_back(value);
    }
  };
  add("--nccl", options.nccl);
  add("--cublaslt", options.cublaslt);
  add("--cudnn", options.cudnn);
  add("--rendezvous", options.rendezvous);
  add("--token", token);
  return arguments;
}

bool matches(std::string_view pattern, std::string_view id) {
  if (pattern.empty()) {
    return id.empty();
  }
  if (pattern.front() == '*') {
    for (std::size_t skipped = 0; skipped <= id.size(); ++skipped) {
      if (matches(pattern.substr(1), id.substr(skipped))) {
        return true;
      }
    }
    return false;
  }
  return !id.empty() && pattern.front() == id.front() && matches(pattern.substr(1), id.substr(1));
}

bool is_selected(const Options& options, std::string_view id) {
  return options.only.empty() ||
         std::any_of(options.only.begin(), options.only.end(),
                     [id](const std::string& pattern) { return matches(pattern, id); });
}

std::string help_text() {
  return R"(trainyard-calibrate measures this machine's GPUs, links and NCCL, without root,
and writes one file that trainyard fits its constants to.

  trainyard-calibrate -o FILE            measure all that this machine has
  trainyard-calibrate --list             what can be measured
  trainyard-calibrate --dry-run          what would be measured here, and how long it takes

  -o, --output FILE     measurement set, written anew after each measurement
                        (measurements.json)
  --resume              go on with FILE: all that it has not measured
  --only PATTERN,...    identifiers of --list, * for any text; may be given again
  --repetitions N       of each measured time, at least 30 (30)
  --warmup N            repetitions before the first that counts (5)
  --timeout SECONDS     for each measurement, instead of three times what the plan
                        expects and 30 s
  --nccl FILE           NCCL library (libnccl.so.2 where the loader finds it)
  --cublaslt FILE       cuBLASLt library (the same)
  --cudnn FILE          cuDNN library (the same)
  --check FILE          whether a measurement set is complete and well formed
  --version, --help

Several nodes: one process for each GPU, under srun, mpirun, or by hand with
  --rank R --ranks N    taken from the launcher otherwise
  --rendezvous FOLDER   new or empty, seen by all; rank 0 writes FILE

Exit: 0 all measured, 1 something failed or timed out, 2 wrong use.
)";
}

}  // namespace trainyard::calibrate
