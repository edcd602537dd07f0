// SPDX-License-Identifier: Apache-2.0
// Holds the settings that decide the memory of a training step beside model and plan: number
// formats, kernels and what the software holds for itself. Named settings stand for whole software
// stacks; docs/models/memory.md has their sources.
#pragma once

#include <cstdint>
#include <string_view>

#include "parallelism/model/activation_memory.h"
#include "sim/units.h"

namespace trainyard {

// Bytes for each parameter, by what shards them. arXiv 1910.02054, section 3.
struct StateFormat {
  // Bytes of weights as they rest; sharded from ZeRO stage 3 on. Where they are wider than
  // `compute` they are also the master copy: from stage 1 on sharded, beside a whole copy for the
  // layers before stage 3.
  std::int64_t weight = 2;
  std::int64_t compute = 2;   // As layers use them: gathered weights, gradients of one layer.
  std::int64_t gradient = 4;  // Accumulated; sharded from ZeRO stage 2 on.
  // The optimizer has a master copy and two moments of 4 each; sharded from ZeRO stage 1 on.
  std::int64_t optimizer = 12;
};

// The place where the gradient of one weight stands before it is added to the accumulated ones.
enum class WeightGradientBuffer : std::uint8_t {
  InPlace,        // The GEMM adds to the accumulated gradient.
  Transient,      // In 16 bits, one matrix at a time.
  CachedByShape,  // One buffer for each shape of matrix, kept: Transformer Engine,
                  // transformer_engine/pytorch/module/base.py: get_dummy_wgrad.
};

struct MemorySettings {
  StateFormat states = {};
  ActivationOptions activations = {};
  WeightGradientBuffer weight_gradients = WeightGradientBuffer::CachedByShape;
  // Units (layers, embedding, head) gathered ahead under ZeRO stage 3.
  int prefetched_units = 1;
  bool has_split_embedding = true;  // Over tensor ranks; otherwise each has all of it.
  // Bytes for each parameter of gradients that stay unsharded under ZeRO stages 2 and 3 until the
  // last of several micro-batches; 0: they are scattered after each.
  std::int64_t unsharded_gradient = 0;
  // FSDP2 wraps the model where there are tensor ranks, even for one data rank: its layers are
  // gathered and its gradients accumulated as for several.
  bool wraps_one_shard = false;
  // DeepSpeed makes groups of its own: of the ranks that hold a copy of the model, of all ranks and
  // of those that share a tied embedding (runtime/pipe/topology.py, engine.py and module.py).
  bool has_deepspeed_groups = false;
  Bytes buckets = {};  // Buckets of collectives, held all the time.
  // Memory of a process: the CUDA context and the code of kernels. Hugging Face, "Model training
  // anatomy": 1343 MiB after the first kernel.
  Bytes context = mib(1343);
  // Connections of a communicator that have buffers, whose sizes are NCCL's: of each of 24 channels
  // (DGX A100) one of its ring and two of its tree, which bring data (src/transport/generic.cc and
  // src/init.cc of NVIDIA/nccl connect all of them).
  int connections = 72;
  // Memory that the caching allocator holds but cannot use, as a share of what comes and goes.
  double fragmentation = 0.10;
};

// A whole stack by its name; throws ConfigError that lists them.
[[nodiscard]] MemorySettings memory_settings(std::string_view name);

}  // namespace trainyard
