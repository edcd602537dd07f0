// SPDX-License-Identifier: Apache-2.0
// trainyard-mpi: what the processes of `mpirun trainyard sweep` run (docs/commands/sweep.md). A
// program of its own, so that trainyard itself neither needs MPI nor loads it.
#include <boost/mpi/collectives.hpp>
#include <boost/mpi/communicator.hpp>
#include <boost/mpi/environment.hpp>
#include <boost/serialization/string.hpp>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/program_end.h"
#include "cli/sweep/sweep.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

class MpiTeam final : public SweepTeam {
 public:
  [[nodiscard]] std::size_t rank() const override {
    return static_cast<std::size_t>(world_.rank());
  }
  [[nodiscard]] std::size_t size() const override {
    return static_cast<std::size_t>(world_.size());
  }

  [[nodiscard]] std::optional<std::string> agree(
      const std::optional<std::string>& complaint) override {
    std::vector<std::string> all;
    boost::mpi::all_gather(world_, complaint.value_or(""), all);
    for (const std::string& each : all) {
      if (!each.empty()) {
        has_agreed_on_complaint_ = true;
        return each;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] SweepResults gather(SweepResults results) override {
    std::vector<std::string> all;
    boost::mpi::gather(world_, to_text(results), all, 0);
    SweepResults whole;
    for (const std::string& each : all) {
      whole.merge(results_from(each));
    }
    return whole;
  }

  // All processes know of the error and end.
  [[nodiscard]] bool has_agreed_on_complaint() const { return has_agreed_on_complaint_; }

 private:
  boost::mpi::communicator world_;
  bool has_agreed_on_complaint_ = false;
};

int run_team(const std::vector<std::string>& arguments) {
  MpiTeam team;
  try {
    if (arguments.empty() || arguments.front() != "sweep") {
      const auto complaint =
          team.agree("expected a command for several processes (sweep), found " +
                     (arguments.empty() ? std::string("none") : in_quotes(arguments.front())));
      throw ConfigError(*complaint);
    }
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    const int status = run_sweep_in(team, rest, std::cout);
    if (!std::cout.flush()) {
      throw ConfigError("standard output: cannot be written");
    }
    return status;
  } catch (const std::exception& error) {
    constexpr int kInputIsWrong = 2;
    if (team.has_agreed_on_complaint()) {
      if (team.rank() == 0) {
        print_error(error.what());
      }
      return kInputIsWrong;
    }
    print_error(error.what());
    boost::mpi::environment::abort(kInputIsWrong);
    return kInputIsWrong;
  }
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  trainyard::keep_standard_streams();
  trainyard::explain_crashes();
  const boost::mpi::environment environment(argc, argv);
  return trainyard::run_team(std::vector<std::string>(argv + 1, argv + argc));
}
