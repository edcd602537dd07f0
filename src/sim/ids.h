// SPDX-License-Identifier: Apache-2.0
// Identities: dense from zero, so that every table is a vector and every iteration order defined.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace trainyard {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t value) : value_(value) {}
  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::uint32_t value_ = 0;
};

using NodeId = Id<struct NodeTag>;              // A device of a Topology.
using LinkId = Id<struct LinkTag>;              // A directed link of a Topology.
using ServerId = Id<struct ServerTag>;          // A server of a Topology.
using RankId = Id<struct RankTag>;              // A rank of a collective.
using LaneId = Id<struct LaneTag>;              // A sequential program of a Schedule.
using ConnectionId = Id<struct ConnectionTag>;  // A FIFO of messages in a Network.

// A number that is not negative, where containers want an index.
[[nodiscard]] constexpr std::size_t as_index(int number) {
  return static_cast<std::size_t>(number);
}

}  // namespace trainyard
