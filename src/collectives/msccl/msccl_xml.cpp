// SPDX-License-Identifier: Apache-2.0
#include "collectives/msccl/msccl_xml.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>
#include <pugixml.hpp>
#include <span>
#include <utility>

#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"
#include "sim/xml_file.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;
constexpr int kMaxGpus = 64;  // As many as the prover takes.
// microsoft/msccl, src/include/msccl.h: MSCCL_MAX_NUM_STEPS, MSCCL_MAX_COUNT and
// MSCCL_MAX_NUM_THREAD_BLOCKS_PER_CHANNEL; MAXCHANNELS.
constexpr int kMaxSteps = 256;
constexpr int kMaxBlocksOfChannel = 32;
constexpr int kMaxCount = 72;
constexpr int kMaxChannels = 32;
constexpr int kMaxChunks = 1 << 16;

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 18> kAlgorithmWords{
    "name",     "proto",      "nchannels", "nchunksperloop", "ngpus",         "coll",
    "inplace",  "outofplace", "redop",     "root",           "nthreads",      "minBytes",
    "maxBytes", "min_bytes",  "max_bytes", "maxcount",       "nthreadblocks", "gpu"};
constexpr std::array<std::string_view, 5> kGpuWords{"id", "i_chunks", "o_chunks", "s_chunks", "tb"};
constexpr std::array<std::string_view, 5> kBlockWords{"id", "send", "recv", "chan", "step"};
constexpr std::array<std::string_view, 10> kStepWords{
    "s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"};

template <typename Value, std::size_t count>
using Names = std::array<std::pair<std::string_view, Value>, count>;

constexpr Names<MscclStepType, 10> kTypes{{{"s", MscclStepType::Send},
                                           {"r", MscclStepType::Receive},
                                           {"rcs", MscclStepType::ReceiveCopySend},
                                           {"rrs", MscclStepType::ReceiveReduceSend},
                                           {"rrc", MscclStepType::ReceiveReduceCopy},
                                           {"rrcs", MscclStepType::ReceiveReduceCopySend},
                                           {"cpy", MscclStepType::Copy},
                                           {"re", MscclStepType::Reduce},
                                           {"ra", MscclStepType::Reduce},
                                           {"nop", MscclStepType::Nothing}}};
constexpr Names<MscclBuffer, 3> kBuffers{
    {{"i", MscclBuffer::Input}, {"o", MscclBuffer::Output}, {"s", MscclBuffer::Scratch}}};
constexpr Names<Operation, 7> kCollectives{{{"allreduce", Operation::AllReduce},
                                            {"allgather", Operation::AllGather},
                                            {"reduce_scatter", Operation::ReduceScatter},
                                            {"alltoall", Operation::AllToAll},
                                            {"broadcast", Operation::Broadcast},
                                            {"reduce", Operation::Reduce},
                                            // Any: what it is proved to be (is_custom).
                                            {"custom", Operation::AllReduce}}};

constexpr std::string_view kCustom = "custom";

class MscclReader {
 public:
  MscclReader(std::string_view text, const std::string& name)
      : file_(text, name, kMaxBytes, "algo") {}

