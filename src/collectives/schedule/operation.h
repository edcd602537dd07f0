// SPDX-License-Identifier: Apache-2.0
// The collective operations, their nccl-tests names, and the factor between algorithm and bus
// bandwidth.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace trainyard {

enum class Operation {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  AllToAllV,  // Every pair of ranks has its own number of bytes.
  Broadcast,
  Reduce,
  SendReceive,
  Scatter,
  Gather,
  Barrier,
};

inline constexpr std::array kOperations{
    Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter, Operation::AllToAll,
    Operation::AllToAllV, Operation::Broadcast, Operation::Reduce,        Operation::SendReceive,
    Operation::Scatter,   Operation::Gather,    Operation::Barrier,
};

class OperationSet {
 public:
  constexpr OperationSet(std::initializer_list<Operation> operations) {
    for (const Operation operation : operations) {
      bits_ |= bit(operation);
    }
  }
  [[nodiscard]] constexpr bool contains(Operation operation) const {
    return (bits_ & bit(operation)) != 0;
  }

 private:
  static constexpr std::uint32_t bit(Operation operation) {
    return 1U << static_cast<unsigned>(operation);
  }
  std::uint32_t bits_ = 0;
};

struct OperationRow {
  std::string_view name;  // As to_string().
  bool splits = false;    // The buffer consists of one part for each rank.
  bool has_root = false;
  // bus_factor() of n ranks is others_factor * (n - 1) / n + whole_factor.
  double others_factor = 0.0;
  double whole_factor = 0.0;
};
[[nodiscard]] const OperationRow& row_of(Operation operation);

// The nccl-tests name: "all_reduce", "alltoall", "sendrecv", ...; "barrier", which nccl-tests does
// not have: nobody goes on before everybody has come.
[[nodiscard]] std::string_view to_string(Operation operation);
[[nodiscard]] std::optional<Operation> parse_operation(std::string_view name);
// All names, "all_reduce, all_gather, ...", for error texts.
[[nodiscard]] std::string_view operation_names();

// Bus bandwidth over algorithm bandwidth (size / time). The size is that of nccl-tests: the bytes
// that a rank holds when its buffer is largest, so for all_gather the gathered whole. The factor is
// the share of it that a rank must send or receive when nothing reduces inside the network
// (nccl-tests, doc/PERFORMANCE.md). 0 for a single rank where nothing needs to move, and for a
// barrier, which moves no data.
[[nodiscard]] double bus_factor(Operation operation, int ranks);

}  // namespace trainyard
