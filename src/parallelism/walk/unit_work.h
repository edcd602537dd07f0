// SPDX-License-Identifier: Apache-2.0
// Lists what one rank has to do for a unit of the model (pipeline_stages.h) and one micro-batch:
// operators, calls, launches of the host and what is computed again. Closed forms, the bound of a
// search and the graph of operations take this list; each has its own arithmetic of when.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parallelism/model/expert_routing.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/operators/layer_time.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/walk/host_launches.h"
#include "parallelism/walk/step_job.h"
#include "parallelism/walk/step_traffic.h"

namespace trainyard {

struct UnitWork {
  PassTimes compute = {};
  PassCalls calls;
  // The parts that a backward pass computes again: with full recomputation those of a forward pass,
  // beside calls.again; with the selective one StepPart::Recompute.
  StepParts again = {};
  // Times of the host; zero for the ends of the model.
  HostLaunches forward_host = {};
  HostLaunches backward_host = {};
};

// Traffic of tokens to their experts is that of exchanges_of() instead of `calls`.
[[nodiscard]] UnitWork work_of(const StepJob& job, const OperatorTimes& operators,
                               const ModelUnit& unit);

// Returns, for each place in the pipeline, the kind of GPU among its ranks that computes longest
// for a micro-batch, the first of equal ones.
[[nodiscard]] std::vector<int> slowest_kinds(const StepJob& job);

// The members of a group of expert ranks: all; those of the rank's NVLink domain; its like in each
// domain.
enum class ExpertPath : std::uint8_t { Group, Domain, Rail };

struct UnitCall {
  GroupCall call;
  ExpertPath path = ExpertPath::Group;
  StepPart part = StepPart::Tensor;
  std::int32_t slowdown_ppm = 0;  // GraphCall.

  bool operator==(const UnitCall&) const = default;
};

// The widest expert group of a plan by NVLink domain; nothing where there is none.
[[nodiscard]] ExpertDomains expert_places(const StepJob& job);

// Tokens on their way to experts and back in one direction of a pass; calls of a list run at once.
// Forward, tokens go in the precision of the dispatch and come back as activations are; backward,
// gradients do (arXiv 2412.19437, section 3.3.3).
struct Exchanges {
  std::vector<UnitCall> there;
  std::vector<UnitCall> back;
};

// `places` as expert_places() has them. Returns nothing for a unit without experts, or with all of
// them on every rank.
[[nodiscard]] Exchanges exchanges_of(const StepJob& job, const ModelUnit& unit,
                                     const ExpertDomains& places);

// Keeps what was made for a layer for those that follow it and are equal.
template <typename Value>
class LayerMemo {
 public:
  // The model must outlive this. Layers with loads of their own are never equal.
  explicit LayerMemo(const Model& model, const ExpertLoads& loads = {})
      : model_(model), has_own_loads_(!loads.layers.empty()) {}

  template <typename Make>
  const Value& of(const ModelUnit& unit, const Make& make) {
    const auto at = [&](int layer) -> const ModelLayer& {
      return model_.layers[static_cast<std::size_t>(layer)];
    };
    const bool is_layer = unit.place == StepPlace::Layer;
    if (!is_layer || !last_ || has_own_loads_ || at(unit.layer) != at(*last_)) {
      value_ = make();
      last_ = is_layer ? std::optional(unit.layer) : std::nullopt;
    }
    return value_;
  }

 private:
  const Model& model_;
  bool has_own_loads_;
  std::optional<int> last_;
  Value value_ = {};
};

}  // namespace trainyard
