// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/goal_schedule.h"

#include <spdlog/fmt/fmt.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallelism/graph/name_table.h"
#include "parallelism/trace_import/goal_binary.h"
#include "parallelism/trace_import/goal_builder.h"
#include "parallelism/workload/imported_lines.h"
#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

// The words of a line, one after the other; ':', '{' and '}' are words of their own.
class LineWords {
 public:
  explicit LineWords(std::string_view line) : rest_(line) { advance(); }

  // The present word; empty at the end of the line.
  [[nodiscard]] std::string_view peek() const { return word_; }
  void advance() {
    const char* at = rest_.data();
    const char* const end = at + rest_.size();
    while (at != end && (*at == ' ' || *at == '\t' || *at == '\r')) {
      ++at;
    }
    const char* const begin = at;
    while (at != end && !ends_word(*at)) {
      ++at;
    }
    if (at == begin && at != end) {
      ++at;
    }
    word_ = {begin, static_cast<std::size_t>(at - begin)};
    rest_ = {at, static_cast<std::size_t>(end - at)};
  }

 private:
  static bool ends_word(char c) {
    return c == ' ' || c == ':' || c == '\t' || c == '\r' || c == '{' || c == '}';
  }

  std::string_view rest_;
  std::string_view word_;
};

bool is_label(std::string_view word) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !word.empty() && is_letter(word.front()) &&
         std::all_of(word.begin(), word.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

class GoalReader {
 public:
  GoalReader(const ImportedFile& file, int gpus) : file_(file), gpus_(gpus) {}

  ImportedWorkload read() {
    ImportedLines lines(file_);
    while (const std::optional<std::string_view> line = lines.next()) {
      ++line_;
      const bool is_plain = !in_comment_ && line->find('/') == std::string_view::npos;
      read_line(is_plain ? *line : without_comments(*line));
    }
    if (rank_) {
      fail("\"}\" after rank " + std::to_string(*rank_), "the end of the file");
    }
    if (in_comment_) {
      fail("\"*/\"", "the end of the file");
    }
    if (!builder_) {
      fail("num_ranks", "the end of the file");
    }
    for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
      if (!blocks_[rank]) {
        fail(fmt::format("a block for each of {} ranks", blocks_.size()),
             fmt::format("none for rank {}", rank));
      }
    }
    return std::move(*builder_).finish();
  }

 private:
  struct Requirement {
    std::uint32_t after;  // Labels.
    std::uint32_t before;
    bool at_start;
    int line;
  };
  // A label, which blocks of several ranks may have.
  struct Label {
    std::optional<NameId> name;  // "l1, line ", as operations are called.
    std::optional<int> rank;     // The last rank with it, and its operation there.
    OperationId operation;
  };

  [[nodiscard]] std::string place() const { return fmt::format("{}:{}", file_.name, line_); }
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    fail_imported(place(), "", expected, found);
  }

  // Comments of a line end with it; others may go on.
  std::string_view without_comments(std::string_view line) {
    std::string& text = uncommented_;
    text.clear();
    while (!line.empty()) {
      if (in_comment_) {
        const std::size_t end = line.find("*/");
        in_comment_ = end == std::string_view::npos;
        line.remove_prefix(in_comment_ ? line.size() : end + 2);
        text += ' ';
        continue;
      }
      const std::size_t slash = std::min(line.find("//"), line.find("/*"));
      text += line.substr(0, slash);
      if (slash >= line.size() || line[slash + 1] == '/') {
        break;
      }
      in_comment_ = true;
      line.remove_prefix(slash + 2);
    }
    return text;
  }

  // The next word of the line, which must be there.
  std::string_view next(std::string_view expected) {
    const std::string_view word = words_.peek();
    if (word.empty()) {
      fail(expected, "the end of the line");
    }
    words_.advance();
    return word;
  }
  void take(std::string_view word) {
    if (const std::string_view found = words_.peek(); found != word) {
      fail(fmt::format("\"{}\"", word), found.empty() ? "the end of the line" : in_quotes(found));
    }
    words_.advance();
  }
  [[nodiscard]] bool is_statement_over() const {
    return words_.peek().empty() || words_.peek() == "}";
  }
  std::int64_t number(std::string_view what, std::int64_t max) {
    const std::string_view word = words_.peek();
    const std::optional<std::int64_t> value = imported_number(word, max);
    if (!value) {
      fail(fmt::format("{}, from 0 to {}", what, max),
           word.empty() ? "the end of the line" : in_quotes(word));
    }
    words_.advance();
    return *value;
  }

  void read_line(std::string_view text) {
    words_ = LineWords(text);
    while (!words_.peek().empty()) {
      const std::string_view word = words_.peek();
      if (word == "num_ranks") {
        read_ranks();
      } else if (!builder_) {
        fail("num_ranks", in_quotes(word));
      } else if (!rank_) {
        open_block();
      } else if (word == "}") {
        words_.advance();
        close_block();
      } else {
        read_statement();
      }
    }
  }

  void read_ranks() {
    if (builder_) {
      fail("num_ranks once", "it again");
    }
    words_.advance();
    const std::int64_t ranks = number("a number of ranks", 1'000'000'000);
    if (ranks < 1 || ranks > gpus_) {
      fail(fmt::format("ranks from 1 to the {} GPUs of the cluster", gpus_), std::to_string(ranks));
    }
    builder_.emplace(static_cast<int>(ranks));
    blocks_.resize(static_cast<std::size_t>(ranks), false);
  }

  void open_block() {
    take("rank");
    rank_ = peer("the rank of a block");
    if (blocks_[static_cast<std::size_t>(*rank_)]) {
      fail("one block for each rank", fmt::format("another one for rank {}", *rank_));
    }
    blocks_[static_cast<std::size_t>(*rank_)] = true;
    take("{");
    builder_->open_rank(*rank_);
    requirements_.clear();
  }

  int peer(std::string_view what) {
    return static_cast<int>(number(what, static_cast<std::int64_t>(blocks_.size()) - 1));
  }

  void read_statement() {
    const std::string_view word = next("a statement");
    if (word == "calc" || word == "send" || word == "recv") {
      add_operation(word, line_name(word == "calc"   ? calc_name_
                                    : word == "send" ? send_name_
                                                     : receive_name_,
                                    word, " of line "));
      return;
    }
    if (!is_label(word)) {
      fail("calc, send, recv, a label or \"}\"", in_quotes(word));
    }
    const std::string_view verb = next("\":\", requires or irequires");
    if (verb == ":") {
      const std::string_view kind = next("calc, send or recv");
      if (kind != "calc" && kind != "send" && kind != "recv") {
        fail("calc, send or recv", in_quotes(kind));
      }
      const std::uint32_t label = label_of(word);
      const OperationId id = add_operation(kind, line_name(labels_[label].name, word, ", line "));
      if (labels_[label].rank == rank_) {
        fail("a label that is new", in_quotes(label_names_[label]));
      }
      labels_[label].rank = rank_;
      labels_[label].operation = id;
    } else if (verb == "requires" || verb == "irequires") {
      const std::string_view before = next("a label");
      requirements_.push_back({.after = label_of(word),
                               .before = label_of(before),
                               .at_start = verb == "irequires",
                               .line = line_});
    } else {
      fail("\":\", requires or irequires", in_quotes(verb));
    }
    if (!is_statement_over()) {
      fail("the end of the line", in_quotes(words_.peek()));
    }
  }

  std::uint32_t label_of(std::string_view word) {
    const std::uint32_t label = label_names_.add(word);
    if (label == labels_.size()) {
      labels_.emplace_back();
    }
    return label;
  }

  // The name of an operation of this line, whose text is made once.
  GraphName line_name(std::optional<NameId>& text, std::string_view word, std::string_view line) {
    if (!text) {
      text = builder_->add_name(std::string(word).append(line));
    }
    return {.text = *text, .number = static_cast<std::uint32_t>(line_)};
  }

  OperationId add_operation(std::string_view kind, GraphName name) {
    return kind == "calc" ? add_calc(name) : add_message(kind == "send", name);
  }

  OperationId add_calc(GraphName name) {
    const std::int64_t count = number("nanoseconds", std::numeric_limits<std::int64_t>::max());
    const SimTime time = times_.add(
        count, nanoseconds(1), [&] { return place(); }, "calc");
    int cpu = 0;
    if (words_.peek() == "cpu") {
      words_.advance();
      cpu = static_cast<int>(number("a cpu", kMaxGoalCpu));
    }
    return builder_->add_calc(cpu, name, time);
  }

  OperationId add_message(bool sends, GraphName name) {
    // The unit stands with the number or after it.
    const std::string_view word = next("a size such as 64b");
    const bool has_unit = word.back() == 'b';
    const std::optional<std::int64_t> size =
        imported_number(word.substr(0, word.size() - (has_unit ? 1 : 0)), kMaxImportedBytes);
    if (!size) {
      fail("a size such as 64b, of at most 1 TiB", in_quotes(word));
    }
    if (!has_unit) {
      take("b");
    }
    take(sends ? "to" : "from");
    check_wildcard("a rank");
    GraphMessage message{.peer = peer("a rank"), .size = Bytes(*size), .handover = Handover::Eager};
    if (message.peer == *rank_) {
      fail("another rank", fmt::format("rank {} itself", message.peer));
    }
    bool is_placed = false;
    while (!is_statement_over()) {
      const std::string_view key = next("a key");
      if (key == "tag") {
        check_wildcard("a tag");
        message.tag = static_cast<std::uint32_t>(number("a tag", kMaxGoalTag));
      } else if (key == "cpu" || key == "nic") {
        (void)number(key == "cpu" ? "a cpu" : "a nic", kMaxGoalCpu);
        is_placed = true;
      } else {
        fail("tag, cpu, nic or the end of the line", in_quotes(key));
      }
    }
    return builder_->add_message(sends, name, message, is_placed);
  }

  void check_wildcard(std::string_view what) const {
    if (words_.peek() == "-1") {
      fail(fmt::format("{}, as which messages meet must be known before the run", what),
           "-1, which represents any");
    }
  }

  [[nodiscard]] OperationId operation_of(std::uint32_t label, int line) const {
    if (labels_[label].rank != rank_) {
      fail_imported(fmt::format("{}:{}", file_.name, line), "",
                    fmt::format("a label of rank {}", *rank_), in_quotes(label_names_[label]));
    }
    return labels_[label].operation;
  }

  void close_block() {
    std::vector<GoalBuilder::Requirement> requirements;
    requirements.reserve(requirements_.size());
    for (const Requirement& each : requirements_) {
      requirements.push_back({.after = operation_of(each.after, each.line),
                              .before = operation_of(each.before, each.line),
                              .at_start = each.at_start});
    }
    builder_->close_rank(requirements);
    rank_.reset();
  }

  const ImportedFile& file_;
  int gpus_;
  int line_ = 0;
  bool in_comment_ = false;
  std::string uncommented_;          // A line that had comments.
  LineWords words_ = LineWords("");  // Words of the line.
  std::optional<GoalBuilder> builder_;
  std::vector<bool> blocks_;  // Indexed by rank: whether it has one.
  std::optional<int> rank_;   // Rank of the block.
  NameTable label_names_;
  std::vector<Label> labels_;              // Labels of all ranks, by number.
  std::vector<Requirement> requirements_;  // Requirements of the rank.
  // Names of operations without a label.
  std::optional<NameId> calc_name_;
  std::optional<NameId> send_name_;
  std::optional<NameId> receive_name_;
  ImportedTimes times_;
};

}  // namespace

ImportedWorkload read_goal(const ImportedFile& file, int gpus) {
  return is_goal_binary(file) ? read_goal_binary(file, gpus) : GoalReader(file, gpus).read();
}

}  // namespace trainyard
