// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/message_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "collectives/schedule/listed_schedule.h"
#include "collectives/schedule/semantics.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kMaxListedChunks = 65'536;
constexpr std::uint32_t kMaxListedChannels = 64;  // As many as --channels.
constexpr std::uint32_t kMaxListedFlows = 4'096;  // A rank has no more over all channels.
constexpr std::int64_t kMaxListedStep = 1'000'000;

std::vector<std::uint32_t> read_listed_chunks(const ConfigNode& node) {
  std::vector<std::uint32_t> chunks;
  for (const ConfigNode& item : node.is_scalar() ? std::vector{node} : node.items()) {
    chunks.push_back(static_cast<std::uint32_t>(item.as_integer(0, kMaxListedChunks - 1)));
  }
  return chunks;
}

void listed_message_fields(Fields& fields, ListedMessage& message) {
  fields.required("step", message.step, Whole{0, kMaxListedStep},
                  "When: in each step a rank first sends, then receives.");
  fields.required("from", message.source, Whole{0, kMaxProvedRanks - 1}, "The rank that sends.");
  fields.required("to", message.target, Whole{0, kMaxProvedRanks - 1}, "The rank that receives.");
  fields.required("chunks", message.chunks,
                  Via{Either{Whole{0, kMaxListedChunks - 1}, List{Whole{0, kMaxListedChunks - 1}}},
                      read_listed_chunks},
                  "What it carries: a chunk or several.");
  fields.optional("reduce", message.reduces, Flag{},
                  "Whether it is added to what the receiver holds: no, it takes its place.");
  fields.optional("channel", message.channel, Whole{0, kMaxListedChannels - 1},
                  "Channels of a rank do not wait for each other: 0.");
  fields.optional("flow", message.flow, Whole{0, kMaxListedFlows - 1},
                  "Which connection of the sender on the channel, each to one rank; by it ECMP "
                  "chooses a path. If missing, they are counted as their receivers come.");
}

// How many parts the operation has: chunk c belongs to one that c modulo this number says.
std::uint32_t parts_of_listed(const MessageFile& file) {
  const bool is_exchange = file.operation == Operation::AllToAll;
  const bool has_parts = row_of(file.operation).splits || file.operation == Operation::SendReceive;
  return is_exchange ? file.ranks * file.ranks : has_parts ? file.ranks : 1;
}

class MessageReader {
 public:
  explicit MessageReader(ConfigDocument& document) : root_(document.root()) {
    read_fields(root_, file_, message_file_fields);
    document.finish();
    nodes_ = root_.required("messages").items();
  }

  std::unique_ptr<Schedule> build() {
    check_parts();
    for (std::size_t index = 0; index < file_.messages.size(); ++index) {
      check(file_.messages[index], nodes_[index]);
    }
    order_.resize(file_.messages.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, {},
                             [&](std::size_t index) { return file_.messages[index].step; });
    choose_flows();
    check_turns();
    list_chunks();
    add_steps();
    auto schedule = std::make_unique<ListedSchedule>(shape(), std::move(lanes_), connections(),
                                                     std::move(listing_));
    prove(*schedule);
    return schedule;
  }

 private:
  // A lane's messages of one step are sent, then received.
  struct Turn {
    std::uint32_t step;
    bool receives;
    std::size_t message;
  };

  void check_parts() const {
    const std::uint32_t parts = parts_of_listed(file_);
    if (file_.chunks % parts != 0) {
      root_.required("chunks").fail(fmt::format("a multiple of {} for {} of {} ranks", parts,
                                                to_string(file_.operation), file_.ranks),
                                    std::to_string(file_.chunks));
    }
    if (file_.root >= file_.ranks) {
      root_.required("root").fail(fmt::format("a rank from 0 to {}", file_.ranks - 1),
                                  std::to_string(file_.root));
    }
  }

  [[nodiscard]] static std::string place(const ListedMessage& message) {
    return fmt::format("step {}, from {} to {}", message.step, message.source, message.target);
  }

  void check(const ListedMessage& message, const ConfigNode& node) const {
    for (const auto& [key, rank] :
         {std::pair{"from", message.source}, std::pair{"to", message.target}}) {
      if (rank >= file_.ranks) {
        node.required(key).fail(fmt::format("a rank from 0 to {}", file_.ranks - 1),
                                std::to_string(rank));
      }
    }
    if (message.source == message.target) {
      node.required("to").fail(fmt::format("another rank than {}", message.source),
                               std::to_string(message.target));
    }
    std::vector<std::uint32_t> sorted = message.chunks;
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (sorted.empty() || twice != sorted.end()) {
      node.required("chunks").fail("chunks, each once",
                                   sorted.empty() ? "none" : fmt::format("{} twice", *twice));
    }
    if (sorted.back() >= file_.chunks) {
      node.required("chunks").fail(fmt::format("chunks from 0 to {}", file_.chunks - 1),
                                   std::to_string(sorted.back()));
    }
  }

