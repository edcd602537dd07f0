// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/lowered_copies.h"

#include <spdlog/fmt/fmt.h>

#include <cstddef>

#include "parallelism/memory/offload.h"

namespace trainyard {
namespace {

constexpr std::size_t kBuffers = 2;

bool takes_activations(PassKind kind) {
  return kind == PassKind::Backward || kind == PassKind::InputGradient;
}

}  // namespace

bool LoweredCopies::keeps(const UnitOfPass& unit) const {
  return job_.plan.offload.activations && unit.unit.place == StepPlace::Layer &&
         unit.kind != PassKind::WeightGradient;
}

Bytes LoweredCopies::activations(const ModelUnit& unit) const {
  return layer_activations(job_.model, unit.layer, job_.plan, job_.software, job_.loads);
}

void LoweredCopies::fetch(const UnitOfPass& unit) {
  const Key key{unit.chunk, unit.unit, unit.micro_batch};
  if (fetched_.contains(key)) {
    return;
  }
  std::vector<OperationId> before = rank_.front();
  before.push_back(stored_.at(key));
  const OperationId copy =
      rank_.host_beside("from host", fmt::format("activations of {}", name_of(unit.unit)),
                        StepPart::Offload, job_.host->copy_to_gpu(activations(unit.unit)), before);
  fetched_.emplace(key, copy);
}

void LoweredCopies::begin_unit(const UnitOfPass& unit, const UnitOfPass* next) {
  std::optional<OperationId> own;
  if (keeps(unit) && takes_activations(unit.kind)) {
    fetch(unit);
    own = fetched_.extract(Key{unit.chunk, unit.unit, unit.micro_batch}).mapped();
  } else if (keeps(unit) && leaving_.size() == kBuffers) {
    own = leaving_.front();
    leaving_.pop_front();
  }
  if (next != nullptr && keeps(*next) && takes_activations(next->kind) &&
      stored_.contains(Key{next->chunk, next->unit, next->micro_batch})) {
    fetch(*next);
  }
  if (own) {
    rank_.require(*own);
  }
}

void LoweredCopies::end_unit(const UnitOfPass& unit) {
  if (!keeps(unit) || unit.kind != PassKind::Forward) {
    return;
  }
  const OperationId copy = rank_.host_beside(
      "to host", fmt::format("activations of {}", name_of(unit.unit)), StepPart::Offload,
      job_.host->copy_to_host(activations(unit.unit)), rank_.front());
  stored_.insert_or_assign(Key{unit.chunk, unit.unit, unit.micro_batch}, copy);
  leaving_.push_back(copy);
}

SimTime LoweredCopies::gradients_time(const RankParameters& parameters) const {
  return job_.host->copy_to_host(Bytes(owned_parameters(parameters, job_.plan)) *
                                 gradient_bytes(job_.plan, job_.software));
}

void LoweredCopies::send_gradients(const RankParameters& bucket, std::string_view name,
                                   const std::optional<OperationId>& reduced) {
  if (!job_.plan.offload.optimizer) {
    return;
  }
  std::vector<OperationId> before = rank_.front();
  if (reduced) {
    before.push_back(*reduced);
  }
  last_gradients_ = rank_.host_beside("to host", fmt::format("gradients to {}", name),
                                      StepPart::Offload, gradients_time(bucket), before);
}

void LoweredCopies::send_all_gradients(const RankParameters& parameters) {
  if (job_.plan.offload.optimizer) {
    last_gradients_ =
        rank_.host("to host", "gradients", StepPart::Offload, gradients_time(parameters));
  }
}

void LoweredCopies::update(const RankParameters& parameters) {
  if (last_gradients_) {
    rank_.require(*last_gradients_);
  }
  std::optional<OperationId> copy;
  for (const HostTile& tile :
       host_tiles(owned_parameters(parameters, job_.plan), job_.software.optimizer_bytes,
                  job_.plan.element_bytes, *job_.host)) {
    const OperationId updated = rank_.host("cpu", "optimizer", StepPart::Optimizer, tile.update);
    copy = rank_.host_beside("from host", "weights", StepPart::Offload, tile.copy, {updated});
  }
  if (copy) {
    rank_.require(*copy);
  }
}

}  // namespace trainyard
