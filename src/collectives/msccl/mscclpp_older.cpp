// SPDX-License-Identifier: Apache-2.0
#include "collectives/msccl/mscclpp_older.h"

#include <map>
#include <tuple>

namespace trainyard {
namespace {

using nlohmann::json;

enum class OlderChannel : std::uint8_t { Memory, Port, Switch, None };

constexpr std::array<std::pair<std::string_view, OlderChannel>, 6> kOlderChannels{
    {{"sm", OlderChannel::Memory},
     {"memory", OlderChannel::Memory},
     {"proxy", OlderChannel::Port},
     {"port", OlderChannel::Port},
     {"nvls", OlderChannel::Switch},
     {"none", OlderChannel::None}}};

// Buffers that an operation reads and writes: here, or over its channels.
struct OlderOperation {
  std::string_view name;
  std::string_view newer;
  bool has_source = false;     // srcbuff and srcoff.
  bool has_sources = false;    // srcs.
  bool reads_others = false;   // i_cids.
  bool has_target = false;     // dstbuff and dstoff.
  bool has_targets = false;    // dsts.
  bool writes_others = false;  // o_cids.
};

constexpr std::array kOlderOperations{
    OlderOperation{.name = "nop", .newer = "nop"},
    OlderOperation{.name = "flush", .newer = "flush"},
    OlderOperation{.name = "barrier", .newer = "barrier"},
    OlderOperation{.name = "signal", .newer = "signal"},
    OlderOperation{.name = "wait", .newer = "wait"},
    OlderOperation{.name = "put", .newer = "put", .has_sources = true, .writes_others = true},
    OlderOperation{.name = "pws", .newer = "pws", .has_sources = true, .writes_others = true},
    OlderOperation{.name = "pwsf", .newer = "pwsf", .has_sources = true, .writes_others = true},
    OlderOperation{.name = "ppkt", .newer = "ppkt", .has_sources = true, .writes_others = true},
    OlderOperation{.name = "rppkt", .newer = "rppkt", .has_sources = true, .writes_others = true},
    OlderOperation{.name = "get", .newer = "get", .reads_others = true, .has_targets = true},
    OlderOperation{.name = "copy", .newer = "copy", .has_source = true, .has_target = true},
    OlderOperation{.name = "tpkt", .newer = "cpkt", .has_source = true, .has_target = true},
    OlderOperation{.name = "cpkt", .newer = "upkt", .has_source = true, .has_target = true},
    OlderOperation{
        .name = "re", .newer = "re", .has_source = true, .has_sources = true, .has_target = true},
    OlderOperation{.name = "rs",
                   .newer = "res",
                   .has_source = true,
                   .has_sources = true,
                   .has_target = true,
                   .writes_others = true},
    OlderOperation{.name = "rrc",
                   .newer = "rre",
                   .has_source = true,
                   .reads_others = true,
                   .has_target = true},
    OlderOperation{.name = "rrcs",
                   .newer = "rres",
                   .has_source = true,
                   .reads_others = true,
                   .has_target = true,
                   .writes_others = true},
    OlderOperation{.name = "rpkt",
                   .newer = "repkt",
                   .has_source = true,
                   .has_sources = true,
                   .has_target = true},
    OlderOperation{.name = "rspkt",
                   .newer = "respkt",
                   .has_source = true,
                   .has_sources = true,
                   .has_target = true,
                   .writes_others = true}};

// Channels are told apart by the buffers at both ends and by what carries them.
using ChannelKey = std::tuple<std::string, std::string, OlderChannel>;

std::string_view newer_name(OlderChannel channel) {
  return channel == OlderChannel::Port ? "port" : "memory";
}

class OlderGpu {
 public:
  explicit OlderGpu(const PlanNode& gpu) : gpu_(gpu) {}

