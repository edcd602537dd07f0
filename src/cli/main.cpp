// SPDX-License-Identifier: Apache-2.0
// The program's table of contents, and the only place that catches.
#include <spdlog/fmt/fmt.h>

#include <array>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/collective/collective.h"
#include "cli/commands/calibrate.h"
#include "cli/commands/check.h"
#include "cli/commands/cost.h"
#include "cli/commands/doctor.h"
#include "cli/commands/import.h"
#include "cli/commands/jobs.h"
#include "cli/commands/plan.h"
#include "cli/commands/topology.h"
#include "cli/commands/traffic.h"
#include "cli/commands/transfer.h"
#include "cli/compare/compare.h"
#include "cli/explain/explain.h"
#include "cli/mpi_start.h"
#include "cli/search/search.h"
#include "cli/step/step.h"
#include "cli/sweep/sweep.h"
#include "cli/validate/validate.h"
#include "sim/config.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::string_view kVersion = "trainyard 0.1.0";

constexpr std::string_view kIntroduction =
    R"(Trainyard predicts what clusters of GPUs do, from descriptions of their parts in YAML.

  trainyard collective OP   time and bandwidth over message sizes, in nccl-tests' columns
  trainyard step            time of a training step of a model and a plan, and what it is spent on
  trainyard search          the fastest plans for a model on a cluster, and why
  trainyard explain step|collective  which resources the time follows, and what would help
  trainyard compare A B     what differs between two results, two files, a step and its trace
  trainyard cost            what a cluster draws and costs, and a token trained on it
  trainyard jobs            what training jobs on one fabric take from each other
  trainyard plan [OP]       what NCCL would choose there, and why: rings, trees, algorithm by size
  trainyard doctor LOG      whether a log of nccl-tests is normal for its machine, and why not
  trainyard sweep FILE      a command over lists and ranges of its options, one row a point
  trainyard traffic FILE    flow completion times of permutations, incast, Poisson traffic, traces
  trainyard transfer        bandwidth and latency between devices, as copy and RDMA tests print them
  trainyard topology        what a cluster file describes: devices, links, routes, a drawing
  trainyard import FILE     a cluster file from NCCL's topology file or nvidia-smi topo -m
  trainyard calibrate FILE...  a profile of NCCL fitted to measurements of one machine
  trainyard validate        how far predictions are from measured tables
  trainyard check FILE...   what is wrong, or likely to be, with files of clusters and parts

Every command has --help. Try first:
  trainyard collective all_reduce --cluster dgx-h100 --nodes 4 --algo ring,tree
  trainyard topology --cluster dgx-h100 --nodes 4
)";

struct Command {
  std::string_view name;
  int (*run)(std::span<const std::string> arguments, std::ostream& out);
};

constexpr std::array kCommands{
    Command{"calibrate", run_calibrate},
    Command{"check", run_check},
    Command{"collective", run_collective_command},
    Command{"compare", run_compare},
    Command{"cost", run_cost},
    Command{"doctor", run_doctor},
    Command{"explain", run_explain},
    Command{"import", run_import},
    Command{"jobs", run_jobs},
    Command{"plan", run_plan},
    Command{"search", run_search},
    Command{"step", run_step},
    Command{"sweep", run_sweep},
    Command{"topology", run_topology},
    Command{"traffic", run_traffic_command},
    Command{"transfer", run_transfer},
    Command{"validate", run_validate},
};

int run(std::span<const std::string> arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "help") {
    std::cout << kIntroduction;
    return 0;
  }
  if (arguments[0] == "--version") {
    std::cout << kVersion << '\n';
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (arguments[0] == command.name) {
      return command.run(arguments.subspan(1), std::cout);
    }
    names.emplace_back(command.name);
  }
  const auto nearest = nearest_word(arguments[0], names);
  throw ConfigError(fmt::format(
      "expected a command ({}), found {}{}", fmt::join(names, ", "), in_quotes(arguments[0]),
      nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : "; see trainyard --help"));
}

// A result that nobody received, as on a full disk, must not look like success.
void require_written(std::ostream& out) {
  if (!out.flush()) {
    throw ConfigError("standard output: cannot be written");
  }
}

// One line, whatever a file name or argument in it holds.
void print_error(std::string_view kind, const std::exception& error) {
  fmt::print(stderr, "trainyard: {}{}\n", kind, escaped(error.what()));
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  try {
    if (trainyard::is_one_of_several()) {
      trainyard::become_team_member(argv);
    }
    const int status = trainyard::run(std::vector<std::string>(argv + 1, argv + argc));
    trainyard::require_written(std::cout);
    return status;
  } catch (const trainyard::ConfigError& error) {
    trainyard::print_error("", error);
    return 2;
  } catch (const std::exception& error) {
    trainyard::print_error("internal error: ", error);
    return 3;
  }
}
