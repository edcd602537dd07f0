// SPDX-License-Identifier: Apache-2.0
// Chunks as places in the buffers of ranks, for algorithms of MSCCL and plans of MSCCL++.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/msccl/msccl_xml.h"
#include "collectives/schedule/schedule.h"
#include "sim/check.h"

namespace trainyard {

// Places of a rank: input, output, scratch and, behind these, a few for each thread block.
class MscclPlaces {
 public:
  explicit MscclPlaces(const MscclAlgorithm& algorithm)
      : algorithm_(algorithm),
        ranks_(static_cast<int>(algorithm.gpus.size())),
        part_(std::max(1, algorithm.chunks / ranks_)),
        inputs_(algorithm.operation == Operation::AllGather ? part_ : algorithm.chunks),
        outputs_(algorithm.operation == Operation::ReduceScatter ? part_ : algorithm.chunks) {
    for (const MscclGpu& gpu : algorithm.gpus) {
      scratches_ = std::max(scratches_, gpu.scratch_chunks);
    }
  }

  [[nodiscard]] int inputs() const { return inputs_; }
  [[nodiscard]] int outputs() const { return outputs_; }
  // Behind input, output and scratch: the first of those of the thread blocks.
  [[nodiscard]] std::uint32_t own() const { return to_place(inputs_ + outputs_ + scratches_); }

  [[nodiscard]] std::uint32_t at(int rank, MscclBuffer buffer, int offset) const {
    const bool is_half = algorithm_.operation == Operation::AllGather ||
                         algorithm_.operation == Operation::ReduceScatter;
    const int own = is_half ? rank * part_ : 0;
    switch (buffer) {
      case MscclBuffer::Input:
        return algorithm_.in_place && algorithm_.operation == Operation::AllGather
                   ? to_place(inputs_ + own + offset)
                   : to_place(offset);
      case MscclBuffer::Output:
        return algorithm_.in_place && algorithm_.operation != Operation::AllGather
                   ? to_place(own + offset)
                   : to_place(inputs_ + offset);
      case MscclBuffer::Scratch:
        return to_place(inputs_ + outputs_ + offset);
    }
    CHECK(false, "unknown buffer");
  }

  // The chunk of the operation, as semantics.h numbers them, that is at first in the input or in
  // the end in the output.
  [[nodiscard]] std::uint32_t datum(int rank, int offset, MscclBuffer buffer) const {
    const int peer = offset / part_;
    const int index = offset % part_;
    const bool is_output = buffer == MscclBuffer::Output;
    if (algorithm_.operation == Operation::AllGather) {  // The input is the own part alone.
      return to_place(index * ranks_ + (is_output ? peer : rank));
    }
    if (algorithm_.operation == Operation::ReduceScatter) {  // The output is.
      return to_place(index * ranks_ + (is_output ? rank : peer));
    }
    if (algorithm_.operation == Operation::AllToAll) {
      return to_place(is_output ? (index * ranks_ + peer) * ranks_ + rank
                                : (index * ranks_ + rank) * ranks_ + peer);
    }
    return to_place(offset);
  }

  [[nodiscard]] std::string name_of(std::uint32_t place) const {
    const auto number = static_cast<int>(place);
    return number < inputs_              ? fmt::format("i[{}]", number)
           : number < inputs_ + outputs_ ? fmt::format("o[{}]", number - inputs_)
           : place < own()               ? fmt::format("s[{}]", number - inputs_ - outputs_)
                                         : "a sum on its way";
  }

 private:
  static std::uint32_t to_place(int number) { return static_cast<std::uint32_t>(number); }

  const MscclAlgorithm& algorithm_;
  int ranks_;
  int part_;  // Chunks of a rank's part.
  int inputs_;
  int outputs_;
  int scratches_ = 0;  // The most that any GPU has.
};

class MscclSchedule final : public StoredSchedule {
 public:
  MscclSchedule(ScheduleShape shape, std::vector<Lane> lanes,
                std::vector<ScheduleConnection> connections, const MscclAlgorithm& algorithm)
      : StoredSchedule(std::move(shape), std::move(lanes), std::move(connections)) {
    const MscclPlaces places(algorithm);
    const std::vector<std::optional<std::uint32_t>> nothing(this->shape().chunk_count);
    before_.assign(algorithm.gpus.size(), nothing);
    after_.assign(algorithm.gpus.size(), nothing);
    const auto fill = [&](int rank, MscclBuffer buffer, int chunks, auto& data) {
      for (int offset = 0; offset < chunks; ++offset) {
        data[static_cast<std::size_t>(rank)][places.at(rank, buffer, offset)] =
            places.datum(rank, offset, buffer);
      }
    };
    for (int rank = 0; rank < this->shape().ranks; ++rank) {
      fill(rank, MscclBuffer::Input, places.inputs(), before_);
      fill(rank, MscclBuffer::Output, places.outputs(), after_);
    }
    for (std::uint32_t place = 0; place < this->shape().chunk_count; ++place) {
      names_.push_back(places.name_of(place));
    }
  }

  [[nodiscard]] std::optional<std::uint32_t> datum_before(RankId rank,
                                                          std::uint32_t chunk) const override {
    return before_[rank.value()][chunk];
  }
  [[nodiscard]] std::optional<std::uint32_t> datum_after(RankId rank,
                                                         std::uint32_t chunk) const override {
    return after_[rank.value()][chunk];
  }
  [[nodiscard]] std::string chunk_name(std::uint32_t chunk) const override { return names_[chunk]; }

 private:
  using Data = std::vector<std::vector<std::optional<std::uint32_t>>>;  // Rank by rank.
  Data before_;
  Data after_;
  std::vector<std::string> names_;  // One per place.
};

}  // namespace trainyard
