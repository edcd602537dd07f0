// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/software_profile.h"

#include <array>
#include <string_view>
#include <tuple>

namespace trainyard {
namespace {

constexpr Cited kCitedBytes{Number{0.0, 1000.0}};  // For each parameter.
constexpr Cited kCitedLaunches{Number{0.0, 100.0}};
constexpr Cited kCitedFlag{Flag{}};
constexpr std::array<std::string_view, 2> kSelective{"attention", "products"};
constexpr std::array<std::string_view, 2> kDispatches{"experts", "domains"};
constexpr std::array<std::string_view, 3> kFull{"layer", "needed", "unprojected"};
constexpr std::array<std::string_view, 3> kBuckets{"megatron", "pytorch", "deepspeed"};
constexpr std::array<std::string_view, 2> kOverlapped{"all", "forward"};
constexpr std::array<std::string_view, 2> kRings{"sent", "gathered"};
constexpr std::array<std::string_view, 2> kExperts{"each", "joined"};
constexpr std::array<std::string_view, 2> kNorms{"operators", "kernel"};

// All but the base.
void own_software_fields(Fields& fields, SoftwareProfile& profile) {
  fields.cite_sources();
  fields.required("title", profile.title, Text{}, "Name for people.");
  fields.required("attention", profile.attention, Cited{Text{}}, "Kernel with rates, or unfused.");
  fields.required("fusion", profile.fusion, Cited{Text{}}, "Fusion of memory-bound operators.");
  fields.optional("norms", profile.has_norm_kernel, Cited{Choice{kNorms}},
                  "How RMS norms run where operators are not fused: operators.");
  fields.optional("stream_bytes", profile.stream_bytes, Cited{Whole{2, 4}},
                  "Bytes of an element between layers of 16 bits: 2.");
  fields.required("selective", profile.recomputes_products, Cited{Choice{kSelective}},
                  "What selective recomputation runs again.");
  fields.optional("full", profile.full_recompute, Cited{Choice{kFull}},
                  "What full recomputation runs again.");
  fields.required("host", profile.host, kCitedLaunches, "Factor on the launch time of a layer.");
  fields.required("deals_out_matrices", profile.deals_out_matrices, kCitedFlag,
                  "ZeRO 1 gives ranks whole matrices.");
  fields.required("gradient_bytes", profile.gradient_bytes, Cited{Whole{1, 8}},
                  "Bytes of an element in the sum of gradients.");
  fields.optional("buckets", profile.buckets, Cited{Choice{kBuckets}},
                  "Whose sizes of buckets of gradients: megatron.");
  fields.required("scatter_gather", profile.scatter_gather, kCitedFlag,
                  "Tensor ranks send a part each to the next stage.");
  fields.required("overlap_tensor", profile.overlap_tensor, kCitedFlag, "Of tensor parallelism.");
  fields.optional("overlapped_passes", profile.waits_backward, Cited{Choice{kOverlapped}},
                  "Passes in which traffic of tensor ranks may be overlapped: all.");
  fields.required("overlap_data", profile.overlap_data, kCitedFlag, "Of data parallelism.");
  fields.required("overlap_pipeline", profile.overlap_pipeline, kCitedFlag,
                  "Of pipeline transfers.");
  fields.required("overlap_expert", profile.overlap_expert, kCitedFlag, "Of expert parallelism.");
  fields.required("dispatch", profile.dispatches_by_domain, Cited{Choice{kDispatches}},
                  "A copy of a token goes to each expert or NVLink domain.");
  fields.required("dispatch_fp8", profile.dispatches_fp8, kCitedFlag, "Tokens are sent in 8 bits.");
  fields.optional("ring", profile.gathers_keys, Cited{Choice{kRings}},
                  "How keys reach other context ranks.");
  fields.optional("experts", profile.joins_experts, Cited{Choice{kExperts}},
                  "Kernels of a rank's experts: each its own, or one for all.");
  fields.required("host_sync", profile.host_sync, kCitedLaunches, "Launches that always show.");
  fields.required("host_expert", profile.host_expert, kCitedLaunches,
                  "Launches of an expert layer.");
  fields.required("host_expert_sync", profile.host_expert_sync, kCitedLaunches,
                  "Launches of an expert layer that always show.");
  fields.required("accumulate_bytes", profile.accumulate_bytes, kCitedBytes,
                  "Bytes to add the gradient of a weight to others.");
  fields.required("scatter_bytes", profile.scatter_bytes, kCitedBytes, "Bytes before a reduction.");
  fields.required("gather_bytes", profile.gather_bytes, kCitedBytes, "Bytes after each gathering.");
  fields.required("optimizer_bytes", profile.optimizer_bytes, kCitedBytes,
                  "Bytes that the optimizer moves for a parameter.");
  fields.required("fixed", profile.fixed, Cited{Duration{}}, "Time of a step of any size.");
}

}  // namespace

void software_fields(Fields& fields, SoftwareProfile& profile) {
  fields.optional("base", std::ignore, Unread{}, "File whose values hold where none is given.");
  fields.where(true, [&] { own_software_fields(fields, profile); });
}

SoftwareProfile SoftwareProfile::load(const std::filesystem::path& file,
                                      const std::filesystem::path& folder) {
  ConfigDocument document = ConfigDocument::load(file);
  document.compose(document.root(), folder);
  SoftwareProfile profile;
  profile.name = std::filesystem::path(document.name()).stem().string();
  read_fields(document.root(), profile, software_fields);
  document.finish();
  return profile;
}

}  // namespace trainyard
