// SPDX-License-Identifier: Apache-2.0
// The meaning of the operations, and the proof that a schedule does what it claims.
//
// The state is, for every rank and chunk, either nothing or a set of contributions: the ranks whose
// data are in the value. A chunk c of N ranks means
//   all_reduce                 before: {r} on every rank r     after: all ranks, on every rank
//   reduce                     before: {r} on every rank r     after: all ranks, on the root
//   broadcast                  before: {root} on the root      after: {root} on every rank
//   reduce_scatter             before: {r} on every rank r     after: all ranks, on rank c mod N
//   all_gather                 before: {c mod N} there         after: {c mod N} on every rank
//   scatter                    before: {root} on the root      after: {root} on rank c mod N
//   gather                     before: {c mod N} there         after: {c mod N} on the root
//   sendrecv                   before: {c mod N} there         after: the same on rank c mod N + 1
//   alltoall (c / N) mod N = s before: {s} on rank s           after: {s} on rank c mod N
//   alltoallv                  the same, for chunks that have bytes
//   barrier                    before: {r} on every rank r     after: all ranks, on every rank
// A barrier's chunk has no data: that somebody has come may be said twice, so sets are united.
// Relays hold nothing before; they and other ranks may hold anything in the end. A step may not
// send what its rank does not hold, nor reduce into nothing, nor add a contribution that is already
// there.
//
// The prover runs the lanes as far as they go, again and again, with messages that carry such sets.
// A schedule has no choices and its connections are FIFOs, so the order in which the prover picks
// lanes makes no difference to what a rank receives. Where two lanes of a rank touch the same chunk
// without a message between them, the order would matter; the prover runs the lanes in both
// directions, first to last and last to first, and each must give the right result. That finds a
// race if one of the two orders goes wrong, not if it takes a third.
//
// Where chunks are places (ScheduleShape::size_chunks), a value also says which chunk c of the
// operation it is part of; a message is stored where its receiver says, and only parts of the same
// chunk are added up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collectives/schedule/schedule.h"

namespace trainyard {

// A step or a result of a schedule that its operation does not allow.
struct Violation {
  std::string text;  // One line, with the place in it.
  // The step at which it shows; none for a wrong result, of which the rank is known.
  std::optional<LaneId> lane = {};
  std::uint64_t step = 0;
  std::optional<RankId> rank = {};
  std::optional<std::uint32_t> chunk = {};  // The same.
};

// More ranks are not proved.
inline constexpr int kMaxProvedRanks = 64;

// Returns nothing if the schedule performs its operation; otherwise the first violation, in one
// line that names ranks, steps and chunks. At most kMaxProvedRanks.
[[nodiscard]] std::optional<Violation> find_violation(const Schedule& schedule);

}  // namespace trainyard
