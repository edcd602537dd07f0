// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/goal_schedule.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxCpus = 255;  // A byte in the binary form.
constexpr std::int64_t kMaxGoalTag = 0xffff'fffe;

// A line in words, of which ':', '{' and '}' are words of their own.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view blank_free : imported_words(line)) {
    std::string_view rest = blank_free;
    while (!rest.empty()) {
      const std::size_t mark = rest.find_first_of(":{}");
      const std::size_t end = mark == 0 ? 1 : std::min(mark, rest.size());
      words.push_back(rest.substr(0, end));
      rest.remove_prefix(end);
    }
  }
  return words;
}

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
    std::string_view rest = file_.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      ++line_;
      read_line(without_comments(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (rank_) {
      fail("\"}\" after rank " + std::to_string(*rank_), "the end of the file");
    }
    if (in_comment_) {
      fail("\"*/\"", "the end of the file");
    }
    if (!workload_) {
      fail("num_ranks", "the end of the file");
    }
    for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
      if (!blocks_[rank]) {
        fail(fmt::format("a block for each of {} ranks", blocks_.size()),
             fmt::format("none for rank {}", rank));
      }
    }
    if (placed_ > 0) {
      workload_->left_out.push_back(fmt::format(
          "cpu or nic of {} messages: the routing of the cluster chooses NICs", placed_));
    }
    return std::move(*workload_);
  }

 private:
  struct Requirement {
    std::string after;
    std::string before;
    bool at_start = false;
    int line = 0;
  };

  [[nodiscard]] std::string place() const { return fmt::format("{}:{}", file_.name, line_); }
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    fail_imported(place(), "", expected, found);
  }

  // Comments of a line end with it; others may go on.
  std::string without_comments(std::string_view line) {
    std::string text;
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
    if (at_ == words_.size()) {
      fail(expected, "the end of the line");
    }
    return words_[at_++];
  }
  void take(std::string_view word) {
    const std::string_view found = next(fmt::format("\"{}\"", word));
    if (found != word) {
      fail(fmt::format("\"{}\"", word), in_quotes(found));
    }
  }
  std::int64_t number(std::string_view what, std::int64_t max) {
    const std::string expected = fmt::format("{}, from 0 to {}", what, max);
    const std::string_view word = next(expected);
    const std::optional<std::int64_t> value = imported_number(word, max);
    if (!value) {
      fail(expected, in_quotes(word));
    }
    return *value;
  }

  void read_line(const std::string& text) {
    words_ = words_of(text);
    at_ = 0;
    while (at_ < words_.size()) {
      const std::string_view word = words_[at_];
      if (word == "num_ranks") {
        read_ranks();
      } else if (!workload_) {
        fail("num_ranks", in_quotes(word));
      } else if (!rank_) {
        open_block();
      } else if (word == "}") {
        ++at_;
        close_block();
      } else {
        read_statement();
      }
    }
  }

  void read_ranks() {
    if (workload_) {
      fail("num_ranks once", "it again");
    }
    ++at_;
    const std::int64_t ranks = number("a number of ranks", 1'000'000'000);
    if (ranks < 1 || ranks > gpus_) {
      fail(fmt::format("ranks from 1 to the {} GPUs of the cluster", gpus_), std::to_string(ranks));
    }
    workload_.emplace(ImportedWorkload{.format = ImportedFormat::Goal,
                                       .graph = OperationGraph(static_cast<int>(ranks))});
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
    streams_.clear();
    labels_.clear();
    requirements_.clear();
  }

  int peer(std::string_view what) {
    return static_cast<int>(number(what, static_cast<std::int64_t>(blocks_.size()) - 1));
  }

  void read_statement() {
    const std::string_view word = next("a statement");
    if (word == "calc" || word == "send" || word == "recv") {
      add_operation(word, "");
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
      add_operation(kind, word);
    } else if (verb == "requires" || verb == "irequires") {
      const std::string_view before = next("a label");
      requirements_.push_back({.after = std::string(word),
                               .before = std::string(before),
                               .at_start = verb == "irequires",
                               .line = line_});
    } else {
      fail("\":\", requires or irequires", in_quotes(verb));
    }
    if (at_ < words_.size() && words_[at_] != "}") {
      fail("the end of the line", in_quotes(words_[at_]));
    }
  }

  void add_operation(std::string_view kind, std::string_view label) {
    const std::string name = label.empty() ? fmt::format("{} of line {}", kind, line_)
                                           : fmt::format("{}, line {}", label, line_);
    const OperationId id = kind == "calc" ? add_calc(name) : add_message(kind == "send", name);
    if (!label.empty() && !labels_.emplace(label, id).second) {
      fail("a label that is new", in_quotes(label));
    }
  }

  OperationId add_calc(const std::string& name) {
    const std::int64_t count = number("nanoseconds", std::numeric_limits<std::int64_t>::max());
    const SimTime time = times_.add(count, nanoseconds(1), place(), "calc");
    std::int64_t cpu = 0;
    if (at_ < words_.size() && words_[at_] == "cpu") {
      ++at_;
      cpu = number("a cpu", kMaxCpus);
    }
    return workload_->graph.add_compute(stream(fmt::format("cpu {}", cpu), StreamOrder::Ready),
                                        name, StepPart::Linear, time);
  }

  StreamId stream(const std::string& name, StreamOrder order) {
    const auto [entry, is_new] = streams_.try_emplace(name);
    if (is_new) {
      entry->second = workload_->graph.add_stream(*rank_, name, order);
    }
    return entry->second;
  }

  OperationId add_message(bool sends, const std::string& name) {
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
    while (at_ < words_.size() && words_[at_] != "}") {
      const std::string_view key = words_[at_++];
      if (key == "tag") {
        check_wildcard("a tag");
        message.tag = static_cast<std::uint32_t>(number("a tag", kMaxGoalTag));
      } else if (key == "cpu" || key == "nic") {
        (void)number(fmt::format("a {}", key), kMaxCpus);
        is_placed = true;
      } else {
        fail("tag, cpu, nic or the end of the line", in_quotes(key));
      }
    }
    placed_ += is_placed ? 1 : 0;
    OperationGraph& graph = workload_->graph;
    const StreamId on = stream(sends ? "send" : "receive", StreamOrder::Free);
    return sends ? graph.add_send(on, name, StepPart::Pipeline, message)
                 : graph.add_receive(on, name, StepPart::Pipeline, message);
  }

  void check_wildcard(std::string_view what) const {
    if (at_ < words_.size() && words_[at_] == "-1") {
      fail(fmt::format("{}, as which messages meet must be known before the run", what),
           "-1, which represents any");
    }
  }

  [[nodiscard]] OperationId operation_of(const std::string& label, int line) const {
    const auto found = labels_.find(label);
    if (found == labels_.end()) {
      fail_imported(fmt::format("{}:{}", file_.name, line), "",
                    fmt::format("a label of rank {}", *rank_), in_quotes(label));
    }
    return found->second;
  }

  // An operation whose start others wait for gets an operation of no time before it, which waits
  // for all that it waits for.
  void close_block() {
    OperationGraph& graph = workload_->graph;
    std::map<OperationId, OperationId> starts;
    for (const Requirement& each : requirements_) {
      const OperationId before = operation_of(each.before, each.line);
      if (each.at_start && !starts.contains(before)) {
        const OperationId start =
            graph.add_host(stream("starts", StreamOrder::Free), "start of " + graph.name_of(before),
                           StepPart::Host, SimTime());
        graph.add_dependency(start, before);
        starts.emplace(before, start);
      }
    }
    for (const Requirement& each : requirements_) {
      const OperationId before = operation_of(each.before, each.line);
      const OperationId after = operation_of(each.after, each.line);
      const auto start = starts.find(after);
      graph.add_dependency(each.at_start ? starts.at(before) : before,
                           start != starts.end() ? start->second : after);
    }
    rank_.reset();
  }

  const ImportedFile& file_;
  int gpus_;
  int line_ = 0;
  bool in_comment_ = false;
  std::vector<std::string_view> words_;  // Words of the line.
  std::size_t at_ = 0;
  std::optional<ImportedWorkload> workload_;
  std::vector<bool> blocks_;                 // Indexed by rank: whether it has one.
  std::optional<int> rank_;                  // Rank of the block.
  std::map<std::string, StreamId> streams_;  // Streams of the rank.
  std::map<std::string, OperationId, std::less<>> labels_;
  std::vector<Requirement> requirements_;
  ImportedTimes times_;
  int placed_ = 0;
};

}  // namespace

ImportedWorkload read_goal(const ImportedFile& file, int gpus) {
  return GoalReader(file, gpus).read();
}

}  // namespace trainyard
