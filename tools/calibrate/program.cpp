// SPDX-License-Identifier: Apache-2.0
#include "calibrate/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "calibrate/catalogue.h"
#include "calibrate/child.h"
#include "calibrate/result_set.h"
#include "calibrate/session.h"
#include "calibrate/text.h"
#include "sim/config_error.h"

namespace trainyard::calibrate {
namespace {

constexpr std::string_view kVersion = "trainyard-calibrate 0.1.0";

// One JSON document a line on standard output, at once.
class LineSink final : public SampleSink {
 public:
  void add(const Sample& sample) override { std::cout << sample_line(sample) << std::flush; }
  void add(const Record& record) override { std::cout << record_line(record) << std::flush; }
};

int run_as_child(const Options& options, Backend& backend) {
  end_with_parent();
  try {
    if (options.child == "machine") {
      std::cout << machine_line(backend.machine(options));
    } else {
      LineSink sink;
      backend.measure(options.child, options, sink);
    }
  } catch (const NotMeasured& reason) {
    std::cout << not_measured_line(reason.reason());
  } catch (const std::exception& error) {
    std::cerr << one_line(error.what()) << '\n';
    return 1;
  }
  std::cout << end_line() << std::flush;
  return std::cout ? 0 : 1;
}

std::string needs(const Measurement& measurement) {
  std::vector<std::string> all = {
      fmt::format("{} GPU{}", measurement.min_gpus, measurement.min_gpus == 1 ? "" : "s")};
  if (measurement.with_cublaslt) {
    all.emplace_back("cuBLASLt");
  }
  if (measurement.nccl) {
    all.emplace_back(measurement.nccl->mode == NcclMode::MultiRankGpu ? "NCCL 2.30.3" : "NCCL");
    if (measurement.nccl->mode == NcclMode::Network) {
      all.emplace_back("several ranks");
    }
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

int list() {
  for (const Measurement& each : catalogue()) {
    std::cout << fmt::format("{:<34} {}; needs {}\n", each.id, each.what, needs(each));
  }
  return 0;
}

void print_machine(const Machine& machine) {
  std::cout << fmt::format("{}: {}, driver {}, CUDA {}, NCCL {}\n", machine.hostname, machine.cpu,
                           machine.driver, machine.cuda_runtime,
                           machine.nccl.empty() ? "not found" : machine.nccl);
  for (const Gpu& gpu : machine.gpus) {
    std::cout << fmt::format("  {}, {}\n", gpu.name, gpu.uuid);
  }
}

int dry_run(const Options& options) {
  const std::vector<Measurement> plan = planned(options);
  const Machine machine = detect_machine(options);
  print_machine(machine);
  double seconds = 0.0;
  for (const Measurement& each : plan) {
    const std::string reason = why_not(each, machine);
    seconds += reason.empty() ? each.seconds : 0;
    std::cout << fmt::format("{:<34} {}\n", each.id,
                             reason.empty() ? fmt::format("{} s, killed after {} s", each.seconds,
                                                          timeout_of(each, options))
                                            : "not measured: " + reason);
  }
  std::cout << fmt::format("about {} in all\n", duration_text(seconds));
  return 0;
}

int check(const Options& options) {
  const ResultSet set = read_result_set(options.check);
  const auto count = [&set](Status status) {
    return std::count_if(set.results.begin(), set.results.end(),
                         [status](const Result& result) { return result.status == status; });
  };
  std::cout << fmt::format("{}: {}, {} measured, {} not measured, {} failed, {} timed out\n",
                           one_line(options.check), set.complete ? "complete" : "not complete",
                           count(Status::Measured), count(Status::NotMeasured),
                           count(Status::Failed), count(Status::TimedOut));
  return set.complete && count(Status::Failed) + count(Status::TimedOut) == 0 ? 0 : 1;
}

int run(const Options& options, Backend& backend) {
  switch (options.action) {
    case Action::Help:
      std::cout << help_text();
      return 0;
    case Action::Version:
      std::cout << kVersion << '\n';
      return 0;
    case Action::List:
      return list();
    case Action::DryRun:
      return dry_run(options);
    case Action::Check:
      return check(options);
    case Action::Child:
      return run_as_child(options, backend);
    case Action::Measure:
      (void)planned(options);  // A pattern that matches nothing needs no device to be refused.
      return run_session(options, backend.name(), detect_machine(options), std::cerr) ? 0 : 1;
  }
  return 3;
}

}  // namespace

int run_program(int argc, char** argv, Backend& backend) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return run(parse_arguments(arguments), backend);
  } catch (const ConfigError& error) {
    std::cerr << "trainyard-calibrate: " << one_line(error.what(), 500) << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "trainyard-calibrate: internal error: " << one_line(error.what(), 500) << '\n';
    return 3;
  }
}

}  // namespace trainyard::calibrate
