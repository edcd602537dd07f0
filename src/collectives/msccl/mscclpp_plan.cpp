// SPDX-License-Identifier: Apache-2.0
#include "collectives/msccl/mscclpp_plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "collectives/msccl/mscclpp_older.h"
#include "collectives/msccl/plan_node.h"
#include "sim/json_complaint.h"

namespace trainyard {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxPlanChunks = 4'000'000;  // In all buffers of all GPUs.
constexpr std::size_t kMaxPlanGpus = 64;            // As many as the prover follows.
constexpr int kMaxShares = 64;  // Pieces that thread blocks together may cut a chunk into.

constexpr std::array<std::pair<std::string_view, Operation>, 4> kPlanCollectives{
    {{"allreduce", Operation::AllReduce},
     {"allgather", Operation::AllGather},
     {"reducescatter", Operation::ReduceScatter},
     {"alltoall", Operation::AllToAll}}};

constexpr std::array<std::pair<std::string_view, MscclBuffer>, 3> kPlanBuffers{
    {{"i", MscclBuffer::Input}, {"o", MscclBuffer::Output}, {"s", MscclBuffer::Scratch}}};

constexpr std::array<std::pair<std::string_view, bool>, 2> kPlanChannels{
    {{"memory", false}, {"port", true}}};

constexpr std::array<std::pair<std::string_view, PlanOperation>, 26> kPlanOperations{
    {{"nop", PlanOperation::Nothing},
     {"flush", PlanOperation::Nothing},
     {"barrier", PlanOperation::Barrier},
     {"put", PlanOperation::Put},
     {"pws", PlanOperation::PutSignal},
     {"pwsf", PlanOperation::PutSignal},
     {"ppkt", PlanOperation::PutPackets},
     {"rppkt", PlanOperation::ReadPutPackets},
     {"get", PlanOperation::Get},
     {"copy", PlanOperation::Copy},
     {"cpkt", PlanOperation::CopyPackets},
     {"upkt", PlanOperation::UnpackPackets},
     {"signal", PlanOperation::Signal},
     {"rlxsignal", PlanOperation::Signal},
     {"wait", PlanOperation::Wait},
     {"rlxwait", PlanOperation::Wait},
     {"re", PlanOperation::Reduce},
     {"res", PlanOperation::Reduce},
     {"rre", PlanOperation::Reduce},
     {"rres", PlanOperation::Reduce},
     {"repkt", PlanOperation::ReducePackets},
     {"respkt", PlanOperation::ReducePackets},
     {"recpkt", PlanOperation::ReduceCopyPackets},
     {"recspkt", PlanOperation::ReduceCopyPackets},
     {"sem_release", PlanOperation::Release},
     {"sem_acquire", PlanOperation::Acquire}}};
constexpr std::array<std::string_view, 4> kUnmodelledOperations{"glres", "gstore", "gstorepkt",
                                                                "pipeline"};

class PlanReader {
 public:
  PlanReader(const json& value, const std::string& name) : root_(value, "", name) {}

