// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cuda/nccl_operations.h"

#include <string>

namespace trainyard::calibrate {
namespace {

// Floats of one rank where the size is divided: multiples of 16 bytes, as nccl-tests rounds.
std::size_t share(std::size_t bytes, int ranks) {
  return bytes / sizeof(float) / static_cast<std::size_t>(ranks) / 4 * 4;
}

bool is_divided(Operation operation) {
  return operation == Operation::AllGather || operation == Operation::ReduceScatter ||
         operation == Operation::AllToAll;
}

void exchange_all(const Nccl& nccl, const LocalRank& rank, std::size_t count) {
  nccl.require(nccl.ncclGroupStart(), "ncclGroupStart");
  for (int peer = 0; peer < rank.ranks; ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * count;
    nccl.require(nccl.ncclSend(rank.send.as<float>() + offset, count, ncclFloat, peer,
                               rank.communicator, rank.stream.get()),
                 "ncclSend");
    nccl.require(nccl.ncclRecv(rank.receive.as<float>() + offset, count, ncclFloat, peer,
                               rank.communicator, rank.stream.get()),
                 "ncclRecv");
  }
  nccl.require(nccl.ncclGroupEnd(), "ncclGroupEnd");
}

void hand_on(const Nccl& nccl, const LocalRank& rank, std::size_t count) {
  nccl.require(nccl.ncclGroupStart(), "ncclGroupStart");
  nccl.require(nccl.ncclSend(rank.send.as<float>(), count, ncclFloat, (rank.rank + 1) % rank.ranks,
                             rank.communicator, rank.stream.get()),
               "ncclSend");
  nccl.require(nccl.ncclRecv(rank.receive.as<float>(), count, ncclFloat,
                             (rank.rank + rank.ranks - 1) % rank.ranks, rank.communicator,
                             rank.stream.get()),
               "ncclRecv");
  nccl.require(nccl.ncclGroupEnd(), "ncclGroupEnd");
}

}  // namespace

LocalRank::Chosen::Chosen(int device) {
  require(cudaSetDevice(device), "cudaSetDevice");
}

LocalRank::LocalRank(int device_index, int own_rank, int all_ranks, std::size_t max_bytes)
    : chosen(device_index),
      device(device_index),
      rank(own_rank),
      ranks(all_ranks),
      send(max_bytes),
      receive(max_bytes) {}

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::AllReduce:
      return "all_reduce";
    case Operation::AllGather:
      return "all_gather";
    case Operation::ReduceScatter:
      return "reduce_scatter";
    case Operation::Broadcast:
      return "broadcast";
    case Operation::Reduce:
      return "reduce";
    case Operation::AllToAll:
      return "alltoall";
    case Operation::SendReceive:
      break;
  }
  return "sendrecv";
}

bool fits(Operation operation, std::size_t bytes, int ranks) {
  return !is_divided(operation) || share(bytes, ranks) > 0;
}

double bus_bytes(Operation operation, std::size_t bytes, int ranks) {
  const auto size = static_cast<double>(bytes);
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (operation == Operation::AllReduce) {
    return 2.0 * others * size;
  }
  return is_divided(operation) ? others * size : size;
}

void start(const Nccl& nccl, Operation operation, const LocalRank& rank, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  const std::size_t part = share(bytes, rank.ranks);
  const float* const send = rank.send.as<float>();
  float* const receive = rank.receive.as<float>();
  ncclComm_t const all = rank.communicator;
  cudaStream_t const stream = rank.stream.get();
  switch (operation) {
    case Operation::AllReduce:
      return nccl.require(nccl.ncclAllReduce(send, receive, count, ncclFloat, ncclSum, all, stream),
                          "ncclAllReduce");
    case Operation::AllGather:
      return nccl.require(nccl.ncclAllGather(send, receive, part, ncclFloat, all, stream),
                          "ncclAllGather");
    case Operation::ReduceScatter:
      return nccl.require(
          nccl.ncclReduceScatter(send, receive, part, ncclFloat, ncclSum, all, stream),
          "ncclReduceScatter");
    case Operation::Broadcast:
      return nccl.require(nccl.ncclBroadcast(send, receive, count, ncclFloat, 0, all, stream),
                          "ncclBroadcast");
    case Operation::Reduce:
      return nccl.require(nccl.ncclReduce(send, receive, count, ncclFloat, ncclSum, 0, all, stream),
                          "ncclReduce");
    case Operation::AllToAll:
      return exchange_all(nccl, rank, part);
    case Operation::SendReceive:
      return hand_on(nccl, rank, count);
  }
}

void prepare(const LocalRank& rank, std::size_t bytes) {
  require(cudaSetDevice(rank.device), "cudaSetDevice");
  const std::size_t count = bytes / sizeof(float);
  fill_floats(rank.send.as<float>(), count, static_cast<float>(rank.rank + 1), rank.stream.get());
  fill_floats(rank.receive.as<float>(), count, -1.0F, rank.stream.get());
}

void check_result(Operation operation, const LocalRank& rank, std::size_t bytes) {
  require(cudaSetDevice(rank.device), "cudaSetDevice");
  const std::size_t count = bytes / sizeof(float);
  const std::size_t part = share(bytes, rank.ranks);
  // Exact in single precision up to some thousand ranks.
  const auto sum = static_cast<float>(rank.ranks) * static_cast<float>(rank.ranks + 1) / 2.0F;
  const auto wrong = [&](std::size_t first, std::size_t length, float expected) {
    return count_wrong_floats(rank.receive.as<float>() + first, length, expected,
                              rank.stream.get());
  };
  std::int64_t all_wrong = 0;
  switch (operation) {
    case Operation::AllReduce:
      all_wrong = wrong(0, count, sum);
      break;
    case Operation::ReduceScatter:
      all_wrong = wrong(0, part, sum);
      break;
    case Operation::Broadcast:
      all_wrong = wrong(0, count, 1.0F);
      break;
    case Operation::Reduce:
      all_wrong = rank.rank == 0 ? wrong(0, count, sum) : 0;
      break;
    case Operation::AllGather:
    case Operation::AllToAll:
      for (int peer = 0; peer < rank.ranks; ++peer) {
        all_wrong +=
            wrong(static_cast<std::size_t>(peer) * part, part, static_cast<float>(peer + 1));
      }
      break;
    case Operation::SendReceive:
      all_wrong =
          wrong(0, count, static_cast<float>((rank.rank + rank.ranks - 1) % rank.ranks + 1));
      break;
  }
  require_right(all_wrong, name_of(operation));
}

}  // namespace trainyard::calibrate
