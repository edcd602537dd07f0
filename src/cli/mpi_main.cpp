// SPDX-License-Identifier: Apache-2.0
// trainyard-mpi: what the processes of `mpirun trainyard` run: points of a sweep
// (docs/commands/sweep.md), parts of one packet network (docs/models/packet.md), plans of a search.
// A program of its own, so that trainyard itself neither needs MPI nor loads it.
#include <algorithm>
#include <boost/mpi/collectives.hpp>
#include <boost/mpi/communicator.hpp>
#include <boost/mpi/environment.hpp>
#include <boost/mpi/nonblocking.hpp>
#include <boost/mpi/request.hpp>
#include <boost/mpi/status.hpp>
#include <boost/serialization/string.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/commands.h"
#include "cli/common/program_end.h"
#include "cli/common/team.h"
#include "cli/sweep/sweep.h"
#include "sim/check.h"
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

// One message to each other process and one from each. The last byte says whether it is what was
// meant, or a complaint of a process that gives up, which ends all.
class MpiPacketTeam final : public PacketTeam {
 public:
  [[nodiscard]] std::uint32_t rank() const override {
    return static_cast<std::uint32_t>(world_.rank());
  }
  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(world_.size());
  }

  void exchange(std::vector<Parcel>& parcels) override {
    for (Parcel& parcel : parcels) {
      parcel.bytes().push_back(kMeant);
    }
    if (const auto complaint = swap(parcels)) {
      throw ConfigError(*complaint);
    }
  }

  // The last exchange of this process. The complaint of the lowest rank that has one.
  [[nodiscard]] std::optional<std::string> agree(const std::optional<std::string>& complaint) {
    if (has_agreed_on_complaint_) {
      return complaint;
    }
    std::vector<Parcel> parcels(size());
    for (Parcel& parcel : parcels) {
      if (complaint) {
        parcel.put_text(*complaint);
      }
      parcel.bytes().push_back(complaint ? kComplaint : kMeant);
    }
    return swap(parcels);
  }

 private:
  static constexpr std::byte kMeant{0};
  static constexpr std::byte kComplaint{1};
  static constexpr int kTag = 0;

  [[nodiscard]] static char* text_of(std::vector<std::byte>& bytes) {
    return reinterpret_cast<char*>(bytes.data());  // NOLINT(*-reinterpret-cast)
  }

  // Messages of one process come in their order. The complaint of the lowest rank.
  [[nodiscard]] std::optional<std::string> swap(std::vector<Parcel>& parcels) {
    std::vector<boost::mpi::request> sent;
    std::vector<std::vector<std::byte>> came(size());
    for (int other = 0; other < world_.size(); ++other) {
      if (other != world_.rank()) {
        std::vector<std::byte>& bytes = parcels[static_cast<std::size_t>(other)].bytes();
        CHECK(bytes.size() <= std::numeric_limits<int>::max(), "too much for one message of MPI");
        sent.push_back(world_.isend(other, kTag, text_of(bytes), static_cast<int>(bytes.size())));
      }
    }
    for (int other = 0; other < world_.size(); ++other) {
      if (other != world_.rank()) {
        const int count = *world_.probe(other, kTag).count<char>();
        std::vector<std::byte>& bytes = came[static_cast<std::size_t>(other)];
        bytes.resize(static_cast<std::size_t>(count));
        world_.recv(other, kTag, text_of(bytes), count);
      }
    }
    boost::mpi::wait_all(sent.begin(), sent.end());
    came[rank()].swap(parcels[rank()].bytes());
    std::optional<std::string> complaint;
    for (std::uint32_t other = 0; other < size(); ++other) {
      const std::byte kind = came[other].back();
      came[other].pop_back();
      parcels[other].clear();
      parcels[other].bytes() = std::move(came[other]);
      if (kind == kComplaint && !complaint) {
        complaint = parcels[other].get_text();
        has_agreed_on_complaint_ = true;
      }
    }
    return complaint;
  }

  boost::mpi::communicator world_;
  bool has_agreed_on_complaint_ = false;
};

// All processes run the command; the first one prints.
int run_together(const Command& command, const std::vector<std::string>& arguments) {
  MpiPacketTeam team;
  int status = 0;
  std::optional<std::string> complaint;
  try {
    status = run_command_in(team, command, arguments, std::cout);
    if (!std::cout.flush()) {
      throw ConfigError("standard output: cannot be written");
    }
  } catch (const ConfigError& error) {
    complaint = error.what();
  }
  complaint = team.agree(complaint);
  if (complaint && team.rank() == 0) {
    print_error(*complaint);
  }
  constexpr int kInputIsWrong = 2;
  return complaint ? kInputIsWrong : status;
}

int run_team(const std::vector<std::string>& arguments) {
  MpiTeam team;
  try {
    if (!arguments.empty() && is_for_team(arguments.front())) {
      const std::vector<Command> commands = all_commands();
      return run_together(*std::ranges::find(commands, arguments.front(), &Command::name),
                          {arguments.begin() + 1, arguments.end()});
    }
    if (arguments.empty() || arguments.front() != "sweep") {
      const auto complaint = team.agree(
          "expected a command for several processes (collective, jobs, search, step, sweep, "
          "traffic), found " +
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