  MscclppPlan read() {
    MscclAlgorithm& algorithm = plan_.algorithm;
    algorithm.name = root_.at("name").text();
    algorithm.operation = root_.at("collective").one_of(kPlanCollectives);
    algorithm.in_place = root_.at("inplace").flag();
    gpus_ = root_.items("gpus");
    if (gpus_.size() < 2 || gpus_.size() > kMaxPlanGpus) {
      root_.at("gpus").fail(fmt::format("a list of 2 to {} GPUs", kMaxPlanGpus));
    }
    count_shares();
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      read_sizes(rank);
    }
    check_sizes();
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      read_gpu(rank);
    }
    return std::move(plan_);
  }

 private:
  // Chunks are cut into as many shares as every group of thread blocks needs.
  void count_shares() {
    for (const PlanNode& gpu : gpus_) {
      for (const PlanNode& block : gpu.items("threadblocks")) {
        for (const PlanNode& step : block.items("ops")) {
          if (step.has("tbg_info")) {
            const PlanNode size = step.at("tbg_info").at("tbg_size");
            shares_ = std::lcm(shares_, size.whole(1, kMaxShares));
            if (shares_ > kMaxShares) {
              size.fail(
                  fmt::format("sizes of groups that have a common multiple up to {}", kMaxShares));
            }
          }
        }
      }
    }
  }

  void read_sizes(std::size_t rank) {
    const PlanNode& gpu = gpus_[rank];
    if (gpu.at("id").whole() != static_cast<int>(rank)) {
      gpu.at("id").fail(std::to_string(rank));
    }
    MscclGpu& sizes = plan_.algorithm.gpus.emplace_back();
    sizes.input_chunks = gpu.at("input_chunks").whole() * shares_;
    sizes.output_chunks = gpu.at("output_chunks").whole() * shares_;
    sizes.scratch_chunks = gpu.at("scratch_chunks").whole() * shares_;
    auto& remotes = remotes_.emplace_back();
    for (const PlanNode& remote : gpu.items("remote_buffers")) {
      remotes.push_back(
          {.rank = read_rank(remote.at("rank")), .buffer = remote.at("type").one_of(kPlanBuffers)});
    }
    auto& semaphores = plan_.semaphores.emplace_back();
    for (const PlanNode& semaphore : gpu.items("semaphores")) {
      semaphores.push_back(semaphore.at("init_value").whole());
    }
    auto& channels = channels_.emplace_back();
    for (const PlanNode& channel : gpu.items("channels")) {
      if (channel.at("channel_type").text() == "switch") {
        continue;  // The steps that use it are refused.
      }
      const bool is_port = channel.at("channel_type").one_of(kPlanChannels);
      std::map<int, int> seen;
      for (const PlanNode& peer : channel.items("connected_to")) {
        const int number = read_rank(peer);
        channels[is_port].push_back({.peer = number, .is_port = is_port, .number = seen[number]++});
      }
    }
  }

  // All GPUs have the buffers of the operation; of one that works in place one size is enough.
  void check_sizes() {
    MscclAlgorithm& algorithm = plan_.algorithm;
    const auto ranks = static_cast<int>(gpus_.size());
    const bool gathers = algorithm.operation == Operation::AllGather;
    const int inputs = gathers ? 1 : ranks;  // How many parts of ranks the buffer has.
    const int outputs = algorithm.operation == Operation::ReduceScatter ? 1 : ranks;
    const MscclGpu& first = algorithm.gpus.front();
    std::int64_t all = 0;
    for (const MscclGpu& gpu : algorithm.gpus) {
      all = std::max(all, std::int64_t{gpu.input_chunks} + gpu.output_chunks + gpu.scratch_chunks);
    }
    if (all * ranks > kMaxPlanChunks) {
      root_.at("gpus").fail(fmt::format("buffers of at most {} chunks in all", kMaxPlanChunks),
                            std::to_string(all * ranks));
    }
    algorithm.chunks = gathers ? first.output_chunks : first.input_chunks;
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      MscclGpu& gpu = algorithm.gpus[rank];
      if (algorithm.in_place) {
        gpu.input_chunks = gathers ? gpu.output_chunks / ranks : gpu.input_chunks;
        gpu.output_chunks = gathers ? gpu.output_chunks : gpu.input_chunks * outputs / ranks;
      }
      const bool is_parted =
          algorithm.operation == Operation::AllReduce || algorithm.chunks % ranks == 0;
      if (algorithm.chunks < 1 || !is_parted ||
          gpu.input_chunks * outputs != gpu.output_chunks * inputs ||
          std::max(gpu.input_chunks, gpu.output_chunks) != algorithm.chunks) {
        gpus_[rank].fail(fmt::format("buffers of {} for {} GPUs, as the first one has",
                                     to_string(algorithm.operation), ranks),
                         fmt::format("input_chunks {} and output_chunks {}",
                                     gpu.input_chunks / shares_, gpu.output_chunks / shares_));
      }
    }
  }

  [[nodiscard]] int read_rank(const PlanNode& node) const {
    return node.whole(0, static_cast<std::int64_t>(gpus_.size()) - 1);
  }

  // The tables into which a thread block's numbers lead, for each kind of channel.
  struct BlockTables {
    std::array<std::vector<PlanChannel>, 2> channels;
    std::array<std::vector<PlanBuffer>, 2> remotes;
  };

  template <typename Value>
  static const Value& entry(const std::vector<Value>& table, const PlanNode& number) {
    const int index = number.whole();
    if (static_cast<std::size_t>(index) >= table.size()) {
      number.fail(fmt::format("one of {}", table.size()));
    }
    return table[static_cast<std::size_t>(index)];
  }

  void read_gpu(std::size_t rank) {
    auto& blocks = plan_.steps.emplace_back();
    for (const PlanNode& block : gpus_[rank].items("threadblocks")) {
      BlockTables tables;
      for (const PlanNode& channel : block.items("channels")) {
        if (channel.at("channel_type").text() == "switch") {
          continue;
        }
        const bool is_port = channel.at("channel_type").one_of(kPlanChannels);
        for (const PlanNode& number : channel.items("channel_ids")) {
          tables.channels[is_port].push_back(entry(channels_[rank][is_port], number));
        }
      }
      for (const PlanNode& remote : block.items("remote_buffer_refs")) {
        const bool is_port = remote.at("access_channel_type").one_of(kPlanChannels);
        for (const PlanNode& number : remote.items("remote_buffer_ids")) {
          tables.remotes[is_port].push_back(entry(remotes_[rank], number));
        }
      }
      auto& steps = blocks.emplace_back();
      for (const PlanNode& step : block.items("ops")) {
        steps.push_back(read_step(static_cast<int>(rank), step, tables));
      }
    }
  }

  PlanStep read_step(int rank, const PlanNode& node, const BlockTables& tables) const {
    const PlanNode name = node.at("name");
    if (std::ranges::find(kUnmodelledOperations, name.text()) != kUnmodelledOperations.end()) {
      name.fail("an operation that is modelled (not one of switches, or a pipeline)");
    }
    PlanStep step{.place = node.place(), .operation = name.one_of(kPlanOperations)};
    const bool is_port = node.has("channel_type") && node.at("channel_type").one_of(kPlanChannels);
    for (const PlanNode& number : node.items("channel_ids")) {
      step.channels.push_back(entry(tables.channels[is_port], number));
    }
    for (const PlanNode& semaphore : node.items("semaphore_ids")) {
      static_cast<void>(entry(plan_.semaphores[static_cast<std::size_t>(rank)], semaphore));
      step.semaphores.push_back(semaphore.whole());
    }
    if (step.operation == PlanOperation::Barrier) {
      step.barrier = node.at("barrier_id").whole();
    }
    int share = 0;
    int shares = 1;
    if (node.has("tbg_info")) {
      shares = node.at("tbg_info").at("tbg_size").whole(1);
      share = node.at("tbg_info").at("tb_id").whole(0, shares - 1);
    }
    const auto read = [&](const char* key, std::vector<PlanBuffer>& buffers) {
      for (const PlanNode& item : node.items(key)) {
        PlanBuffer buffer =
            item.has("buffer_id")
                ? entry(tables.remotes[is_port], item.at("buffer_id"))
                : PlanBuffer{.rank = rank, .buffer = item.at("type").one_of(kPlanBuffers)};
        const MscclGpu& gpu = plan_.algorithm.gpus[static_cast<std::size_t>(buffer.rank)];
        const int chunks = buffer.buffer == MscclBuffer::Input    ? gpu.input_chunks
                           : buffer.buffer == MscclBuffer::Output ? gpu.output_chunks
                                                                  : gpu.scratch_chunks;
        const int size = item.at("size").whole(1);
        const int first = item.at("index").whole();
        if ((first + size) * shares_ > chunks) {
          item.fail(fmt::format("chunks of a buffer of {}", chunks / shares_),
                    fmt::format("{} to {}", first, first + size - 1));
        }
        buffer.count = size * shares_ / shares;
        buffer.first = first * shares_ + share * buffer.count;
        buffers.push_back(buffer);
      }
    };
    read("src_buff", step.sources);
    read("dst_buff", step.targets);
    check_step(rank, step, node);
    return step;
  }

  // Each operation needs as many buffers and channels as it is about, all of one size.
  static void check_step(int rank, const PlanStep& step, const PlanNode& node) {
    bool pairs = false;
    switch (step.operation) {
      case PlanOperation::Nothing:
      case PlanOperation::Barrier:
      case PlanOperation::Signal:
      case PlanOperation::Wait:
      case PlanOperation::Release:
      case PlanOperation::Acquire:
        return;
      case PlanOperation::Put:
      case PlanOperation::PutSignal:
      case PlanOperation::PutPackets:
      case PlanOperation::Get:
      case PlanOperation::Copy:
      case PlanOperation::CopyPackets:
      case PlanOperation::UnpackPackets:
        pairs = true;
        break;
      case PlanOperation::ReadPutPackets:
      case PlanOperation::Reduce:
      case PlanOperation::ReducePackets:
      case PlanOperation::ReduceCopyPackets:
        break;
    }
    if (step.sources.empty() || step.targets.empty() ||
        (pairs && step.sources.size() != step.targets.size())) {
      node.fail(pairs ? "as many src_buff as dst_buff" : "src_buff and dst_buff",
                fmt::format("{} and {}", step.sources.size(), step.targets.size()));
    }
    check_ends(rank, step, node);
    for (std::size_t index = 0; index < step.targets.size(); ++index) {
      const int count = step.sources[pairs ? index : 0].count;
      if (step.targets[index].count != count) {
        node.fail("targets as large as what is written",
                  fmt::format("chunks {} and {}", step.targets[index].count, count));
      }
    }
    for (const PlanBuffer& source : step.sources) {
      if (!pairs && source.count != step.sources.front().count) {
        node.fail("sources of one size",
                  fmt::format("chunks {} and {}", step.sources.front().count, source.count));
      }
    }
    if (step.operation == PlanOperation::PutSignal && step.channels.size() != step.targets.size()) {
      node.fail("a channel for each target", std::to_string(step.channels.size()));
    }
  }

  // Some operations are of memory here alone, some lead to or from that of others.
  static void check_ends(int rank, const PlanStep& step, const PlanNode& node) {
    const PlanOperation kind = step.operation;
    const bool sums = kind == PlanOperation::Reduce || kind == PlanOperation::ReducePackets ||
                      kind == PlanOperation::ReduceCopyPackets;
    const bool copies = kind == PlanOperation::Copy || kind == PlanOperation::CopyPackets ||
                        kind == PlanOperation::UnpackPackets;
    const bool gets = kind == PlanOperation::Get;
    const auto check = [&](const std::vector<PlanBuffer>& buffers, const char* key, bool here) {
      for (std::size_t index = 0; index < (sums ? 1 : buffers.size()); ++index) {
        if ((buffers[index].rank == rank) != here) {
          node.fail(fmt::format("{} in the memory of {}", key, here ? "this GPU" : "another GPU"),
                    fmt::format("that of GPU {}", buffers[index].rank));
        }
      }
    };
    check(step.sources, "src_buff", !gets);
    check(step.targets, "dst_buff", sums || copies || gets);
  }

  PlanNode root_;
  std::vector<PlanNode> gpus_;
  MscclppPlan plan_;
  int shares_ = 1;
  std::vector<std::vector<PlanBuffer>> remotes_;  // Buffers that a GPU reaches, without places.
  std::vector<std::array<std::vector<PlanChannel>, 2>>
      channels_;  // Ends of channels, for each GPU and kind.
};

}  // namespace

MscclppPlan read_mscclpp_plan(std::string_view text, const std::string& name) {
  check_json_depth(name, text);
  json value;
  try {
    value = json::parse(text);
  } catch (const json::exception& problem) {
    fail_json(name, text, problem);
  }
  const PlanNode root(value, "", name);
  return PlanReader(is_older_plan(root) ? to_newer_plan(root) : value, name).read();
}

}  // namespace trainyard
