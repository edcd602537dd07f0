// SPDX-License-Identifier: Apache-2.0
// The request that the command line of `trainyard collective` makes. Everything that can be judged
// without the cluster is checked here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/nccl_options.h"
#include "cli/common/options.h"
#include "cli/common/packet_options.h"
#include "cli/common/runtime.h"
#include "collectives/algorithms/algorithms.h"
#include "collectives/hccl/hccl_choice.h"
#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_rules.h"

namespace trainyard {

// Rules and costs of Open MPI, MPICH or Gloo.
struct MpiRequest {
  MpiRules rules;
  MpiProfile profile;
  std::string profile_name;                  // The file that it is from.
  std::vector<std::string> algorithms = {};  // The library's names; none: its rules choose.
  bool stages = false;                       // Buffers are those of GPUs.
};

struct CollectiveRequest {
  Operation operation = Operation::AllReduce;
  InputNames inputs;
  std::optional<int> ranks;           // The first ones of the cluster; otherwise all, or
  std::vector<int> rank_list;         // these, in rising order.
  std::optional<std::string> groups;  // Communicators side by side (groups_file.h).
  std::optional<Bytes> min_size;
  std::optional<Bytes> greatest_size;
  std::optional<int> factor;
  Runtime runtime = {};
  std::optional<NcclRequest> nccl;      // With the runtime nccl,
  std::optional<HcclEnvironment> hccl;  // or hccl,
  std::optional<MpiRequest> mpi;        // or mpi or gloo; plain has the following.
  std::vector<Algorithm> algorithms;
  std::optional<std::string> algorithm_file;  // MSCCL's; without --algo it alone is run.
  bool auto_algorithms = false;  // All that can do the operation: those the cluster cannot run go.
  std::optional<int> channels;
  std::optional<Bytes> piece;
  int root = 0;
  PacketRequest packet;
  std::optional<std::string> matrix;  // The matrix file of alltoallv, which needs one.
  std::optional<std::string> against;
  bool against_other_ranks = false;
  std::optional<std::string> trace;
  std::optional<std::string> plot;
  std::optional<std::uint64_t> seed;
  unsigned threads = 0;  // 0: as many as the machine has.
  bool fingerprint = false;
  bool compare = false;  // Lower bounds and crossover sizes.
  ResultTarget result = {};
};

// The operation, and all else.
[[nodiscard]] Options collective_arguments();
[[nodiscard]] Options collective_options();

// `values` are those of collective_options and "operation". Throws ConfigError.
[[nodiscard]] CollectiveRequest read_collective_request(const OptionReader& reader);

}  // namespace trainyard
