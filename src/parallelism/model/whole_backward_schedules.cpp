// SPDX-License-Identifier: Apache-2.0
// Schedules whose backward is one pass.
#include "parallelism/model/pipeline_schedule.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "parallelism/model/pass_list.h"

namespace trainyard {
namespace {

std::vector<Pass> gpipe(const PipelineShape& shape, int) {
  PassList list;
  for (int i = 0; i < shape.micro_batches; ++i) {
    list.forward();
  }
  for (int i = shape.micro_batches - 1; i >= 0; --i) {
    list.add(PassKind::Backward, 0, i);
  }
  return std::move(list).passes();
}

std::vector<Pass> one_forward_one_backward(const PipelineShape& shape, int rank) {
  PassList list;
  for (int i = 0; i < std::min(shape.micro_batches, shape.ranks - 1 - rank); ++i) {
    list.forward();
  }
  while (list.backwards() < shape.micro_batches) {
    if (list.forwards() < shape.micro_batches) {
      list.forward();
    }
    list.backward();
  }
  return std::move(list).passes();
}

// Micro-batches go round in groups as large as the pipeline, each group through all chunks.
std::vector<Pass> interleaved(const PipelineShape& shape, int rank) {
  const int group = shape.ranks * shape.chunks;
  const int total = shape.micro_batches * shape.chunks;
  PassList list;
  const auto add = [&](PassKind kind, int index) {
    const int chunk = index % group / shape.ranks;
    const int micro_batch = index / group * shape.ranks + index % shape.ranks;
    list.add(kind, kind == PassKind::Forward ? chunk : shape.chunks - 1 - chunk, micro_batch);
  };
  int forwards = 0;
  const int warm_up =
      std::min(total, 2 * (shape.ranks - 1 - rank) + (shape.chunks - 1) * shape.ranks);
  while (forwards < warm_up) {
    add(PassKind::Forward, forwards++);
  }
  for (int backwards = 0; backwards < total; ++backwards) {
    if (forwards < total) {
      add(PassKind::Forward, forwards++);
    }
    add(PassKind::Backward, backwards);
  }
  return std::move(list).passes();
}

std::string uneven_rounds(const PipelineShape& shape) {
  return shape.micro_batches % shape.ranks == 0
             ? ""
             : fmt::format("expected micro-batches that {} pipeline ranks divide, found {}",
                           shape.ranks, shape.micro_batches);
}

}  // namespace

constinit const PipelineSchedule kGPipe{.name = "gpipe", .passes = gpipe};

constinit const PipelineSchedule kOneForwardOneBackward{
    .name = "1f1b", .with_chunks = &kInterleaved, .passes = one_forward_one_backward};

constinit const PipelineSchedule kInterleaved{.name = "interleaved",
                                              .chunks = std::nullopt,
                                              .layout = kRingLayout,
                                              .error = uneven_rounds,
                                              .passes = interleaved};

}  // namespace trainyard