  void choose_flows() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> known;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;
    for (const std::size_t index : order_) {
      ListedMessage& message = file_.messages[index];
      channels_ = std::max(channels_, message.channel + 1);
      if (!message.flow) {
        std::uint32_t& count = counts[{message.channel, message.source}];
        const auto [number, is_new] =
            known.try_emplace({message.channel, message.source, message.target}, count);
        count += is_new ? 1 : 0;
        message.flow = number->second;
      }
      const auto [target, is_new] =
          targets_.try_emplace({message.channel, *message.flow, message.source}, message.target);
      if (target->second != message.target) {
        nodes_[index].fail(fmt::format("{}: flow {} of rank {} on channel {} leads to rank {}",
                                       place(message), *message.flow, message.source,
                                       message.channel, target->second));
      }
      flows_ = std::max(flows_, *message.flow + 1);
    }
    if (channels_ * flows_ > kMaxListedFlows) {
      root_.required("messages")
          .fail(fmt::format("at most {} flows over all channels of a rank", kMaxListedFlows),
                fmt::format("{} channels of {}", channels_, flows_));
    }
  }

  // With rendezvous a lane sends once in a step: its next message waits until the last one has
  // arrived, which two ranks that send twice to each other before they receive would do for ever.
  void check_turns() const {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t> senders;
    for (const std::size_t index : order_) {
      const ListedMessage& message = file_.messages[index];
      const auto [other, is_new] =
          senders.try_emplace({message.channel, message.source, message.step}, index);
      if (file_.rendezvous && !is_new) {
        nodes_[index].fail(
            fmt::format("{}: with rendezvous a rank sends one message in a step of "
                        "a channel, and sends messages[{}] as well",
                        place(message), other->second));
      }
    }
  }

  // Chunks that follow each other are a range of the chunks themselves; others are listed behind.
  void list_chunks() {
    std::map<std::vector<std::uint32_t>, ChunkRange> known;
    listing_.resize(file_.chunks);
    std::iota(listing_.begin(), listing_.end(), 0U);
    for (const ListedMessage& message : file_.messages) {
      const std::vector<std::uint32_t>& chunks = message.chunks;
      const auto breaks = [](std::uint32_t one, std::uint32_t next) { return next != one + 1; };
      const auto count = static_cast<std::uint32_t>(chunks.size());
      ChunkRange range{.first = chunks.front(), .count = count};
      if (std::ranges::adjacent_find(chunks, breaks) != chunks.end()) {
        range.first = static_cast<std::uint32_t>(listing_.size());
        const auto [entry, is_new] = known.try_emplace(chunks, range);
        range = entry->second;
        if (is_new) {
          listing_.insert(listing_.end(), chunks.begin(), chunks.end());
        }
      }
      ranges_.push_back(range);
    }
  }

  [[nodiscard]] std::uint32_t connection_of(const ListedMessage& message) const {
    return (message.channel * flows_ + *message.flow) * file_.ranks + message.source;
  }

  void add_steps() {
    std::vector<std::vector<Turn>> turns(std::size_t{channels_} * file_.ranks);
    for (const bool receives : {false, true}) {
      for (const std::size_t index : order_) {
        const ListedMessage& message = file_.messages[index];
        const std::uint32_t rank = receives ? message.target : message.source;
        turns[message.channel * file_.ranks + rank].push_back(
            {.step = message.step, .receives = receives, .message = index});
      }
    }
    for (std::size_t lane = 0; lane < turns.size(); ++lane) {
      std::ranges::stable_sort(turns[lane], {}, &Turn::step);
      lanes_.push_back(
          {.rank = RankId(static_cast<std::uint32_t>(lane) % file_.ranks), .steps = {}});
      for (const Turn& turn : turns[lane]) {
        const ListedMessage& message = file_.messages[turn.message];
        lanes_.back().steps.push_back({.kind = !turn.receives    ? StepKind::Send
                                               : message.reduces ? StepKind::Reduce
                                                                 : StepKind::Receive,
                                       .connection = connection_of(message),
                                       .chunks = ranges_[turn.message]});
      }
    }
    turns_ = std::move(turns);
  }

  // A flow of a rank that nobody uses leads to the rank itself.
  [[nodiscard]] std::vector<ScheduleConnection> connections() const {
    std::vector<ScheduleConnection> made;
    for (std::uint32_t index = 0; index < channels_ * flows_ * file_.ranks; ++index) {
      const std::uint32_t source = index % file_.ranks;
      const std::uint32_t number = index / file_.ranks;
      const auto target = targets_.find({number / flows_, number % flows_, source});
      made.push_back({.source = RankId(source),
                      .target = RankId(target == targets_.end() ? source : target->second)});
    }
    return made;
  }

  [[nodiscard]] ScheduleShape shape() const {
    return {.operation = file_.operation,
            .algorithm = file_.name,
            .ranks = static_cast<int>(file_.ranks),
            .channels = static_cast<int>(channels_),
            .root = RankId(file_.root),
            .rendezvous = file_.rendezvous,
            .chunk_count = file_.chunks,
            .entries = static_cast<std::uint32_t>(listing_.size()),
            .lanes = channels_ * file_.ranks,
            .connections = channels_ * flows_ * file_.ranks,
            .channel_connections = flows_ * file_.ranks};
  }

  void prove(const Schedule& schedule) const {
    const std::optional<Violation> violation = find_violation(schedule);
    if (!violation) {
      return;
    }
    if (violation->lane) {
      const Turn& turn = turns_[violation->lane->value()][violation->step];
      const std::string& text = violation->text;
      nodes_[turn.message].fail(fmt::format("{}: rank {} {}", place(file_.messages[turn.message]),
                                            schedule.lane_rank(*violation->lane).value(),
                                            text.substr(text.find(": ") + 2)));
    }
    // A wrong result shows at the last message that brings the chunk.
    std::optional<std::size_t> last;
    for (const std::size_t index : order_) {
      const ListedMessage& message = file_.messages[index];
      const bool brings =
          std::ranges::find(message.chunks, violation->chunk) != message.chunks.end();
      last = message.target == violation->rank->value() && brings ? index : last;
    }
    if (last) {
      nodes_[*last].fail(fmt::format("{}: the last message that brings it: {}",
                                     place(file_.messages[*last]), violation->text));
    }
    root_.required("messages").fail(violation->text + ", which no message brings there");
  }

  ConfigNode root_;
  MessageFile file_;
  std::vector<ConfigNode> nodes_;   // One per message.
  std::vector<std::size_t> order_;  // Messages by their steps.
  std::uint32_t channels_ = 1;
  std::uint32_t flows_ = 1;
  // The rank that a channel, a flow and a rank lead to.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> targets_;
  std::vector<std::uint32_t> listing_;
  std::vector<ChunkRange> ranges_;        // One per message.
  std::vector<std::vector<Turn>> turns_;  // One list per lane.
  std::vector<StoredSchedule::Lane> lanes_;
};

}  // namespace

