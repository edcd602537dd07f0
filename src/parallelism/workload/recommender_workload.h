// SPDX-License-Identifier: Apache-2.0
// The training of a recommendation model as its YAML file describes it, and the software that runs
// it. docs/models/recommenders.md explains the keys.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/model/recommender_model.h"
#include "parallelism/model/table_sharding.h"
#include "parallelism/workload/workload.h"
#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

// The optimizer's state beside each parameter: nothing, a number of 32 bits, one for each row, or
// two.
enum class RecommenderOptimizer : std::uint8_t { Sgd, Adagrad, RowwiseAdagrad, Adam };

[[nodiscard]] std::string_view to_string(RecommenderOptimizer optimizer);

// configs/software/recommenders/*.yaml.
struct RecommenderSoftware {
  std::string name = {};  // Name of the file.
  std::string title = {};
  std::string fusion = {};  // Fusion of memory-bound operators, as in SoftwareProfile.
  // One kernel reads vectors and writes the products of their pairs; otherwise they are put side by
  // side, multiplied, and the pairs are taken from the result.
  bool fuses_interaction = false;
  bool pads_inputs = false;     // Pads inputs of layers to multiples of 16.
  int index_bytes = 8;          // Bytes of an index on its way to its table.
  int gradient_bytes = 4;       // Bytes of an element in the sum of dense gradients.
  bool overlap_input = false;   // Indices of the next batch go to their tables beside this step.
  bool overlap_tables = false;  // Traffic of tables runs beside the bottom MLP.
  bool overlap_data = false;    // Sums of gradients run beside the backward pass.
  SimTime fixed = {};           // Time of a step, whatever its size.

  // Strict; throws ConfigError with the place of the mistake.
  [[nodiscard]] static RecommenderSoftware load(const std::filesystem::path& file);
};

struct RecommenderWorkload {
  std::string name;  // Name of the file.
  std::string title;
  RecommenderModel model;
  std::string software;  // A name in configs/software/recommenders, or a file.
  // Precision of MLPs and of vectors on their way: one of kPlainPrecisions. Tables are in 32 bits.
  Precision precision = Precision::Fp16;
  std::int64_t batch = 0;  // Samples of a step, on all ranks together.
  TableRules rules;
  RecommenderOptimizer table_optimizer = RecommenderOptimizer::Sgd;
  RecommenderOptimizer dense_optimizer = RecommenderOptimizer::Sgd;
  // Choices of overlap; where nothing is said, as the software does it.
  std::optional<bool> overlap_input = {};
  std::optional<bool> overlap_tables = {};
  std::optional<bool> overlap_data = {};
};

void recommender_software_fields(Fields& fields, RecommenderSoftware& software);
void recommender_workload_fields(Fields& fields, RecommenderWorkload& workload);

// Strict. `models` is the folder of the models that are named instead of described; `settings` are
// "key.path=value" as --set takes them. Throws ConfigError with the place of the mistake.
[[nodiscard]] RecommenderWorkload load_recommender_workload(
    const std::filesystem::path& file, const std::filesystem::path& models,
    const std::vector<std::string>& settings = {});

}  // namespace trainyard
