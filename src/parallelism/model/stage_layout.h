// SPDX-License-Identifier: Apache-2.0
// Which rank of a pipeline has which stages of the model.
#pragma once

namespace trainyard {

// Ranks of the pipeline, chunks of a rank and stages of the model count from 0.
struct StageLayout {
  // The stage that a chunk of a rank is.
  int (*stage_of)(int ranks, int rank, int chunk) = nullptr;
  // The rank where a micro-batch that goes in this direction meets the stage.
  int (*rank_of)(int ranks, int stage, int direction) = nullptr;
  // With 2, half of the micro-batches go through the ranks in falling order. Every stage is then on
  // two ranks, and a chunk is the stage of one direction.
  int directions = 1;
  // The last rank hands over to the first.
  bool is_ring = false;
};

// One chunk a rank: rank i has the stage i.
inline constexpr StageLayout kLineLayout{.stage_of = [](int, int rank, int) { return rank; },
                                         .rank_of = [](int, int stage, int) { return stage; }};

// Any number of chunks a rank: rank i has the stages i, p + i, 2 p + i and so on.
inline constexpr StageLayout kRingLayout{
    .stage_of = [](int ranks, int rank, int chunk) { return chunk * ranks + rank; },
    .rank_of = [](int ranks, int stage, int) { return stage % ranks; },
    .is_ring = true};

// Two chunks a rank: rank i has the stages i and 2 p - 1 - i; the last hands over to itself.
inline constexpr StageLayout kVLayout{
    .stage_of = [](int ranks, int rank,
                   int chunk) { return chunk == 0 ? rank : 2 * ranks - 1 - rank; },
    .rank_of = [](int ranks, int stage,
                  int) { return stage < ranks ? stage : 2 * ranks - 1 - stage; }};

// Two directions: rank i has the stages i and p - 1 - i of p.
inline constexpr StageLayout kTwoWayLayout{
    .stage_of = [](int ranks, int rank, int chunk) { return chunk == 0 ? rank : ranks - 1 - rank; },
    .rank_of = [](int ranks, int stage,
                  int direction) { return direction == 0 ? stage : ranks - 1 - stage; },
    .directions = 2};

}  // namespace trainyard
