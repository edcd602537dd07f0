// SPDX-License-Identifier: Apache-2.0
// The strict reader. Each mapping remembers the keys it was asked for, present or not; `finish`
// walks the tree and stops at the first key that is not among them.
#include "sim/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/numbers.h"
#include "sim/printable.h"
#include "sim/text_file.h"
#include "sim/yaml_tree.h"

namespace trainyard {

namespace {

// Lists of known keys longer than this say less than they cost.
constexpr std::size_t kMaxListed = 12;

// Words of other tools for a key, each between blanks. An unknown key that is one of them is
// answered with the key, where the mapping has that.
struct Synonyms {
  std::string_view key;
  std::string_view words;
};
constexpr auto kSynonyms =
    std::to_array<Synonyms>({{"tensor", " tp tensor_parallel tensor_model_parallel_size "},
                             {"sequence_parallel", " sp "},
                             {"context", " cp context_parallel context_parallel_size "},
                             {"pipeline", " pp pipeline_parallel pipeline_model_parallel_size "},
                             {"chunks", " vpp virtual_stages "},
                             {"data", " dp data_parallel replicas "},
                             {"expert", " ep expert_parallel expert_model_parallel_size "},
                             {"expert_tensor", " etp "},
                             {"zero_stage", " zero fsdp "},
                             {"recompute", " activation_checkpointing checkpointing "},
                             {"micro", " micro_batch micro_batch_size mbs "},
                             {"global", " global_batch global_batch_size gbs "},
                             {"sequence", " seq seq_length sequence_length "},
                             {"precision", " dtype "},
                             {"plan", " parallel parallelism "},
                             {"hidden", " hidden_size d_model "},
                             {"vocabulary", " vocab vocab_size "},
                             {"experts", " moe "},
                             {"active", " topk top_k "}});

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other
// (optimal string alignment distance), without regard to case.
std::size_t edit_distance(std::string_view first, std::string_view second) {
  const std::string a = lower_case(first);
  const std::string b = lower_case(second);
  std::vector<std::size_t> before;
  std::vector<std::size_t> above(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = std::move(above);
    above = std::move(row);
  }
  return above.back();
}

// Returns how many edits still look like a typo: none between "tp" and "pp", one in "gpu" or
// "ring".
std::size_t typo_limit(std::size_t length) {
  if (length <= 2) {
    return 0;
  }
  return length <= 4 ? 1 : 2;
}

std::string comma_list(std::span<const std::string> words) {
  std::string result;
  for (const std::string& word : words) {
    result += (result.empty() ? "" : ", ") + word;
  }
  return result;
}

[[noreturn]] void fail_unknown(const YamlTree& tree, const YamlValue& mapping,
                               const YamlEntry& entry, const std::string& path) {
  std::string hint = did_you_mean(entry.key, mapping.asked_keys);
  const std::string word = " " + lower_case(entry.key) + " ";
  for (const Synonyms& one : kSynonyms) {
    if (hint.empty() && one.words.find(word) != std::string_view::npos && mapping.asked(one.key)) {
      hint = "; did you mean \"" + std::string(one.key) + "\"?";
    }
  }
  if (hint.empty() && !mapping.asked_keys.empty() && mapping.asked_keys.size() <= kMaxListed) {
    hint = "; known keys: " + comma_list(mapping.asked_keys);
  }
  tree.fail(entry.place, path, "unknown key " + in_quotes(entry.key) + hint);
}

// Recursion is at most as deep as YamlTree::kMaxDepth.
void check_all_read(const YamlTree& tree, const YamlValue& value, const std::string& path) {
  if (value.skipped) {
    return;
  }
  for (const YamlEntry& entry : value.entries) {
    if (!value.asked(entry.key)) {
      fail_unknown(tree, value, entry, path);
    }
    check_all_read(tree, *entry.value, join_path(path, entry.key));
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    check_all_read(tree, *value.items[i], join_path(path, i));
  }
}

std::string number_text(double number) {
  char buffer[32];
  const auto result = std::to_chars(std::begin(buffer), std::end(buffer), number);
  return std::string(std::begin(buffer), result.ptr);
}

// " from 1 to 64", " of at least 1", " of at most 64" or nothing.
template <typename Number, typename Format>
std::string range_text(Number min, Number max, Format format) {
  const bool has_min = min > std::numeric_limits<Number>::lowest();
  const bool has_max = max < std::numeric_limits<Number>::max();
  if (has_min && has_max) {
    return " from " + format(min) + " to " + format(max);
  }
  if (has_min) {
    return " of at least " + format(min);
  }
  return has_max ? " of at most " + format(max) : "";
}

// "010" is 8 to some YAML readers and 10 to others.
bool has_leading_zero(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  return digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> elements;
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    elements.emplace_back(path.substr(start, end - start));
    start = end + 1;
  }
  return elements;
}

// The place for the value called `key` in `parent`, made if it is not there. A name becomes the
// base of a mapping.
YamlValue*& child_slot(YamlTree& tree, YamlValue& parent, const std::string& key, Place place) {
  if (parent.kind == YamlValue::Kind::Null) {
    parent.kind = YamlValue::Kind::Mapping;
  }
  if (parent.kind == YamlValue::Kind::Scalar) {
    YamlValue* const base = tree.add(parent);
    parent = {.kind = YamlValue::Kind::Mapping, .place = place};
    parent.entries.push_back({"base", place, base});
  }
  if (parent.kind == YamlValue::Kind::Sequence) {
    const std::optional<std::size_t> index = parse_number<std::size_t>(key);
    if (!index || *index >= parent.items.size()) {
      tree.fail(place, "",
                "expected an index below " + std::to_string(parent.items.size()) + ", found " +
                    in_quotes(key));
    }
    return parent.items[*index];
  }
  if (YamlEntry* entry = parent.find(key)) {
    return entry->value;
  }
  parent.entries.push_back({key, place, tree.add({.place = place})});
  return parent.entries.back().value;
}

void leave_out(YamlTree& tree, const std::vector<std::string>& elements, Place place) {
  YamlValue* parent = tree.root;
  for (std::size_t depth = 0; depth + 1 < elements.size(); ++depth) {
    parent = child_slot(tree, *parent, elements[depth], place);
  }
  const auto is_meant = [&](const YamlEntry& entry) { return entry.key == elements.back(); };
  if (std::erase_if(parent->entries, is_meant) == 0) {
    tree.fail(place, "", "expected a key that is there, found none");
  }
}

std::size_t depth_of(const YamlValue& value) {
  std::size_t below = 0;
  for (const YamlValue* item : value.items) {
    below = std::max(below, 1 + depth_of(*item));
  }
  for (const YamlEntry& entry : value.entries) {
    below = std::max(below, 1 + depth_of(*entry.value));
  }
  return below;
}

}  // namespace

