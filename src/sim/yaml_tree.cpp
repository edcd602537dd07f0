// SPDX-License-Identifier: Apache-2.0
// yaml-cpp scans and parses; its events build the tree. yaml-cpp checks nothing of what the header
// promises, so the limits are enforced here, in this order:
//
//   1. before parsing, on the bytes: size, encoding, control characters (yaml-cpp stops at a 0x04
//      as if the file ended there), and the brackets of flow collections. yaml-cpp queues a whole
//      flow collection as tokens before its first event, about 200 bytes of memory for each byte of
//      "[[[[", so that its events come too late to stop it;
//   2. on each event: depth, number of values, plain keys, keys given twice, tags, aliases.
//   Stopping
//      at depth 64 also bounds the recursion of yaml-cpp, which recurses once for each collection.
#include "sim/yaml_tree.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "sim/printable.h"

namespace trainyard {

namespace {

// Open brackets before parsing, counted without regard to quotes and comments and therefore with
// room to spare; the exact limit is checked on the events.
constexpr std::size_t kMaxOpenBrackets = 1000;
// Characters that make tokens; each value of a flow collection comes with one or two.
constexpr std::string_view kIndicators = "[{,:?&*!";
constexpr std::size_t kMaxIndicators = 3 * YamlTree::kMaxValues;

constexpr std::string_view kTooDeep = "expected at most 64 levels of nesting, found more";
constexpr std::string_view kTooMany = "expected at most 1000000 values, found more";

// --- Checks on the bytes ---------------------------------------------------------------------

Place place_of(const YamlTree& tree, std::string_view text, std::size_t offset,
               std::size_t origin) {
  if (tree.file_name(origin).empty()) {
    return {.origin = origin};
  }
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0.
  return {origin, static_cast<int>(line), static_cast<int>(offset - line_start + 1)};
}

// The length of the UTF-8 sequence at the front of `text`; 0 if there is none. Table 3-7 of the
// Unicode standard: neither overlong forms, nor surrogates, nor anything above U+10FFFF.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xBF; };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return continues(1) ? 2 : 0;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool too_large = lead == 0xF4 && byte(1) > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

std::string byte_text(char letter) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(letter);
  return std::string("0x") + kDigits[byte >> 4] + kDigits[byte & 0xF];
}

bool is_forbidden_control(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return (byte < 0x20 && letter != '\t' && letter != '\n' && letter != '\r') || byte == 0x7F;
}

void check_characters(const YamlTree& tree, std::string_view text, std::size_t origin) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < text.size(); i += length) {
    length = utf8_length(text.substr(i, 4));
    if (length == 0) {
      tree.fail(place_of(tree, text, i, origin), "",
                "expected UTF-8 text, found the byte " + byte_text(text[i]));
    }
    if (is_forbidden_control(text[i])) {
      tree.fail(place_of(tree, text, i, origin), "",
                "expected text, found the control character " + byte_text(text[i]));
    }
  }
}

void check_flow(const YamlTree& tree, std::string_view text, std::size_t origin) {
  std::size_t open = 0;
  std::size_t indicators = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '[' || letter == '{') {
      ++open;
    } else if ((letter == ']' || letter == '}') && open > 0) {
      --open;
    }
    indicators += kIndicators.find(letter) != std::string_view::npos ? 1 : 0;
    if (open > kMaxOpenBrackets) {
      tree.fail(place_of(tree, text, i, origin), "", kTooDeep);
    }
    if (indicators > kMaxIndicators) {
      tree.fail(place_of(tree, text, i, origin), "", kTooMany);
    }
  }
}

// --- Events to tree --------------------------------------------------------------------------

// The size of a value with everything below it.
struct Extent {
  std::size_t values = 1;
  std::size_t depth = 0;  // Levels of collections.
};

class TreeBuilder : public YAML::EventHandler {
 public:
  // Builds the tree of `text`, which must outlive it.
  TreeBuilder(YamlTree& tree, std::string_view text, std::size_t origin)
      : tree_(tree), text_(text), origin_(origin) {}

