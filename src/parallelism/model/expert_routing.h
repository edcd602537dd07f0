// SPDX-License-Identifier: Apache-2.0
// Computes where the tokens of a mixture of experts go: over how many places (expert ranks, NVLink
// domains) the copies of a token spread, and how full the fullest rank is.
//
// A token takes k of E experts. With groups (DeepSeek-V3, arXiv 2412.19437, section 2.1.2) it first
// takes A of G equal groups of neighbouring experts, then its k experts among those of the groups.
// Both choices are taken as uniform, as balanced routing is on average. For a place that holds n of
// the M = A E / G experts within reach,
//
//   P(no copy goes there) = C(M - n, k) / C(M, k),
//
// averaged over which groups are taken; one minus that, summed over the places, is the expected
// number of places.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "parallelism/model/model.h"
#include "sim/fields.h"

namespace trainyard {

// Returns the mean number of the places, among which the experts are spread in order and evenly,
// that get a copy of a token. At least one place; they divide the experts.
[[nodiscard]] double expected_places(const Experts& experts, std::int64_t places);

// An expert group by NVLink domain: the ranks of the first domain, and the first rank of each.
struct ExpertDomains {
  std::vector<int> domain;
  std::vector<int> rail;
};
// `domain_of_rank` has a number for each rank. Domains must have equally many ranks of the group;
// otherwise each rank is a domain of its own.
[[nodiscard]] ExpertDomains expert_domains(const std::vector<int>& group,
                                           std::span<const int> domain_of_rank);

// The imbalance with which tokens are routed.
struct ExpertLoads {
  // The load of each expert in a run of layers of the model, counted from 0, in any unit.
  struct Layers {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::vector<double> loads = {};
  };
  double imbalance =
      1.0;  // Load of the fullest expert rank over the mean, where no loads are said.
  // Most that an expert takes, over the mean of all; tokens above are dropped. Switch Transformers:
  // arXiv 2101.03961, section 2.2.
  std::optional<double> capacity = {};
  std::vector<Layers> layers = {};

  // Returns whether the loads are as if nothing were said of them.
  [[nodiscard]] bool is_even() const { return imbalance == 1.0 && !capacity && layers.empty(); }
};

// Load of the fullest of `ranks` expert ranks over the mean: it sets the time of the layer.
[[nodiscard]] double fullest_rank(const ExpertLoads& loads, std::int64_t layer,
                                  const Experts& experts, std::int64_t ranks);

// Adds the rows imbalance, capacity and layers of "routing". Reading throws ConfigError, too, where
// the loads of a layer are not as many as its experts.
void expert_load_fields(Fields& fields, ExpertLoads& loads, const Model& model);

}  // namespace trainyard
