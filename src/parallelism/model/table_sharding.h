// SPDX-License-Identifier: Apache-2.0
// Decides which rank holds what of the embedding tables of a recommendation model.
//
// A table is on every rank (data parallel), cut by its rows over all ranks (each looks up what it
// has, and sums are scattered), or sharded: whole, or in pieces of its vectors (column-wise),
// each on one rank, which looks up for the batches of all. These are the ways of TorchRec
// (torchrec/distributed/types.py, ShardingType) and of HugeCTR's and TensorFlow's hybrid ones.
#pragma once

#include <cstdint>
#include <vector>

#include "parallelism/model/recommender_model.h"

namespace trainyard {

struct TableRules {
  std::int64_t replicated_rows = 0;  // Tables with at most so many rows are on every rank.
  std::int64_t split_rows = 0;       // Tables with at least so many rows are cut by rows; 0: none.
  std::int64_t columns = 1;          // Pieces of each other one; a divisor of the width.
};

// Tables, or pieces of them, that are held in one way.
struct TableShare {
  std::int64_t rows = 0;            // Rows of each piece of its own.
  std::int64_t parameters = 0;      // Elements.
  std::int64_t lookups = 0;         // Indices of a sample.
  std::int64_t looked_up = 0;       // Elements of the vectors that these name.
  std::int64_t summed = 0;          // Elements of a sample's sums, one for each piece.
  std::vector<std::size_t> tables;  // Tables of the model.
  std::int64_t columns = 1;         // Pieces that each of them is in.

  void add(std::size_t index, const EmbeddingTable& table, std::int64_t width);
};

struct TableSharding {
  TableShare replicated;
  TableShare split;               // Over all ranks, evenly.
  std::vector<TableShare> dealt;  // Shares by rank.

  // The rank that gathers most elements, and so sends most; the first of equal ones.
  [[nodiscard]] std::size_t busiest() const;
  // The most elements of sums that a rank has to send for a sample.
  [[nodiscard]] std::int64_t max_summed() const;
  // The share of the mean rank in the work of the busiest one: 1 is even.
  [[nodiscard]] double balance() const;
};

// Pieces are sharded from the largest work on, each to the rank that has least to look up among
// those where it has room: `room` is in elements of each rank. Where no rank has, to the one that
// holds least; whether that fits is the verdict on memory. Longest processing time first: Graham,
// "Bounds on multiprocessing timing anomalies", 1969; TorchRec's greedy partitioner does the same
// (torchrec/distributed/planner/partitioners.py).
[[nodiscard]] TableSharding shard_tables(const RecommenderModel& model, const TableRules& rules,
                                         int ranks, std::int64_t room);

}  // namespace trainyard
