// SPDX-License-Identifier: Apache-2.0
// Copies between a rank and host memory in an operation graph, on the streams "to host" and "from
// host", and the update of its weights on the stream "cpu" (offload.h).
//
// Activations of a layer leave when its forward is over; the forward of the second layer behind it
// waits for that, so that two buffers are enough. They come back while what runs before their
// backward does.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "parallelism/lowering/lowered_rank.h"
#include "parallelism/lowering/lowered_units.h"
#include "parallelism/walk/step_job.h"

namespace trainyard {

class LoweredCopies {
 public:
  // The arguments must outlive this. Does nothing for a plan without offload.
  LoweredCopies(const StepJob& job, LoweredRank& rank) : job_(job), rank_(rank) {}

  // These are called before and after a unit is written; `next` follows it.
  void begin_unit(const UnitOfPass& unit, const UnitOfPass* next);
  void end_unit(const UnitOfPass& unit);

  // Sends the gradients of a bucket, beside what follows, once `reduced`, if anything, has ended;
  // or after everything.
  void send_gradients(const RankParameters& bucket, std::string_view name,
                      const std::optional<OperationId>& reduced);
  void send_all_gradients(const RankParameters& parameters);
  // Waits for all gradients.
  void update(const RankParameters& parameters);

 private:
  using Key = std::tuple<int, ModelUnit, int>;  // Chunk, unit, micro-batch.

  [[nodiscard]] bool keeps(const UnitOfPass& unit) const;
  [[nodiscard]] Bytes activations(const ModelUnit& unit) const;
  void fetch(const UnitOfPass& unit);
  [[nodiscard]] SimTime gradients_time(const RankParameters& parameters) const;

  const StepJob& job_;
  LoweredRank& rank_;
  std::deque<OperationId> leaving_;
  std::map<Key, OperationId> stored_;
  std::map<Key, OperationId> fetched_;
  std::optional<OperationId> last_gradients_;
};

}  // namespace trainyard