  [[nodiscard]] YamlValue* root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) {
      tree_.fail(place(mark), "", "expected one document, found more text after its end");
    }
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) {
      fail(mark, "expected a key, found nothing");
    }
    count(mark, 1);
    // The mark of a value that is not there is that of whatever comes next: its key says more.
    const bool misplaced = !open_.empty() && open_.back().key &&
                           (mark.is_null() || open_.back().key->place.line != mark.line + 1);
    const Place where = misplaced ? open_.back().key->place : null_place(mark);
    finish_value(tree_.add({.place = where}), Extent(), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    check_tag(mark, tag);
    if (!expects_key()) {
      count(mark, 1);
      finish_value(tree_.add({.kind = YamlValue::Kind::Scalar, .place = place(mark), .text = text}),
                   Extent(), anchor);
      return;
    }
    if (anchor != YAML::NullAnchor) {
      fail(mark, "expected a plain key, found an anchor");
    }
    if (tag == "?" && text == "<<") {
      fail(mark, "expected a plain key, found the merge key \"<<\"");
    }
    take_key(mark, text);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) {
      fail(mark, "expected a plain key, found an alias");
    }
    const auto target = anchors_.find(anchor);
    if (target == anchors_.end()) {
      fail(mark, "expected an alias of a finished value, found one within the value itself");
    }
    const auto& [value, extent] = target->second;
    check_depth(mark, extent.depth);
    count(mark, extent.values);
    finish_value(copy(*value), extent, YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_collection(mark, tag, anchor, YamlValue::Kind::Sequence);
  }
  void OnSequenceEnd() override { close_collection(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_collection(mark, tag, anchor, YamlValue::Kind::Mapping);
  }
  void OnMapEnd() override { close_collection(); }

 private:
  struct Key {
    std::string text;
    Place place;
  };
  // A collection whose end has not come yet.
  struct Open {
    YamlValue* value;
    YAML::anchor_t anchor;
    Extent extent;
    std::optional<Key> key = {};            // In a mapping, the key whose value comes next.
    std::map<std::string, int> lines = {};  // Lines of the keys so far.
  };

  [[nodiscard]] Place place(const YAML::Mark& mark) const {
    if (tree_.file_name(origin_).empty() || mark.is_null()) {
      return {.origin = origin_};
    }
    return {origin_, mark.line + 1, mark.column + 1};
  }

  // An item that is not there has the mark of what comes next, too, which begins a line: its dash
  // is in the last line before that says anything.
  [[nodiscard]] Place null_place(const YAML::Mark& mark) const {
    Place where = place(mark);
    const bool is_item = !open_.empty() && open_.back().value->kind == YamlValue::Kind::Sequence;
    std::size_t end = std::min(static_cast<std::size_t>(mark.pos), text_.size());
    for (; is_item && where.line > 0; --where.line) {
      const std::size_t start = text_.substr(0, end).rfind('\n') + 1;
      const std::string_view line = text_.substr(start, end - start);
      const std::string_view said = line.substr(0, line.find('#'));
      if (said.find_first_not_of(" \t\r") != std::string_view::npos) {
        const std::size_t dash = said.rfind('-');
        where.column = static_cast<int>(dash + 1);
        return where.line > mark.line || dash == std::string_view::npos ? place(mark) : where;
      }
      end = start - 1;
    }
    return place(mark);
  }

  [[noreturn]] void fail(const YAML::Mark& mark, std::string_view message) const {
    tree_.fail(place(mark), path(), message);
  }

  // The path of the value that comes next.
  [[nodiscard]] std::string path() const {
    std::string result;
    for (const Open& open : open_) {
      if (open.key) {
        result = join_path(result, open.key->text);
      } else if (open.value->kind == YamlValue::Kind::Sequence) {
        result = join_path(result, open.value->items.size());
      }
    }
    return result;
  }

  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().value->kind == YamlValue::Kind::Mapping &&
           !open_.back().key;
  }

  // "?" is yaml-cpp's mark of a plain value, "!" that of a quoted one.
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(mark, "expected a value without a tag, found the tag " + in_quotes(tag));
    }
  }

  void check_depth(const YAML::Mark& mark, std::size_t depth) const {
    if (open_.size() + depth > YamlTree::kMaxDepth) {
      tree_.fail(place(mark), "", kTooDeep);
    }
  }

  void count(const YAML::Mark& mark, std::size_t values) {
    values_ += values;
    if (values_ > YamlTree::kMaxValues) {
      tree_.fail(place(mark), "", kTooMany);
    }
  }

  void take_key(const YAML::Mark& mark, const std::string& text) {
    Open& open = open_.back();
    const Place where = place(mark);
    const auto [first, is_new] = open.lines.emplace(text, where.line);
    if (!is_new) {
      const std::string line =
          first->second > 0 ? ", first on line " + std::to_string(first->second) : "";
      fail(mark, "expected each key once, found " + in_quotes(text) + " again" + line);
    }
    open.key = Key{text, where};
  }

  void open_collection(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YamlValue::Kind kind) {
    check_tag(mark, tag);
    check_depth(mark, 1);
    count(mark, 1);
    YamlValue* value = tree_.add({.kind = kind, .place = place(mark)});
    open_.push_back({.value = value, .anchor = anchor, .extent = {.values = 1, .depth = 1}});
  }

  void close_collection() {
    const Open closed = std::move(open_.back());
    open_.pop_back();
    // Not when it opened: yaml-cpp takes a bracket that is never closed for a key, and the missing
    // bracket is the better error.
    if (expects_key()) {
      const bool is_map = closed.value->kind == YamlValue::Kind::Mapping;
      tree_.fail(
          closed.value->place, path(),
          std::string("expected a plain key, found ") + (is_map ? "a mapping" : "a sequence"));
    }
    finish_value(closed.value, closed.extent, closed.anchor);
  }

  // Hands a complete value to the collection around it.
  void finish_value(YamlValue* value, Extent extent, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      anchors_[anchor] = {value, extent};
    }
    if (open_.empty()) {
      root_ = value;
      return;
    }
    Open& open = open_.back();
    open.extent.values += extent.values;
    open.extent.depth = std::max(open.extent.depth, extent.depth + 1);
    if (open.key) {
      open.value->entries.push_back({std::move(open.key->text), open.key->place, value});
      open.key.reset();
    } else {
      open.value->items.push_back(value);
    }
  }

  YamlValue* copy(const YamlValue& original) {
    YamlValue* value = tree_.add(original);
    for (YamlValue*& item : value->items) {
      item = copy(*item);
    }
    for (YamlEntry& entry : value->entries) {
      entry.value = copy(*entry.value);
    }
    return value;
  }

  YamlTree& tree_;
  std::string_view text_;
  std::size_t origin_;
  bool started_ = false;
  std::size_t values_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::pair<YamlValue*, Extent>> anchors_;
  YamlValue* root_ = nullptr;
};