  MscclAlgorithm read() {
    const pugi::xml_node node = file_.root();
    const std::string path = "algo";
    check_words(node, path, kAlgorithmWords, "gpu");
    MscclAlgorithm algorithm{.place = file_.place_of(node),
                             .name = node.attribute("name").value(),
                             .protocol = node.attribute("proto").value(),
                             .operation = named(node, path, "coll", kCollectives),
                             .is_custom = node.attribute("coll").value() == kCustom,
                             .in_place = number(node, path, "inplace", 0, 1, 0) == 1,
                             .channels = number(node, path, "nchannels", 1, kMaxChannels),
                             .chunks = number(node, path, "nchunksperloop", 1, kMaxChunks),
                             .root = number(node, path, "root", 0, kMaxGpus - 1, 0),
                             .gpus = {}};
    const int gpus = number(node, path, "ngpus", 1, kMaxGpus);
    algorithm.min_bytes = bytes(node, path, "minBytes", "min_bytes");
    algorithm.max_bytes = bytes(node, path, "maxBytes", "max_bytes");
    for (const pugi::xml_node child : node.children()) {
      const std::string gpu_path = fmt::format("gpu[{}]", algorithm.gpus.size());
      check_id(child, gpu_path, "id", algorithm.gpus.size());
      algorithm.gpus.push_back(read_gpu(child, gpu_path, algorithm));
    }
    if (algorithm.gpus.size() != static_cast<std::size_t>(gpus)) {
      file_.fail(node, path,
                 fmt::format("expected ngpus, {}, elements \"gpu\", found {}", gpus,
                             algorithm.gpus.size()));
    }
    if (algorithm.root >= gpus) {
      file_.fail(node, path,
                 fmt::format("expected a root below {}, found {}", gpus, algorithm.root));
    }
    return algorithm;
  }

 private:
  MscclGpu read_gpu(const pugi::xml_node& node, const std::string& path,
                    const MscclAlgorithm& algorithm) {
    check_words(node, path, kGpuWords, "tb");
    MscclGpu gpu{.place = file_.place_of(node),
                 .input_chunks = number(node, path, "i_chunks", 0, kMaxChunks),
                 .output_chunks = number(node, path, "o_chunks", 0, kMaxChunks),
                 .scratch_chunks = number(node, path, "s_chunks", 0, kMaxChunks),
                 .blocks = {}};
    std::array<int, kMaxChannels> blocks_of{};
    for (const pugi::xml_node child : node.children()) {
      const std::string block_path = fmt::format("{}.tb[{}]", path, gpu.blocks.size());
      check_id(child, block_path, "id", gpu.blocks.size());
      gpu.blocks.push_back(read_block(child, block_path, algorithm));
      int& blocks = blocks_of.at(static_cast<std::size_t>(gpu.blocks.back().channel));
      if (++blocks > kMaxBlocksOfChannel) {
        file_.fail(
            child, block_path,
            fmt::format("expected at most {} thread blocks on a channel, as MSCCL runs them, "
                        "found more",
                        kMaxBlocksOfChannel));
      }
    }
    return gpu;
  }

  MscclBlock read_block(const pugi::xml_node& node, const std::string& path,
                        const MscclAlgorithm& algorithm) {
    check_words(node, path, kBlockWords, "step");
    MscclBlock block{.place = file_.place_of(node),
                     .send_peer = number(node, path, "send", -1, kMaxGpus - 1),
                     .receive_peer = number(node, path, "recv", -1, kMaxGpus - 1),
                     .channel = number(node, path, "chan", 0, algorithm.channels - 1),
                     .steps = {}};
    for (const pugi::xml_node child : node.children()) {
      const std::string step_path = fmt::format("{}.step[{}]", path, block.steps.size());
      check_id(child, step_path, "s", block.steps.size());
      if (block.steps.size() == kMaxSteps) {
        file_.fail(
            child, step_path,
            fmt::format("expected at most {} steps of a thread block, as MSCCL runs them, found "
                        "more",
                        kMaxSteps));
      }
      block.steps.push_back(read_step(child, step_path));
    }
    return block;
  }

  MscclStep read_step(const pugi::xml_node& node, const std::string& path) {
    check_words(node, path, kStepWords, "");
    MscclStep step{.place = file_.place_of(node), .type = named(node, path, "type", kTypes)};
    step.depends_on_block = number(node, path, "depid", -1, 1 << 16, -1);
    step.depends_on_step = number(node, path, "deps", -1, kMaxSteps - 1, -1);
    step.is_depended_on = number(node, path, "hasdep", 0, 1, 0) == 1;
    if ((step.depends_on_block < 0) != (step.depends_on_step < 0)) {
      file_.fail(node, path, "expected both depid and deps, or -1 for both");
    }
    if (step.type == MscclStepType::Nothing) {
      return step;
    }
    step.source_buffer = named(node, path, "srcbuf", kBuffers);
    step.source_offset = number(node, path, "srcoff", 0, kMaxChunks);
    step.target_buffer = named(node, path, "dstbuf", kBuffers);
    step.target_offset = number(node, path, "dstoff", 0, kMaxChunks);
    step.count = number(node, path, "cnt", 1, kMaxCount);
    return step;
  }