  json newer() {
    json result{{"id", gpu_.at("id").whole()},
                {"input_chunks", gpu_.at("inputChunks").whole()},
                {"output_chunks", gpu_.at("outputChunks").whole()},
                {"scratch_chunks", gpu_.at("scratchChunks").whole()},
                {"threadblocks", json::array()},
                {"channels", json::array()},
                {"remote_buffers", json::array()}};
    for (const PlanNode& channel : gpu_.items("channels")) {
      add_channels(channel);
    }
    for (const OlderChannel kind : {OlderChannel::Memory, OlderChannel::Port}) {
      result["channels"].push_back(
          {{"channel_type", newer_name(kind)}, {"connected_to", peers_[kind]}});
      first_remote_[kind] = static_cast<int>(result["remote_buffers"].size());
      for (std::size_t index = 0; index < peers_[kind].size(); ++index) {
        result["remote_buffers"].push_back(
            {{"rank", peers_[kind][index]}, {"type", reached_[kind][index]}});
      }
    }
    for (const PlanNode& block : gpu_.items("threadblocks")) {
      result["threadblocks"].push_back(newer_block(block));
    }
    return result;
  }

 private:
  static ChannelKey key_of(const PlanNode& node, const char* source, const char* target,
                           OlderChannel kind) {
    return {node.at(source).text(), node.at(target).text(), kind};
  }

  // Channels of a kind are numbered through, whatever buffers they join.
  void add_channels(const PlanNode& channel) {
    const OlderChannel kind = channel.at("type").one_of(kOlderChannels);
    if (kind != OlderChannel::Memory && kind != OlderChannel::Port) {
      return;  // The operations that use it are refused.
    }
    const ChannelKey key = key_of(channel, "srcbuff", "dstbuff", kind);
    for (const PlanNode& peer : channel.items("connectedTo")) {
      numbers_[key].push_back(static_cast<int>(peers_[kind].size()));
      peers_[kind].push_back(peer.whole());
      reached_[kind].push_back(std::get<1>(key));
    }
  }

  json newer_block(const PlanNode& block) {
    std::map<OlderChannel, std::vector<int>> channels;
    std::map<OlderChannel, std::vector<int>> remotes;
    block_numbers_.clear();
    for (const PlanNode& channel : block.items("channels")) {
      const OlderChannel kind = channel.at("ctype").one_of(kOlderChannels);
      if (kind != OlderChannel::Memory && kind != OlderChannel::Port) {
        continue;
      }
      const ChannelKey key = key_of(channel, "src", "dst", kind);
      for (const PlanNode& number : channel.items("cids")) {
        block_numbers_[key].push_back(static_cast<int>(channels[kind].size()));
        channels[kind].push_back(entry(numbers_[key], number));
        remotes[kind].push_back(first_remote_[kind] + channels[kind].back());
      }
    }
    json result{
        {"ops", json::array()}, {"channels", json::array()}, {"remote_buffer_refs", json::array()}};
    for (const auto& [kind, ids] : channels) {
      result["channels"].push_back({{"channel_type", newer_name(kind)}, {"channel_ids", ids}});
      result["remote_buffer_refs"].push_back(
          {{"access_channel_type", newer_name(kind)}, {"remote_buffer_ids", remotes[kind]}});
    }
    for (const PlanNode& step : block.items("ops")) {
      result["ops"].push_back(newer_step(step));
    }
    return result;
  }

  static int entry(const std::vector<int>& table, const PlanNode& number) {
    const auto index = static_cast<std::size_t>(number.whole());
    if (index >= table.size()) {
      number.fail(fmt::format("one of {}", table.size()));
    }
    return table[index];
  }

  // The channels of a step, as the thread block numbers them.
  [[nodiscard]] std::vector<int> channels_of(const PlanNode& step, const char* ids,
                                             const char* buffers, OlderChannel kind) {
    std::vector<int> channels;
    for (const PlanNode& item : step.items(ids)) {
      channels.push_back(
          entry(block_numbers_[key_of(step.at(buffers), "src", "dst", kind)], item.at("id")));
    }
    return channels;
  }