// The place is not beyond the end of `text`, to which `parse` adds a comment.
Place syntax_error_place(const YamlTree& tree, const YAML::Exception& error, std::string_view text,
                         std::size_t origin) {
  if (tree.file_name(origin).empty() || error.mark.is_null()) {
    return {.origin = origin};
  }
  if (error.mark.pos > 0 && static_cast<std::size_t>(error.mark.pos) > text.size()) {
    return place_of(tree, text, text.size(), origin);
  }
  return {origin, error.mark.line + 1, error.mark.column + 1};
}

// Returns the error of yaml-cpp, with the cause that it does not see.
std::string syntax_error(const YAML::Exception& error, std::string_view text) {
  std::string message =
      "not valid YAML: " +
      (error.msg == YAML::ErrorMsg::EOF_IN_SCALAR ? "a quote is left open" : escaped(error.msg));
  if (error.mark.is_null() || error.mark.pos < 0) {
    return message;
  }
  const std::size_t position = std::min(static_cast<std::size_t>(error.mark.pos), text.size());
  const std::size_t line_start = text.substr(0, position).rfind('\n') + 1;
  const std::string_view line = text.substr(line_start);
  const std::string_view blanks = line.substr(0, line.find_first_not_of(" \t"));
  return blanks.find('\t') != std::string_view::npos
             ? message + "; a line must be indented by spaces, found a tab"
             : message;
}

}  // namespace

YamlEntry* YamlValue::find(std::string_view key) {
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [&](const YamlEntry& other) { return other.key == key; });
  return entry == entries.end() ? nullptr : &*entry;
}

bool YamlValue::asked(std::string_view key) const {
  return all_keys_asked || std::find(asked_keys.begin(), asked_keys.end(), key) != asked_keys.end();
}

std::size_t YamlTree::add_origin(std::string description) {
  origins_.push_back({std::move(description), false});
  return origins_.size() - 1;
}

std::size_t YamlTree::add_file(std::string name) {
  origins_.push_back({std::move(name), true});
  return origins_.size() - 1;
}

std::string_view YamlTree::file_name(std::size_t origin) const {
  const Origin& found = origins_[origin];
  return found.is_file ? std::string_view(found.name) : std::string_view();
}

YamlValue* YamlTree::add(YamlValue value) {
  values_.push_back(std::move(value));
  return &values_.back();
}

YamlValue* YamlTree::parse(const std::string& text, std::size_t origin) {
  if (text.size() > kMaxBytes) {
    fail({.origin = origin}, "", "expected at most 16 MiB, found more");
  }
  check_characters(*this, text, origin);
  check_flow(*this, text, origin);
  // yaml-cpp ends an open quote silently at the end of the file if that is the start of a line; a
  // comment there makes it see the quote.
  const std::string whole = origins_[origin].is_file ? text + "\n#" : text;
  TreeBuilder builder(*this, whole, origin);
  try {
    std::istringstream stream(whole);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const Place place = syntax_error_place(*this, error, text, origin);
    fail(place, "", syntax_error(error, text));
  }
  return builder.root() != nullptr ? builder.root() : add({.place = {.origin = origin}});
}

std::string YamlTree::text_of(Place place) const {
  std::string text = escaped(origins_[place.origin].name);
  if (place.line > 0) {
    text += ':' + std::to_string(place.line) + ':' + std::to_string(place.column);
  }
  return text;
}

void YamlTree::fail(Place place, std::string_view path, std::string_view message) const {
  const std::string key = path.empty() ? "" : ": " + std::string(path);
  throw ConfigError(text_of(place) + key + ": " + std::string(message));
}

std::string join_path(std::string_view parent, std::string_view key) {
  return parent.empty() ? shortened(key) : std::string(parent) + '.' + shortened(key);
}

std::string join_path(std::string_view parent, std::size_t index) {
  return std::string(parent) + '[' + std::to_string(index) + ']';
}

}  // namespace trainyard