std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string> candidates) {
  std::optional<std::string> nearest;
  std::size_t min = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : candidates) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    const std::size_t limit = typo_limit(longer);
    if (longer - shorter > limit) {
      continue;  // Also keeps huge words out of edit_distance.
    }
    const std::size_t distance = edit_distance(word, candidate);
    if (distance <= limit && distance < min) {
      min = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         std::string_view otherwise) {
  const std::optional<std::string> nearest = nearest_word(word, candidates);
  return nearest ? "; did you mean \"" + *nearest + "\"?" : std::string(otherwise);
}

// --- ConfigNode --------------------------------------------------------------------------------

ConfigNode::ConfigNode(const YamlTree& tree, YamlValue& value, std::string path)
    : tree_(&tree), value_(&value), path_(std::move(path)) {}

bool ConfigNode::is_map() const {
  return value_->kind == YamlValue::Kind::Mapping;
}

bool ConfigNode::is_sequence() const {
  return value_->kind == YamlValue::Kind::Sequence;
}

bool ConfigNode::is_scalar() const {
  return value_->kind == YamlValue::Kind::Scalar;
}

bool ConfigNode::is_null() const {
  return value_->kind == YamlValue::Kind::Null;
}

ConfigNode ConfigNode::required(std::string_view key) const {
  if (std::optional<ConfigNode> value = optional(key)) {
    return *value;
  }
  fail_missing(key);
}

