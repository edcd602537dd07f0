// SPDX-License-Identifier: Apache-2.0
// A recommendation model as its shapes, from configs/workloads/recommenders/*.yaml: DLRM, Naumov et
// al., arXiv 1906.00091, and DCN-v2, Wang et al., arXiv 2008.13535.
//
// A sample has numbers and, for each of many categories, some indices. The vectors that the indices
// name in embedding tables are added up, category by category; an MLP makes one more vector of the
// numbers; the vectors interact, and another MLP makes a number of what comes out. Tables hold
// nearly all parameters and the MLPs do nearly all operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/fields.h"

namespace trainyard {

struct EmbeddingTable {
  std::int64_t rows = 0;
  std::int64_t lookups = 1;  // Look-ups of a sample: indices whose vectors are added up.
};

// x' = x0 * (V (W x) + b) + x with all vectors in a row as x: arXiv 2008.13535, section 3.4.
struct CrossNetwork {
  std::int64_t layers = 0;
  std::int64_t rank = 0;  // Outputs of W.
};

// A layer of an MLP, with a bias.
struct MlpLayer {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;

  [[nodiscard]] std::int64_t parameters() const { return inputs * outputs + outputs; }
};

struct RecommenderModel {
  std::string name;  // Name of the file.
  std::string title;
  std::int64_t dense_features = 0;
  std::int64_t width = 0;  // Elements of a vector.
  std::vector<EmbeddingTable> tables;
  std::vector<std::int64_t> bottom;     // Outputs of its layers; the last are `width`.
  std::vector<std::int64_t> top;        // The same; the last is one.
  std::optional<CrossNetwork> cross{};  // Otherwise dot products of all pairs of vectors.

  // Vectors that interact: one of each table and that of the bottom MLP.
  [[nodiscard]] std::int64_t vectors() const {
    return static_cast<std::int64_t>(tables.size()) + 1;
  }
  [[nodiscard]] std::int64_t pairs() const { return vectors() * (vectors() - 1) / 2; }
  // Elements that the top MLP gets.
  [[nodiscard]] std::int64_t interacted() const;
  [[nodiscard]] std::vector<MlpLayer> bottom_layers() const;
  [[nodiscard]] std::vector<MlpLayer> top_layers() const;

  [[nodiscard]] std::int64_t table_parameters() const;
  // Return the parameters of both MLPs and of cross layers.
  [[nodiscard]] std::int64_t bottom_parameters() const;
  [[nodiscard]] std::int64_t cross_parameters() const;
  [[nodiscard]] std::int64_t top_parameters() const;
  [[nodiscard]] std::int64_t dense_parameters() const {
    return bottom_parameters() + cross_parameters() + top_parameters();
  }
};

// Floating-point operations of one sample in a training step: three times those of its forward
// pass, in which products and pairs of vectors count and sums of looked-up vectors do not.
[[nodiscard]] double training_flops(const RecommenderModel& model);

// All but its name.
void recommender_fields(Fields& fields, RecommenderModel& model);

}  // namespace trainyard
