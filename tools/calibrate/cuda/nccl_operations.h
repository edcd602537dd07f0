// SPDX-License-Identifier: Apache-2.0
// The operations that are measured, sized and rated as nccl-tests does it: data are single
// precision, the operation is a sum, the root is rank 0, and results go to another buffer.
#pragma once

#include <cstddef>

#include "calibrate/cuda/device.h"
#include "calibrate/cuda/nccl_library.h"

namespace trainyard::calibrate {

enum class Operation {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Reduce,
  AllToAll,
  SendReceive,  // To the next rank, from the one before.
};

// A rank of this process. Its device is current when it is made.
struct LocalRank {
  LocalRank(int device_index, int own_rank, int all_ranks, std::size_t max_bytes);
  struct Chosen {
    explicit Chosen(int device);
  };
  Chosen chosen;
  int device;
  int rank;
  int ranks;
  ncclComm_t communicator = nullptr;
  Stream stream;
  DeviceBuffer send;
  DeviceBuffer receive;
};

// As Trainyard and nccl-tests call it: "all_reduce".
[[nodiscard]] const char* name_of(Operation operation);
// Whether each rank has at least 16 bytes where the size is divided by ranks.
[[nodiscard]] bool fits(Operation operation, std::size_t bytes, int ranks);
// The size times the factor that makes it the traffic of the slowest link.
[[nodiscard]] double bus_bytes(Operation operation, std::size_t bytes, int ranks);

void start(const Nccl& nccl, Operation operation, const LocalRank& rank, std::size_t bytes);

// Fills what is sent with the rank's number from 1, and spoils what is received.
void prepare(const LocalRank& rank, std::size_t bytes);
// Throws if the result is not that of the prepared data.
void check_result(Operation operation, const LocalRank& rank, std::size_t bytes);

}  // namespace trainyard::calibrate
