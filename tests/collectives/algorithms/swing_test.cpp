// SPDX-License-Identifier: Apache-2.0
// Swing against the equations of its paper, the prover, a closed form, and rings on a torus.
#include "support/catch.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "collectives/placement/aggregation.h"
#include "collectives/run/run.h"
#include "support/clusters.h"
#include "support/collective_run.h"
#include "support/proof.h"
#include "support/servers.h"

namespace trainyard {
namespace {

using Dimensions = std::vector<int>;

std::unique_ptr<Schedule> swing(const Dimensions& dimensions, int channels, bool rotate) {
  const int ranks = std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>());
  return make_schedule(&kSwing, Operation::AllReduce,
                       {.layout = flat_layout(ranks, channels),
                        .root = RankId(0),
                        .dimensions = dimensions,
                        .rotate_dimensions = rotate});
}

// Equations 1 and 2 of the paper, and its listing of the blocks of a step, for square tori of
// powers of two: step s is step s / D of dimension (s + first) mod D.
class PaperSwing {
 public:
  PaperSwing(int length, int dimensions, int first, bool mirrored)
      : length_(length), dimensions_(dimensions), first_(first), mirrored_(mirrored) {
    for (int left = length; left > 1; left /= 2) {
      steps_ += dimensions;
    }
  }
  [[nodiscard]] int steps() const { return steps_; }
  [[nodiscard]] int peer(int rank, int step) const {
    int rho = 0;
    for (int i = 0, power = 1; i <= step / dimensions_; ++i, power *= -2) {
      rho += power;
    }
    int stride = 1;
    for (int i = 0; i < (step + first_) % dimensions_; ++i) {
      stride *= length_;
    }
    const int here = rank / stride % length_;
    const int sign = (here % 2 == 0) != mirrored_ ? 1 : -1;
    const int there = ((here + sign * rho) % length_ + length_) % length_;
    return rank + (there - here) * stride;
  }
  [[nodiscard]] std::set<std::uint32_t> blocks(int rank, int step) const {
    std::set<std::uint32_t> found;
    add_blocks(peer(rank, step), step + 1, found);
    return found;
  }

 private:
  void add_blocks(int rank, int step, std::set<std::uint32_t>& found) const {
    found.insert(static_cast<std::uint32_t>(rank));
    for (int later = step; later < steps_; ++later) {
      add_blocks(peer(rank, later), later + 1, found);
    }
  }