std::size_t ConfigNode::choice_or_first(std::string_view key,
                                        std::span<const std::string_view> choices) const {
  const auto found = optional(key);
  return found ? found->as_choice(choices) : 0;
}

std::optional<ConfigNode> ConfigNode::optional(std::string_view key) const {
  if (!is_map()) {
    fail("a mapping", found());
  }
  if (!value_->asked(key)) {
    value_->asked_keys.emplace_back(key);
  }
  const YamlEntry* entry = value_->find(key);
  if (entry == nullptr) {
    return std::nullopt;
  }
  return ConfigNode(*tree_, *entry->value, join_path(path_, key));
}

// The near key may also be one that is read later, and right.
void ConfigNode::fail_missing(std::string_view key) const {
  const std::vector<std::string> wanted = {std::string(key)};
  for (const YamlEntry& entry : value_->entries) {
    if (!value_->asked(entry.key) && nearest_word(entry.key, wanted)) {
      tree_->fail(entry.place, path_,
                  "missing key " + in_quotes(key) + "; is " + in_quotes(entry.key) +
                      " a misspelling of it?");
    }
  }
  fail("missing key " + in_quotes(key));
}

const std::string& ConfigNode::scalar(std::string_view expected) const {
  if (!is_scalar()) {
    fail(expected, found());
  }
  return value_->text;
}

std::string ConfigNode::as_string() const {
  return scalar("text");
}

bool ConfigNode::as_bool() const {
  constexpr std::string_view kExpected = "true or false";
  const std::string& text = scalar(kExpected);
  if (text != "true" && text != "false") {
    fail(kExpected, found());
  }
  return text == "true";
}

std::int64_t ConfigNode::as_integer(std::int64_t min, std::int64_t max) const {
  const std::string expected = "a whole number" + range_text(min, max, [](std::int64_t number) {
                                 return std::to_string(number);
                               });
  const std::string& text = scalar(expected);
  const std::optional<std::int64_t> number = parse_number<std::int64_t>(text);
  if (!number || *number < min || *number > max || has_leading_zero(text)) {
    fail(expected, found());
  }
  return *number;
}

double ConfigNode::as_number(double min, double max) const {
  const std::string expected = "a number" + range_text(min, max, number_text);
  const std::optional<double> number = parse_number<double>(scalar(expected));
  if (!number || !std::isfinite(*number) || *number < min || *number > max) {
    fail(expected, found());
  }
  return *number;
}

template <typename Parse>
auto ConfigNode::quantity(Parse parse, std::string_view expected) const {
  const std::string& text = scalar(expected);
  try {
    return parse(text);
  } catch (const UnitError& error) {
    fail(error.what());
  }
}

SimTime ConfigNode::as_time() const {
  return quantity(parse_time, "a time such as \"130 ns\"");
}

Bytes ConfigNode::as_bytes() const {
  return quantity(parse_bytes, "a size such as \"25 MiB\"");
}

Bandwidth ConfigNode::as_bandwidth() const {
  const Bandwidth rate = quantity(parse_bandwidth, "a rate such as \"400 Gb/s\"");
  if (rate == Bandwidth()) {
    fail("a positive rate such as \"400 Gb/s\"", found());
  }
  return rate;
}

FlopRate ConfigNode::as_flop_rate() const {
  const FlopRate rate = quantity(parse_flop_rate, "a rate such as \"989 TFLOP/s\"");
  if (rate == FlopRate()) {
    fail("a positive rate such as \"989 TFLOP/s\"", found());
  }
  return rate;
}

std::size_t ConfigNode::as_choice(std::span<const std::string_view> choices) const {
  const std::vector<std::string> words(choices.begin(), choices.end());
  const std::string expected = "one of " + comma_list(words);
  const std::string& text = scalar(expected);
  const auto choice = std::find(words.begin(), words.end(), text);
  if (choice == words.end()) {
    fail(expected, found() + did_you_mean(text, words));
  }
  return static_cast<std::size_t>(choice - words.begin());
}