  // Adds what the step reads and writes: places here, or at the other ends of its channels.
  static void add_buffers(const PlanNode& step, const OlderOperation& known,
                          const std::vector<int>& inputs, const std::vector<int>& outputs,
                          json& result) {
    const auto at_places = [&](const char* key, json& buffers) {
      for (const PlanNode& place : step.items(key)) {
        buffers.push_back({{"type", place.at("buff").text()},
                           {"index", place.at("off").whole()},
                           {"size", step.at("cnt").whole()}});
      }
    };
    const auto at_others = [&](const char* key, const std::vector<int>& channels, json& buffers) {
      const std::vector<PlanNode> places = step.items(key);
      for (std::size_t index = 0; index < places.size(); ++index) {
        buffers.push_back({{"buffer_id", channels[index]},
                           {"index", places[index].at("off").whole()},
                           {"size", step.at("cnt").whole()}});
      }
    };
    const auto here = [&](const char* buffer, const char* offset, json& buffers) {
      buffers.push_back({{"type", step.at(buffer).text()},
                         {"index", step.at(offset).whole()},
                         {"size", step.at("cnt").whole()}});
    };
    json sources = json::array();
    json targets = json::array();
    if (known.has_source) {
      here("srcbuff", "srcoff", sources);
    }
    if (known.has_sources) {
      at_places("srcs", sources);
    }
    // Puts of the first months have one source for all targets.
    const bool is_put = known.has_sources && !known.has_source;
    for (std::size_t index = 0; is_put && !step.has("srcs") && index < outputs.size(); ++index) {
      here("srcbuff", "srcoff", sources);
    }
    if (known.reads_others) {
      at_others("i_cids", inputs, sources);
    }
    if (known.has_target) {
      here("dstbuff", "dstoff", targets);
    }
    if (known.has_targets) {
      at_places("dsts", targets);
    }
    if (known.writes_others) {
      at_others("o_cids", outputs, targets);
    }
    if (known.name == "rppkt" && sources.size() > 1) {
      step.fail("packets of one place", fmt::format("{} srcs", sources.size()));
    }
    result["src_buff"] = std::move(sources);
    result["dst_buff"] = std::move(targets);
  }

  json newer_step(const PlanNode& step) {
    const PlanNode name = step.at("name");
    const auto* const known =
        std::ranges::find(kOlderOperations, name.text(), &OlderOperation::name);
    if (known == kOlderOperations.end()) {
      return {{"name", name.text()}};  // The reader of newer plans refuses it.
    }
    json result{{"name", known->newer}};
    if (step.has("barrier_id")) {
      result["barrier_id"] = step.at("barrier_id").whole();
    }
    const OlderChannel kind =
        step.has("ctype") ? step.at("ctype").one_of(kOlderChannels) : OlderChannel::None;
    if (kind == OlderChannel::Memory || kind == OlderChannel::Port) {
      result["channel_type"] = newer_name(kind);
    }
    const std::vector<int> inputs = channels_of(step, "i_cids", "i_buff", kind);
    const std::vector<int> outputs = channels_of(step, "o_cids", "o_buff", kind);
    result["channel_ids"] = known->name == "wait" ? inputs : outputs;
    add_buffers(step, *known, inputs, outputs, result);
    return result;
  }

  const PlanNode& gpu_;
  // The GPU at the other end of each channel of a kind, and the buffer there.
  std::map<OlderChannel, std::vector<int>> peers_;
  std::map<OlderChannel, std::vector<std::string>> reached_;
  std::map<OlderChannel, int> first_remote_;
  std::map<ChannelKey, std::vector<int>> numbers_;        // Numbers among those of their kind.
  std::map<ChannelKey, std::vector<int>> block_numbers_;  // The same in the thread block.
};

}  // namespace

bool is_older_plan(const PlanNode& root) {
  const std::vector<PlanNode> gpus = root.items("gpus");
  return !gpus.empty() && gpus.front().has("inputChunks");
}

json to_newer_plan(const PlanNode& root) {
  // Plans of the first months have the key misspelt, and so had the reader then.
  const char* const collective = root.has("colletive") ? "colletive" : "collective";
  json result{{"name", root.at("name").text()},
              {"collective", root.at(collective).text()},
              {"inplace", root.at("inplace").flag()},
              {"gpus", json::array()}};
  for (const PlanNode& gpu : root.items("gpus")) {
    result["gpus"].push_back(OlderGpu(gpu).newer());
  }
  return result;
}

}  // namespace trainyard
