// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/kineto_json.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "parallelism/workload/imported_text.h"
#include "sim/config_error.h"
#include "sim/json_complaint.h"

namespace trainyard {
namespace {

// Goes through the text of a file by its brackets and quotes, which is several times as fast as
// parsing it, and finds where each event begins and ends. What it cannot follow is no JSON.
class KinetoScan {
 public:
  using Node = nlohmann::json;

  KinetoScan(const ImportedFile& file, KinetoEventSink& sink)
      : file_(file), text_(file.text), sink_(sink) {}

  Node read() {
    constexpr std::string_view kMark = "\xef\xbb\xbf";  // Which may stand before UTF-8.
    at_ = text_.starts_with(kMark) ? kMark.size() : 0;
    if (next() != '{') {
      return parsed(0, text_.size());
    }
    Node root = Node::object();
    ++at_;
    members([&](std::string_view key) {
      const std::size_t start = at_;
      if (key == "traceEvents" && next() == '[') {
        root["traceEvents"] = Node::array();
        read_events(root["traceEvents"]);
        return;
      }
      const char first = next();
      pass_value();
      const bool is_passed_over = (first == '{' || first == '[') && key != "distributedInfo";
      root[std::string(key)] = !is_passed_over ? parsed(start, at_)
                               : first == '{'  ? Node::object()
                                               : Node::array();
    });
    if (next() != kEnd) {
      fail();
    }
    if (sink_.wants_later()) {
      for (const Range& event : later_) {
        sink_.take(parsed(event.start, event.end), event.index);
      }
    }
    return root;
  }

 private:
  static constexpr char kEnd = '\0';

  struct Range {
    std::size_t start = 0;
    std::size_t end = 0;
    std::size_t index = 0;
  };

  // The next letter that is no blank.
  char next() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : kEnd;
  }

  // The whole parser says what is wrong, and where.
  [[noreturn]] void fail() const {
    static_cast<void>(parsed(0, text_.size()));
    throw ConfigError(file_.name + ": expected JSON, found something else");
  }

  [[nodiscard]] Node parsed(std::size_t start, std::size_t end) const {
    try {
      return Node::parse(text_.substr(start, end - start));
    } catch (const Node::exception& problem) {
      if (start > 0 || end < text_.size()) {
        fail();
      }
      fail_json(file_.name, text_, problem);
    }
  }

  // A text without its quotes, as it is written.
  std::string_view quoted() {
    if (next() != '"') {
      fail();
    }
    const std::size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    if (at_ >= text_.size()) {
      fail();
    }
    return text_.substr(start, at_++ - start);
  }

  // The members of an object that is open, up to its end.
  template <typename Member>
  void members(const Member& member) {
    if (next() == '}') {
      ++at_;
      return;
    }
    while (true) {
      const std::string_view key = quoted();
      if (next() != ':') {
        fail();
      }
      ++at_;
      member(key);
      const char last = next();
      ++at_;
      if (last == '}') {
        return;
      }
      if (last != ',') {
        fail();
      }
    }
  }

  void pass_value() {
    const char first = next();
    if (first == '"') {
      static_cast<void>(quoted());
      return;
    }
    if (first == '{' || first == '[') {
      pass_levels();
      return;
    }
    const std::size_t start = at_;
    while (at_ < text_.size() &&
           std::string_view(",]} \n\r\t").find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    if (at_ == start) {
      fail();
    }
  }

  void pass_levels() {
    constexpr std::int64_t kLevelsAround = 3;  // The file, its events and an event.
    std::int64_t levels = 0;
    do {
      if (at_ >= text_.size()) {
        fail();
      }
      switch (text_[at_]) {
        case '"':
          static_cast<void>(quoted());
          continue;
        case '{':
        case '[':
          if (++levels > kMaxJsonLevels - kLevelsAround && !is_checked_) {
            check_json_depth(file_.name, text_);
            is_checked_ = true;
          }
          break;
        case '}':
        case ']':
          --levels;
          break;
        default:
          break;
      }
      ++at_;
    } while (levels > 0);
  }

  void read_events(Node& others) {
    ++at_;
    std::size_t index = 0;
    if (next() == ']') {
      ++at_;
      return;
    }
    while (true) {
      const std::size_t start = at_;
      if (next() == '{') {
        read_event(index++);
      } else {
        pass_value();
        others.push_back(parsed(start, at_));
      }
      const char last = next();
      ++at_;
      if (last == ']') {
        return;
      }
      if (last != ',') {
        fail();
      }
    }
  }

  void read_event(std::size_t index) {
    const std::size_t start = at_++;
    KinetoHead head;
    members([&](std::string_view key) {
      std::optional<std::string_view>* const field = key == "ph"     ? &head.phase
                                                     : key == "cat"  ? &head.category
                                                     : key == "name" ? &head.name
                                                                     : nullptr;
      if (field == nullptr || next() != '"') {
        pass_value();
      } else {
        *field = quoted();
      }
    });
    switch (sink_.wanted(head)) {
      case KinetoWanted::No:
        break;
      case KinetoWanted::Now:
        sink_.take(parsed(start, at_), index);
        break;
      case KinetoWanted::Later:
        later_.push_back({.start = start, .end = at_, .index = index});
        break;
    }
  }

  const ImportedFile& file_;
  std::string_view text_;
  KinetoEventSink& sink_;
  std::size_t at_ = 0;
  bool is_checked_ = false;  // The levels of the whole text were counted.
  std::vector<Range> later_;
};

}  // namespace

nlohmann::json read_kineto_json(const ImportedFile& file, KinetoEventSink& sink) {
  return KinetoScan(file, sink).read();
}

std::string KinetoFields::place() const {
  return event_ == kNoEvent ? fmt::format("{}: {}", file_, name_)
                            : fmt::format("{}: event {} ({})", file_, event_, shortened(name_));
}

void KinetoFields::fail(std::string_view field, std::string_view expected) const {
  const auto found = object_.find(field);
  const std::string text =
      found == object_.end()
          ? "none"
          : shortened(found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  fail_imported(place(), field, expected, text);
}

std::string KinetoFields::text(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end() || !found->is_string()) {
    fail(key, "a text");
  }
  return found->get<std::string>();
}

std::string KinetoFields::text_or_none(const char* key) const {
  return has(key) ? text(key) : std::string();
}

std::int64_t KinetoFields::integer(const char* key, std::int64_t max) const {
  const auto found = object_.find(key);
  std::optional<std::int64_t> value;
  if (found != object_.end() && found->is_number_unsigned() &&
      found->get<std::uint64_t>() <= static_cast<std::uint64_t>(max)) {
    value = found->get<std::int64_t>();
  } else if (found != object_.end() && found->is_string()) {
    value = imported_number(found->get<std::string>(), max);
  }
  if (!value) {
    fail(key, fmt::format("a whole number from 0 to {}", max));
  }
  return *value;
}

std::int64_t KinetoFields::nanoseconds_of(const char* key, std::int64_t max) const {
  const auto found = object_.find(key);
  double value = -1.0;
  if (found != object_.end() && found->is_number()) {
    value = found->get<double>();
  }
  if (!(value >= 0.0 && value <= static_cast<double>(max))) {
    fail(key, fmt::format("microseconds from 0 to {:g}", static_cast<double>(max)));
  }
  const double whole = std::floor(value);
  return static_cast<std::int64_t>(whole) * 1'000 + std::llround((value - whole) * 1e3);
}

std::string_view kineto_text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string()
             ? std::string_view(found->get_ref<const std::string&>())
             : std::string_view();
}

}  // namespace trainyard