std::vector<ConfigNode> ConfigNode::items() const {
  if (!is_sequence()) {
    fail("a sequence", found());
  }
  std::vector<ConfigNode> nodes;
  for (std::size_t i = 0; i < value_->items.size(); ++i) {
    nodes.push_back(ConfigNode(*tree_, *value_->items[i], join_path(path_, i)));
  }
  return nodes;
}

std::vector<std::pair<std::string, ConfigNode>> ConfigNode::entries() const {
  if (!is_map()) {
    fail("a mapping", found());
  }
  value_->all_keys_asked = true;
  std::vector<std::pair<std::string, ConfigNode>> nodes;
  for (const YamlEntry& entry : value_->entries) {
    nodes.emplace_back(entry.key, ConfigNode(*tree_, *entry.value, join_path(path_, entry.key)));
  }
  return nodes;
}

void ConfigNode::skip() const {
  value_->skipped = true;
}

void ConfigNode::fail(std::string_view expected, std::string_view found) const {
  fail("expected " + std::string(expected) + ", found " + std::string(found));
}

void ConfigNode::fail(std::string_view message) const {
  tree_->fail(value_->place, path_, message);
}

std::string ConfigNode::place() const {
  return tree_->text_of(value_->place);
}

std::string ConfigNode::found() const {
  switch (value_->kind) {
    case YamlValue::Kind::Null:
      return "nothing";
    case YamlValue::Kind::Scalar:
      return in_quotes(value_->text);
    case YamlValue::Kind::Sequence:
      return "a sequence";
    case YamlValue::Kind::Mapping:
      return "a mapping";
  }
  CHECK(false, "a YAML value of no kind");
  return "";
}

// --- ConfigDocument ----------------------------------------------------------------------------

ConfigDocument::ConfigDocument(const std::string& text, std::string name)
    : name_(std::move(name)), tree_(std::make_unique<YamlTree>(name_)) {
  tree_->root = tree_->parse(text, 0);
  if (tree_->root->kind == YamlValue::Kind::Null) {
    tree_->fail({}, "", "expected a mapping, found nothing");
  }
}

ConfigDocument::ConfigDocument(ConfigDocument&&) noexcept = default;
ConfigDocument& ConfigDocument::operator=(ConfigDocument&&) noexcept = default;
ConfigDocument::~ConfigDocument() = default;

ConfigDocument ConfigDocument::load(const std::filesystem::path& file) {
  const std::string name = file.string();
  return ConfigDocument(read_whole_file(file, name, YamlTree::kMaxBytes), name);
}

ConfigDocument ConfigDocument::parse(const std::string& text, std::string name) {
  return ConfigDocument(text, std::move(name));
}

ConfigNode ConfigDocument::root() {
  return ConfigNode(*tree_, *tree_->root, "");
}

void ConfigDocument::set(std::string_view path, std::string_view value, std::string origin) {
  if (origin.empty()) {
    origin = "--set " + shortened(path) + '=' + shortened(value);
  }
  const Place place = {.origin = tree_->add_origin(std::move(origin))};
  const std::vector<std::string> elements = split_path(path);
  if (std::find(elements.begin(), elements.end(), "") != elements.end()) {
    tree_->fail(place, "", "expected a path such as \"server.nics\", found " + in_quotes(path));
  }
  if (value == kAbsent) {
    leave_out(*tree_, elements, place);
    return;
  }
  YamlValue* replacement = tree_->parse(std::string(value), place.origin);
  if (elements.size() + depth_of(*replacement) > YamlTree::kMaxDepth) {
    tree_->fail(place, "", "expected at most 64 levels of nesting, found more");
  }
  YamlValue** slot = &tree_->root;
  for (const std::string& element : elements) {
    slot = &child_slot(*tree_, **slot, element, place);
  }
  *slot = replacement;
}

void ConfigDocument::finish() const {
  check_all_read(*tree_, *tree_->root, "");
}

}  // namespace trainyard
