// SPDX-License-Identifier: Apache-2.0
// The software that trains, as far as a step's time depends on it: which kernels it has and what it
// overlaps. configs/software/*.yaml; docs/models/step.md explains the keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

// The work that full recomputation runs again of a layer without experts.
enum class FullRecompute : std::uint8_t {
  Layer,
  Needed,       // Not its last product, of which the backward pass needs what goes in alone.
  Unprojected,  // Nor the products that make queries, keys and values, which are kept.
};

// The sizes of buckets in which gradients are summed up (bucket_parameters of step_traffic.h).
enum class BucketRule : std::uint8_t {
  Megatron,
  PyTorch,  // Buckets of DistributedDataParallel; with ZeRO each unit that FSDP wraps.
  DeepSpeed,
};

struct SoftwareProfile {
  std::string name;  // Name of the file.
  std::string title;
  std::string attention;  // "unfused", or a kernel of gpu-rates.yaml.
  std::string fusion;     // Fusion of memory-bound operators: "fused", "eager", "compiled".
  // RMS norms are one kernel where operators are not fused, instead of one for each operator.
  bool has_norm_kernel = false;
  // Bytes of an element of what goes from layer to layer where products take 16 bits: 4 under
  // torch.autocast, which runs norms in 32 bits and casts what each product reads.
  int stream_bytes = 2;
  // Recompute::Selective is every second product, not the core of attention.
  bool recomputes_products = false;
  FullRecompute full_recompute = FullRecompute::Layer;
  double host = 1.0;  // Factor on the time for which the host launches a layer.
  // ZeRO 1 gives each rank whole matrices: gradients are all-reduced, and each owner broadcasts
  // what it has updated, after the step; instead of even slices, scattered and gathered.
  bool deals_out_matrices = false;
  int gradient_bytes = 2;  // Bytes of an element in the sum of gradients.
  BucketRule buckets = BucketRule::Megatron;
  bool scatter_gather = false;  // Tensor ranks send a part each to the next stage.
  bool overlap_tensor = false;
  // Traffic of tensor ranks shows in backward passes, whether or not it is overlapped.
  bool waits_backward = false;
  bool overlap_data = false;
  bool overlap_pipeline = false;
  bool overlap_expert = false;
  // A token is sent once to each NVLink domain that has experts of it and handed on there, instead
  // of once for each of its experts.
  bool dispatches_by_domain = false;
  bool dispatches_fp8 = false;  // Tokens to experts, and gradients to them, in 8 bits.
  // Rings of context ranks as PyTorch's context_parallel makes them, not as TransformerEngine does:
  // keys and values of all heads of queries are gathered at once, and results added up in FP32.
  bool gathers_keys = false;
  // One kernel computes a product of all experts of a rank (grouped_mm of PyTorch), instead of one
  // kernel for each of them (TransformerEngine).
  bool joins_experts = false;
  // Launches of a layer that show whatever the GPU has to do, over those of its forward pass: all
  // of them where the host waits for each kernel (CUDA_LAUNCH_BLOCKING).
  double host_sync = 0.0;
  // Launches of a layer with experts, over those of one without: all of its launches; and those
  // that show whatever the GPU has to do, as the host waits for the counts of tokens before them.
  double host_expert = 4.0;
  double host_expert_sync = 0.0;
  // Read and written for each weight of a layer in a backward pass, to add its gradient to those of
  // other micro-batches, beside what the product itself writes; with ZeRO 3 `scatter_bytes`, to lay
  // it out for its reduction, and `gather_bytes` each time that it was gathered.
  double accumulate_bytes = 0.0;
  double scatter_bytes = 0.0;
  double gather_bytes = 0.0;
  double optimizer_bytes = 0.0;  // Read and written by the optimizer, for each parameter.
  SimTime fixed;                 // Time of a step, whatever its size.

  // `folder` has the files that a file may name as its base. Strict; throws ConfigError with the
  // place of the mistake.
  [[nodiscard]] static SoftwareProfile load(const std::filesystem::path& file,
                                            const std::filesystem::path& folder);
};

void software_fields(Fields& fields, SoftwareProfile& profile);  // All but its name.

}  // namespace trainyard
