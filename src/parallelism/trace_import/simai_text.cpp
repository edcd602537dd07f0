// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/simai_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxRanks = 1'000'000;
constexpr std::int64_t kMaxLayers = 10'000'000;
constexpr std::size_t kFields = 12;

using Group = SimAiGroup;
constexpr std::array<std::optional<Group>, kPasses> kTensorGroups{Group::Tensor, Group::Tensor,
                                                                  Group::Data};
constexpr std::array<SimAiPolicy, 11> kPolicies{{
    {"HYBRID_TRANSFORMER", SimAiOrder::Transformer, kTensorGroups},
    {"HYBRID_TRANSFORMER_FWD_IN_BCKWD", SimAiOrder::Transformer, kTensorGroups},
    {"HYBRID_DATA_MODEL", SimAiOrder::Hybrid, kTensorGroups},
    // Tensor ranks lie further apart than data ranks.
    {"HYBRID_MODEL_DATA", SimAiOrder::Hybrid, {Group::Data, Group::Data, Group::Tensor}},
    {"HYBRID_CUSTOMIZED", SimAiOrder::Hybrid, {}},  // Each layer has a policy.
    {"MODEL", SimAiOrder::Hybrid, {Group::All, Group::All, std::nullopt}},
    {"DATA", SimAiOrder::WeightsFirst, {std::nullopt, std::nullopt, Group::All}},
    {"HYBRID_DLRM", SimAiOrder::Recommender, {std::nullopt, std::nullopt, Group::All}},
    {"HYBRID_DLRM_ENHANCED", SimAiOrder::Recommender, {std::nullopt, std::nullopt, Group::All}},
    {"DISTRIBUTED_INFERENCE", SimAiOrder::Inference, {Group::All, std::nullopt, std::nullopt}},
    {"MICRO", SimAiOrder::Calls, {std::nullopt, std::nullopt, Group::All}},
}};
// The groups of the first layer of a recommendation model, the embedding.
constexpr std::array<std::optional<Group>, kPasses> kExchanges{Group::All, Group::All, Group::All};

const SimAiPolicy* policy_of(std::string_view name) {
  const auto found = std::find_if(kPolicies.begin(), kPolicies.end(),
                                  [&](const SimAiPolicy& each) { return each.name == name; });
  return found == kPolicies.end() ? nullptr : &*found;
}

std::string policy_names() {
  std::vector<std::string_view> names;
  for (const SimAiPolicy& policy : kPolicies) {
    names.push_back(policy.name);
  }
  return fmt::format("a policy: {}", fmt::join(names, ", "));
}

class SimAiReader {
 public:
  explicit SimAiReader(const ImportedFile& file) : file_(file), rest_(file.text) {}

  SimAiText read() {
    text_.name = file_.name;
    read_header();
    if (!next_line()) {
      fail("", "the number of layers", "the end of the file");
    }
    const std::int64_t count = number(0, "layers", kMaxLayers);
    if (words_.size() > 1) {
      fail("layers", "one number", in_quotes(words_[1]));
    }
    while (next_line()) {
      if (static_cast<std::int64_t>(text_.layers.size()) == count) {
        fail("", fmt::format("the end of the file after {} layers", count), in_quotes(words_[0]));
      }
      read_layer();
    }
    if (static_cast<std::int64_t>(text_.layers.size()) < count) {
      fail("", fmt::format("{} layers", count), std::to_string(text_.layers.size()));
    }
    return std::move(text_);
  }

 private:
  [[noreturn]] void fail(std::string_view field, std::string_view expected,
                         std::string_view found) const {
    fail_imported(fmt::format("{}:{}", file_.name, line_), field, expected, found);
  }

  // The next one that is not empty.
  bool next_line() {
    words_.clear();
    while (!rest_.empty() && words_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      ++line_;
      words_ = imported_words(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
    }
    return !words_.empty();
  }

  [[nodiscard]] std::int64_t number(std::size_t index, std::string_view field,
                                    std::int64_t max) const {
    const std::string expected = fmt::format("a number from 0 to {}", max);
    if (index >= words_.size()) {
      fail(field, expected, "the end of the line");
    }
    const std::optional<std::int64_t> value = imported_number(words_[index], max);
    if (!value) {
      fail(field, expected, in_quotes(words_[index]));
    }
    return *value;
  }

  void read_header() {
    SimAiHeader& header = text_.header;
    const bool has_line = next_line();
    header.policy = has_line ? policy_of(words_[0]) : nullptr;
    if (header.policy == nullptr) {
      fail("", policy_names(), has_line ? in_quotes(words_[0]) : "the end of the file");
    }
    for (std::size_t at = 1; at < words_.size();) {
      at = read_parameter(at);
    }
    const bool is_transformer = header.policy->order == SimAiOrder::Transformer;
    if (is_transformer && !header.values.contains("model_parallel_NPU_group")) {
      fail("", "model_parallel_NPU_group", "none");
    }
    if (header.policy->order == SimAiOrder::Recommender && !header.values.contains(kBottom)) {
      fail("", "the number of the last bottom layer", "none");
    }
    if (header.policy->name != "HYBRID_TRANSFORMER_FWD_IN_BCKWD" &&
        !(header.checkpoints.empty() && header.initiators.empty())) {
      fail("", fmt::format("no checkpoints with {}", header.policy->name), "some");
    }
  }

  // Returns the index of the next word.
  std::size_t read_parameter(std::size_t at) {
    SimAiHeader& header = text_.header;
    std::string_view key = words_[at++];
    key = key.substr(0, key.size() - (key.back() == ':' ? 1 : 0));
    if (key == "checkpoints" || key == "checkpoint_initiates") {
      auto& list = key == "checkpoints" ? header.checkpoints : header.initiators;
      const std::int64_t count = number(at++, key, kMaxLayers);
      for (std::int64_t index = 0; index < count; ++index) {
        list.push_back(number(at++, key, kMaxLayers));
      }
      return at;
    }
    const bool is_recommender = header.policy->order == SimAiOrder::Recommender;
    if (is_recommender && imported_number(key)) {
      key = kBottom;  // ASTRA-sim writes the number alone.
      --at;
    }
    constexpr std::array<std::string_view, 8> kKeys{
        "model_parallel_NPU_group", "ep", "pp", "vpp", "ga", "all_gpus", "pp_comm", kBottom};
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end() ||
        (key == kBottom && !is_recommender)) {
      fail("", fmt::format("{}, checkpoints or checkpoint_initiates", fmt::join(kKeys, ", ")),
           in_quotes(key));
    }
    const bool may_be_zero = key == "pp_comm" || key == kBottom;
    const std::int64_t value = number(at++, key, key == "pp_comm" ? kMaxImportedBytes : kMaxRanks);
    if (value == 0 && !may_be_zero) {
      fail(key, "at least 1", "0");
    }
    if (!header.values.emplace(key, value).second) {
      fail(key, "it once", "it again");
    }
    return at;
  }

