// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/software_profile.h"

#include <array>
#include <string_view>

#include "hw/parts/sourced_reader.h"

namespace trainyard {
namespace {

constexpr double kMostBytesOfParameter = 1000.0;  // For each parameter.

bool read_selective(const SourcedReader& reader, const ConfigNode& root) {
  static constexpr std::array<std::string_view, 2> kChoices{"attention", "products"};
  return reader.value(root, "selective").as_choice(kChoices) == 1;
}

bool read_dispatch(const SourcedReader& reader, const ConfigNode& root) {
  static constexpr std::array<std::string_view, 2> kChoices{"experts", "domains"};
  return reader.value(root, "dispatch").as_choice(kChoices) == 1;
}

FullRecompute read_full(const SourcedReader& reader, const ConfigNode& root) {
  static constexpr std::array<std::string_view, 3> kChoices{"layer", "needed", "unprojected"};
  return root.optional("full")
             ? static_cast<FullRecompute>(reader.value(root, "full").as_choice(kChoices))
             : FullRecompute::Layer;
}

bool read_ring(const SourcedReader& reader, const ConfigNode& root) {
  static constexpr std::array<std::string_view, 2> kChoices{"sent", "gathered"};
  return root.optional("ring") && reader.value(root, "ring").as_choice(kChoices) == 1;
}

}  // namespace

SoftwareProfile SoftwareProfile::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  return read(document);
}

SoftwareProfile SoftwareProfile::read(ConfigDocument& document) {
  const ConfigNode root = document.root();
  const SourcedReader reader(root);
  const auto flag = [&](std::string_view key) { return reader.value(root, key).as_bool(); };
  const auto bytes = [&](std::string_view key) {
    return reader.value(root, key).as_number(0.0, kMostBytesOfParameter);
  };
  SoftwareProfile profile{
      .name = std::filesystem::path(document.name()).stem().string(),
      .title = root.required("title").as_string(),
      .attention = reader.value(root, "attention").as_string(),
      .fusion = reader.value(root, "fusion").as_string(),
      .recomputes_products = read_selective(reader, root),
      .full_recompute = read_full(reader, root),
      .host = reader.value(root, "host").as_number(0.0, 100.0),
      .deals_out_matrices = flag("deals_out_matrices"),
      .gradient_bytes = static_cast<int>(reader.value(root, "gradient_bytes").as_integer(1, 8)),
      .scatter_gather = flag("scatter_gather"),
      .overlap_tensor = flag("overlap_tensor"),
      .overlap_data = flag("overlap_data"),
      .overlap_pipeline = flag("overlap_pipeline"),
      .overlap_expert = flag("overlap_expert"),
      .dispatches_by_domain = read_dispatch(reader, root),
      .dispatches_fp8 = flag("dispatch_fp8"),
      .gathers_keys = read_ring(reader, root),
      .host_sync = reader.value(root, "host_sync").as_number(0.0, 100.0),
      .host_expert = reader.value(root, "host_expert").as_number(0.0, 100.0),
      .host_expert_sync = reader.value(root, "host_expert_sync").as_number(0.0, 100.0),
      .accumulate_bytes = bytes("accumulate_bytes"),
      .scatter_bytes = bytes("scatter_bytes"),
      .gather_bytes = bytes("gather_bytes"),
      .optimizer_bytes = bytes("optimizer_bytes"),
      .fixed = reader.value(root, "fixed").as_time()};
  document.finish();
  return profile;
}

}  // namespace trainyard