void message_file_fields(Fields& fields, MessageFile& file) {
  static const auto kWords = [] {
    std::array<std::string_view, kOperations.size()> words;
    std::ranges::transform(kOperations, words.begin(),
                           [](Operation operation) { return to_string(operation); });
    return words;
  }();
  const auto operation = [](const ConfigNode& node) {
    const Operation read = kOperations.at(node.as_choice(kWords));
    if (read == Operation::AllToAllV) {
      node.fail("an operation without a matrix", node.found());
    }
    return read;
  };
  fields.required("operation", file.operation, Via{Choice{kWords}, operation},
                  "What the algorithm does.");
  fields.required("name", file.name, Text{}, "Name in results.");
  fields.required("ranks", file.ranks, Whole{1, kMaxProvedRanks}, "Number of ranks.");
  fields.optional("root", file.root, Whole{0, kMaxProvedRanks - 1},
                  "Root of broadcast, reduce, scatter and gather: 0.");
  fields.required("chunks", file.chunks, Whole{1, kMaxListedChunks},
                  "How many chunks the data are cut into. For operations with a part for each rank "
                  "a multiple of the ranks: chunk c is that of rank c modulo their number.");
  fields.optional("rendezvous", file.rendezvous, Flag{},
                  "Whether a message starts only when its receiver waits for it and the last one "
                  "of its sender on the channel has arrived: no.");
  fields.required("messages", file.messages, List{Group{listed_message_fields}}, "All messages.");
}

std::unique_ptr<Schedule> read_message_file(const std::string& text, const std::string& name) {
  ConfigDocument document = ConfigDocument::parse(text, name);
  return MessageReader(document).build();
}

}  // namespace trainyard