  // Only these attributes, each once, and only these children.
  void check_words(const pugi::xml_node& node, const std::string& path, Words known,
                   std::string_view child_name) const {
    std::vector<std::string_view> seen;
    for (const pugi::xml_attribute attribute : node.attributes()) {
      const std::string_view word = attribute.name();
      if (word == child_name || std::find(known.begin(), known.end(), word) == known.end()) {
        file_.fail(
            node, path,
            fmt::format("unknown attribute {}; known: {}", in_quotes(word),
                        fmt::join(known.first(known.size() - (child_name.empty() ? 0 : 1)), ", ")));
      }
      if (std::find(seen.begin(), seen.end(), word) != seen.end()) {
        file_.fail(node, path, fmt::format("the attribute {} is given twice", in_quotes(word)));
      }
      seen.push_back(word);
    }
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element || child.name() != child_name) {
        file_.fail(child, path,
                   fmt::format("expected {}, found {}",
                               child_name.empty() ? "nothing inside"
                                                  : fmt::format("elements \"{}\" only", child_name),
                               in_quotes(child.type() == pugi::node_element ? child.name()
                                                                            : child.value())));
      }
    }
  }

  void check_id(const pugi::xml_node& node, const std::string& path, const char* key,
                std::size_t expected) const {
    const int found = number(node, path, key, 0, 1 << 20);
    if (static_cast<std::size_t>(found) != expected) {
      file_.fail(node, path, fmt::format("expected {} {}, found {}", key, expected, found));
    }
  }

  [[nodiscard]] int number(const pugi::xml_node& node, const std::string& path, const char* key,
                           int min, int max, std::optional<int> otherwise = {}) const {
    const pugi::xml_attribute attribute = node.attribute(key);
    if (!attribute && otherwise) {
      return *otherwise;
    }
    const std::string_view text = required(node, path, key);
    const auto value = parse_number(text, min, max);
    if (!value) {
      file_.fail(node, path,
                 fmt::format("{}: expected a whole number from {} to {}, found {}", key, min, max,
                             in_quotes(text)));
    }
    return *value;
  }

  [[nodiscard]] std::int64_t bytes(const pugi::xml_node& node, const std::string& path,
                                   const char* key, const char* other) const {
    const char* const name = node.attribute(key) ? key : other;
    if (!node.attribute(name)) {
      return 0;
    }
    const std::string_view text = node.attribute(name).value();
    const auto value = parse_number<std::int64_t>(text);
    if (!value || *value < 0) {
      file_.fail(node, path,
                 fmt::format("{}: expected a number of bytes, found {}", name, in_quotes(text)));
    }
    return *value;
  }

  template <typename Value, std::size_t count>
  [[nodiscard]] Value named(const pugi::xml_node& node, const std::string& path, const char* key,
                            const Names<Value, count>& names) const {
    const std::string_view text = required(node, path, key);
    std::vector<std::string_view> known;
    for (const auto& [name, value] : names) {
      if (name == text) {
        return value;
      }
      known.push_back(name);
    }
    file_.fail(node, path,
               fmt::format("{}: expected one of {}, found {}", key, fmt::join(known, ", "),
                           in_quotes(text)));
  }

  [[nodiscard]] std::string_view required(const pugi::xml_node& node, const std::string& path,
                                          const char* key) const {
    const pugi::xml_attribute attribute = node.attribute(key);
    if (!attribute) {
      file_.fail(node, path, fmt::format("missing attribute \"{}\"", key));
    }
    return attribute.value();
  }

  XmlFile file_;
};

}  // namespace

MscclAlgorithm read_msccl_xml(std::string_view text, const std::string& name) {
  return MscclReader(text, name).read();
}

}  // namespace trainyard
