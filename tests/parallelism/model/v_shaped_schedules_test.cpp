// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_schedule.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/pipeline_forms.h"

namespace trainyard {
namespace {

PipelineShape shape_of(const PipelineSchedule& schedule, int ranks, int micro_batches) {
  return {.schedule = &schedule, .ranks = ranks, .micro_batches = micro_batches, .chunks = 2};
}

int max_activations(const PipelineShape& shape) {
  int max = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    max = std::max(max, max_activations(shape, rank));
  }
  return max;
}

// "F0" and "f0" are forwards of the two chunks, B and b gradients of inputs, W and w of weights.
std::string text_of(const PipelineShape& shape, int rank, std::size_t count) {
  constexpr std::array<std::array<char, 2>, 4> kLetters{{{'F', 'f'}, {}, {'B', 'b'}, {'W', 'w'}}};
  std::string text;
  for (const Pass& pass : passes_of(shape, rank)) {
    if (count-- == 0) {
      break;
    }
    text += text.empty() ? "" : " ";
    text +=
        kLetters.at(static_cast<std::size_t>(pass.kind)).at(static_cast<std::size_t>(pass.chunk));
    text += std::to_string(pass.micro_batch);
  }
  return text;
}

}  // namespace

TEST_CASE("V-Half holds half of the activations of 1F1B and V-Min a third", "[pipeline]") {
  // With the constants of the authors' page, in activations of a micro-batch: two chunks of a rank.
  for (int p = 1; p <= 24; ++p) {
    INFO("p " << p);
    REQUIRE(max_activations(shape_of(kVHalf, p, 6 * p)) <= 2 * ((p + 2) / 2));
    REQUIRE(max_activations(shape_of(kVMin, p, 6 * p)) <= 2 * ((p + 4) / 3));
    if (p > 1) {
      REQUIRE(max_activations(shape_of(kVHalf, p, 6 * p)) == 2 * ((p + 2) / 2));
      REQUIRE(max_activations(shape_of(kVMin, p, 6 * p)) == 2 * ((p + 4) / 3));
    }
  }
}

TEST_CASE("few micro-batches need hardly more memory than many", "[pipeline]") {
  for (int p = 2; p <= 9; ++p) {
    for (int m = 1; m <= 3 * p; ++m) {
      INFO("p " << p << " m " << m);
      // Fewer than ranks: the gradients of weights of V-Half wait while forwards are left.
      const int more = m < p ? 1 : 0;
      REQUIRE(max_activations(shape_of(kVHalf, p, m)) <= std::min(2 * m, 2 * ((p + 2) / 2) + more));
      REQUIRE(max_activations(shape_of(kVMin, p, m)) <= std::min(2 * m, 2 * ((p + 4) / 3)));
    }
  }
}

TEST_CASE("in its steady state a rank repeats the building block", "[pipeline]") {
  for (const PipelineSchedule* schedule : {&kVHalf, &kVMin}) {
    for (const int p : {4, 5, 6, 9}) {
      const PipelineShape shape = shape_of(*schedule, p, 8 * p);
      for (int rank = 0; rank < p; ++rank) {
        INFO(to_string(schedule) << " p " << p << " rank " << rank);
        const std::vector<Pass> passes = passes_of(shape, rank);
        // Behind the forwards that warm the pipeline up, and before the last ones.
        for (std::size_t index = passes.size() / 3; index < passes.size() / 2; ++index) {
          Pass later = passes[index];
          ++later.micro_batch;
          REQUIRE(passes[index + 6] == later);
        }
      }
    }
  }
}

TEST_CASE("the passes of a small V-Half and V-Min are those of the block", "[pipeline]") {
  // Rank 0 of three: V-Half has the slots 0, 7, 8 and 16, V-Min with its gap 0, 5, 8 and 13.
  REQUIRE(text_of(shape_of(kVHalf, 3, 12), 0, 18) ==
          "F0 F1 f0 b0 w0 F2 f1 b1 w1 B0 W0 F3 f2 b2 w2 B1 W1 F4");
  REQUIRE(text_of(shape_of(kVMin, 3, 12), 0, 12) == "F0 f0 F1 b0 w0 f1 F2 B0 b1 W0 w1 f2");
}

}  // namespace trainyard
