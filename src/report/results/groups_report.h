// SPDX-License-Identifier: Apache-2.0
// The report of `trainyard collective --groups`: communicators that share the links of one network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/operation.h"
#include "report/formats/document.h"

namespace trainyard {

struct GroupRow {
  std::string group = {};
  std::string ranks = {};  // In short form.
  int count = 1;
  Operation operation = Operation::AllReduce;
  Bytes size = {};
  std::string algorithm = {};
  std::string protocol = "-";  // Protocol of NCCL.
  int channels = 0;
  SimTime start = {};
  SimTime end = {};
  SimTime alone = {};  // The time that it takes on an idle network.

  [[nodiscard]] SimTime time() const { return end - start; }
};

// A run of all groups at one size, or at sizes of their own.
struct GroupsRun {
  std::optional<Bytes> size = {};
  SimTime makespan = {};
  // Known of the plain runtime, where all messages are in one simulation.
  std::optional<std::uint64_t> transfers = {};
  std::optional<std::uint64_t> fingerprint = {};
};

struct GroupsReport {
  std::string cluster;
  std::string runtime;
  std::string fidelity;
  std::vector<GroupRow> rows;
  std::vector<GroupsRun> runs;
  std::vector<std::string> estimates;
  std::vector<std::string> notes;
  RunInputs inputs;
};

// A row for each communicator and size, and one for each run.
[[nodiscard]] Document document_of(const GroupsReport& report);

}  // namespace trainyard