  void read_layer() {
    const bool is_customized = text_.header.policy->name == "HYBRID_CUSTOMIZED";
    const std::size_t fields = kFields + (is_customized ? 1 : 0);
    if (words_.size() != fields) {
      fail(words_[0], fmt::format("{} fields", fields), std::to_string(words_.size()));
    }
    if (words_[1] != "-1") {
      fail(words_[0], "-1 as what it depends on: layers run in their order", in_quotes(words_[1]));
    }
    const bool is_embedding =
        text_.header.policy->order == SimAiOrder::Recommender && text_.layers.empty();
    const SimAiPolicy* policy = is_customized ? policy_of(words_[kFields]) : text_.header.policy;
    if (policy == nullptr) {
      fail(words_[0], policy_names(), in_quotes(words_[kFields]));
    }
    const auto& groups = is_embedding ? kExchanges : policy->groups;
    SimAiLayer layer{.name = std::string(words_[0]), .times = {}, .calls = {}, .update = {}};
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      const std::size_t first = 2 + 3 * pass;
      layer.times[pass] = time(first, kPassNames[pass]);
      layer.calls[pass] = read_call(first + 1, kPassNames[pass], groups[pass]);
    }
    layer.update = time(kFields - 1, "update");
    text_.layers.push_back(std::move(layer));
  }

  SimTime time(std::size_t index, std::string_view field) {
    const std::int64_t count = number(index, field, std::numeric_limits<std::int64_t>::max());
    return times_.add(count, nanoseconds(1), fmt::format("{}:{}", file_.name, line_), field);
  }

  [[nodiscard]] SimAiCall read_call(std::size_t index, std::string_view pass,
                                    std::optional<Group> group) const {
    const std::string_view word = words_[index];
    SimAiCall call{.size = Bytes(number(index + 1, pass, kMaxImportedBytes))};
    if (word == "NONE") {
      if (call.size != Bytes()) {
        fail(pass, "0 bytes of NONE", std::to_string(call.size.count()));
      }
      return call;
    }
    if (!group) {
      fail(pass, "NONE, as ASTRA-sim sends nothing there with this policy", in_quotes(word));
    }
    struct Name {
      std::string_view text;
      Operation operation;
    };
    constexpr std::array<Name, 5> kNames{{{"ALLREDUCE", Operation::AllReduce},
                                          {"ALLGATHER", Operation::AllGather},
                                          {"REDUCESCATTER", Operation::ReduceScatter},
                                          {"ALLTOALL", Operation::AllToAll},
                                          {"BROADCAST", Operation::Broadcast}}};
    for (const Name& name : kNames) {
      if (!word.starts_with(name.text)) {
        continue;
      }
      const std::string_view suffix = word.substr(name.text.size());
      call.operation = name.operation;
      if (suffix.empty()) {
        call.group = *group;
        return call;
      }
      if (suffix == "_EP" || suffix == "_DP_EP") {
        call.group = suffix == "_EP" ? Group::Expert : Group::DataOfExperts;
        return call;
      }
    }
    fail(pass,
         "NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST, alone or with _EP "
         "or _DP_EP",
         in_quotes(word));
  }

  static constexpr std::string_view kBottom = "DLRM_LAST_BOTTOM_LAYER";

  const ImportedFile& file_;
  std::string_view rest_;
  int line_ = 0;
  std::vector<std::string_view> words_;
  ImportedTimes times_;
  SimAiText text_;
};

}  // namespace

void SimAiText::fail(std::string_view field, std::string_view expected,
                     std::string_view found) const {
  fail_imported(name + ":1", field, expected, found);
}

SimAiText read_simai_text(const ImportedFile& file) {
  return SimAiReader(file).read();
}

}  // namespace trainyard