  int length_;
  int dimensions_;
  int first_;
  bool mirrored_;
  int steps_ = 0;
};

TEST_CASE("swing sends what the paper's equations say, to whom they say") {
  for (const auto& [length, count] :
       {std::pair{2, 1}, {4, 1}, {16, 1}, {32, 1}, {4, 2}, {8, 2}, {2, 3}, {4, 3}}) {
    const Dimensions dimensions(static_cast<std::size_t>(count), length);
    const auto schedule = swing(dimensions, 2 * count, true);
    const int ranks = schedule->shape().ranks;
    for (int channel = 0; channel < 2 * count; ++channel) {
      const PaperSwing paper(length, count, channel % count, channel / count == 1);
      for (int rank = 0; rank < ranks; ++rank) {
        const LaneId lane(static_cast<std::uint32_t>(channel * ranks + rank));
        REQUIRE(schedule->step_count(lane) == static_cast<std::uint64_t>(4 * paper.steps()));
        for (int step = 0; step < paper.steps(); ++step) {
          const Step sent = schedule->step(lane, static_cast<std::uint64_t>(2 * step));
          std::set<std::uint32_t> blocks;
          for (std::uint32_t i = 0; i < sent.chunks.count; ++i) {
            blocks.insert(schedule->chunk_at(sent.chunks.first + i) -
                          static_cast<std::uint32_t>(channel * ranks));
          }
          INFO(length << "^" << count << ", channel " << channel << ", rank " << rank << ", step "
                      << step);
          REQUIRE(sent.kind == StepKind::Send);
          REQUIRE(schedule->connection(sent.connection).target ==
                  RankId(static_cast<std::uint32_t>(paper.peer(rank, step))));
          REQUIRE(blocks == paper.blocks(rank, step));
        }
      }
    }
  }
}

TEST_CASE("swing is proved on tori of any lengths, and every rank sends 2(N-1) blocks") {
  for (const Dimensions& dimensions : {Dimensions{4, 4},
                                       {8, 8},
                                       {2, 8},
                                       {6, 4},
                                       {10, 6},
                                       {12},
                                       {2, 4, 6},
                                       {4, 4, 4},
                                       {2, 2, 2, 2},
                                       {3, 5},
                                       {7, 2},
                                       {1, 6},
                                       {3, 3, 3},
                                       {14, 4},
                                       {22},
                                       {62}}) {
    const int channels = 2 * static_cast<int>(dimensions.size());
    const auto schedule = swing(dimensions, channels, true);
    REQUIRE(verify(*schedule).value_or("proved") == "proved");
    const auto ranks = static_cast<std::uint32_t>(schedule->shape().ranks);
    for (std::uint32_t lane = 0; lane < schedule->shape().lanes; ++lane) {
      std::uint32_t sent = 0;
      for (std::uint64_t index = 0; index < schedule->step_count(LaneId(lane)); index += 2) {
        sent += schedule->step(LaneId(lane), index).chunks.count;
      }
      REQUIRE(sent == 2 * (ranks - 1));
    }
  }
}

TEST_CASE("on an idle switch swing takes as long as halving and doubling") {
  for (const int ranks : {2, 4, 8, 16, 32}) {
    for (const std::int64_t block : {0, 1, 4096, 1'000'003}) {
      const Bytes size(block * ranks);
      SimTime half;
      for (int blocks = ranks / 2; blocks > 0; blocks /= 2) {
        half += transfer_time(Bytes(block * blocks), kIdleBandwidth) + kIdleLatency;
      }
      for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
        const FlatCollective what{.algorithm = &kSwing, .ranks = ranks};
        REQUIRE(idle_time(what, size, fidelity) == half * 2);
      }
    }
  }
}

Cluster torus(const std::string& shape, int gpus) {
  return cluster_of(gpus, 0, "template: torus, shape: " + shape + ", link: ICI-v4, attach: gpu");
}

TEST_CASE("on a torus swing beats the rings at small sizes and is close at large ones") {
  const Cluster cluster = torus("[8, 8]", 64);
  const auto time = [&](Algorithm algorithm, Bytes size) {
    return run_collective(cluster, {.algorithm = algorithm, .size = size}).time;
  };
  for (const Bytes size : {kib(1), kib(64), mib(1)}) {
    REQUIRE(time(&kSwing, size) < time(&kMultiRing, size));
    REQUIRE(time(&kSwing, size) < time(&kRing, size));
  }
  REQUIRE(time(&kSwing, mib(256)) < time(&kRing, mib(256)));
  // Step k of a dimension crosses |rho(k)| links: 3/4 + 3/16 + 3 * 3/64 where rings have 63/64.
  REQUIRE(std::abs(time(&kSwing, mib(256)) / time(&kMultiRing, mib(256)) - 69.0 / 63) < 0.01);
}

TEST_CASE("swing runs on a grid fabric alone, of one dimension too") {
  const auto error = [](const Cluster& cluster) {
    const Routing routing(cluster.topology, cluster.routing);
    return placement_error(cluster, routing, &kSwing).value_or("none");
  };
  REQUIRE(error(torus("[4, 2, 3]", 24)) == "none");
  REQUIRE(error(torus("[6]", 6)) == "none");
  REQUIRE(error(cluster_of({{.gpus = 4, .nics = 4}, {.gpus = 4, .nics = 4}})) ==
          "the ranks are not on the switches of a grid");
  Cluster part = torus("[4, 4]", 16);
  part.gpus.resize(8);
  part.server_gpus.resize(8);
  REQUIRE(error(part) == "the ranks do not fill the grid of the fabric");
}

}  // namespace
}  // namespace trainyard
