// SPDX-License-Identifier: Apache-2.0
// Lists which collectives and transfers a step makes, with which ranks and how large: the volumes
// of each kind of parallelism follow from this list alone. docs/models/step.md has them as
// formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collectives/schedule/operation.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/workload/software_profile.h"

namespace trainyard {

// One operation of the ranks of a group, `times` times one after the other. `elements` is its size
// in the sense of nccl-tests: all parts together for all_gather and reduce_scatter, what a rank
// sends for alltoall and sendrecv.
struct GroupCall {
  RankGroupKind group = RankGroupKind::Tensor;
  Operation operation = Operation::AllReduce;
  std::int64_t elements = 0;
  int element_bytes = 2;
  int times = 1;
  // Runs beside a product that needs no more of it; costs no time of its own.
  bool is_hidden = false;
  bool is_beside_attention = false;  // Runs while attention to what is at hand does.
  bool is_waited_for = false;        // Shows where other traffic of tensor ranks is overlapped.

  bool operator==(const GroupCall&) const = default;
};

// Elements that each rank of a group of `ranks` sends: 2 n (r - 1) / r for all_reduce,
// n (r - 1) / r for all_gather, reduce_scatter and alltoall, n for sendrecv. For broadcast
// the mean, n (r - 1) / r: all but one rank send n.
[[nodiscard]] double sent_elements(const GroupCall& call, int ranks);

// The calls of one micro-batch.
struct PassCalls {
  std::vector<GroupCall> forward;
  std::vector<GroupCall> backward;
  std::vector<GroupCall> again = {};  // Calls of the forward pass that full recomputation repeats.
};
// Traffic of tensor, context, expert and expert tensor ranks.
[[nodiscard]] PassCalls layer_calls(const Model& model, const ModelLayer& layer,
                                    const ParallelPlan& plan, const SoftwareProfile& software);
// The same of the embedding or the head.
[[nodiscard]] PassCalls end_calls(const Model& model, const ParallelPlan& plan, StepPlace place);

// The kind of parallelism that a group works for: "tensor", "context", "pipeline", "expert" or
// "data".
[[nodiscard]] std::string_view purpose_of(RankGroupKind kind);

[[nodiscard]] PassCalls unit_calls(const Model& model, const ParallelPlan& plan,
                                   const SoftwareProfile& software, const ModelUnit& unit);
// Returns the sum of the gradients of tied embeddings, of the first rank of a pipeline and the
// last: once a step.
[[nodiscard]] std::optional<GroupCall> ends_call(const Model& model, const ParallelPlan& plan,
                                                 const SoftwareProfile& software);

// Gradients and weights of a rank that holds these parameters, without ZeRO stage 3: once a step.
struct DataCalls {
  std::vector<GroupCall> reduce;  // While or after gradients are computed.
  std::vector<GroupCall> gather;  // Calls for new weights, before they are used.
};
// Returns the bytes of an element in the sum of gradients: as the software has it, but no fewer
// than of a weight.
[[nodiscard]] int gradient_bytes(const ParallelPlan& plan, const SoftwareProfile& software);
// Returns the compression of a plan whose gradients get smaller by it: not casts of what has 16
// bits already.
[[nodiscard]] std::optional<GradientCompression> compression_of(const ParallelPlan& plan,
                                                                const SoftwareProfile& software);
// Top-k: elements that a rank sends, each with its place in the bucket.
inline constexpr int kPlaceBytes = 4;
[[nodiscard]] std::int64_t kept_elements(std::int64_t elements, double ratio);
// Returns whether ranks own whole matrices, which they broadcast behind the optimizer: ZeRO 1 of
// such software.
[[nodiscard]] inline bool owns_matrices(const ParallelPlan& plan, const SoftwareProfile& software) {
  return plan.zero_stage == 1 && software.deals_out_matrices;
}
[[nodiscard]] DataCalls data_calls(const RankParameters& parameters, const ParallelPlan& plan,
                                   const SoftwareProfile& software);
// The same for ZeRO stage 3, for each micro-batch, of a layer or an end: weights are gathered for
// each pass, gradients reduced.
[[nodiscard]] PassCalls sharded_calls(const RankParameters& parameters, const ParallelPlan& plan,
                                      const SoftwareProfile& software);

// Returns whether gradients are summed up unit by unit, as FSDP does.
[[nodiscard]] inline bool reduces_units(const ParallelPlan& plan, const SoftwareProfile& software) {
  return software.buckets == BucketRule::PyTorch && plan.zero_stage > 0 && !plan.servers;
}
// Returns the parameters at which a bucket of gradients or weights is closed; the first of a step
// closes sooner in DistributedDataParallel. Megatron-LM has 40 million, or one million for each
// rank that shares gradients, so that rings of many ranks are not bound by latency
// (megatron/core/distributed/distributed_data_parallel.py: bucket_size), DeepSpeed 500 million
// (reduce_bucket_size of its configuration page). Parameter servers take those of Megatron-LM.
[[nodiscard]] std::int64_t bucket_parameters(const ParallelPlan& plan,
                                             const SoftwareProfile& software,
                                             bool is_first = false);
// Returns the calls that sum up `elements` of so many matrices: one, but for buckets of
// DistributedDataParallel or of a size that was given, each of one tensor or more.
[[nodiscard]] int bucket_calls(std::int64_t elements, std::int64_t matrices,
                               const ParallelPlan& plan, const SoftwareProfile& software);

// Returns the elements that a tensor rank sends to the next stage for one micro-batch, and gets
// back in gradients. With modulation the vectors of the samples go along, and are not split.
[[nodiscard]] std::int64_t transfer_elements(const Model& model, const ParallelPlan& plan,
                                             bool scatter_gather);
[[nodiscard]] inline Bytes transfer_size(const Model& model, const ParallelPlan& plan,
                                         bool scatter_gather) {
  return Bytes(transfer_elements(model, plan, scatter_gather)) * plan.element_bytes;
}

}  // namespace trainyard
