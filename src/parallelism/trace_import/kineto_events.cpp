// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/kineto_events.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "parallelism/workload/imported_text.h"
#include "sim/json_complaint.h"

namespace trainyard {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxStream = std::int64_t{1} << 40;
// Limit of a duration, and of the time from the first to the last start: with all durations it fits
// in a SimTime.
constexpr std::int64_t kMaxMicroseconds = 4'000'000'000'000;
// Starts count from the epoch (1.7e15 today) or, since libkineto has ChromeTraceBaseTime, from the
// start of an interval of 7,889,238 s (up to 7.9e12). In nanoseconds this fits in 64 bits.
constexpr std::int64_t kMaxStart = 9'000'000'000'000'000;

constexpr std::array<KinetoCallName, 17> kCallNames{{
    {"allreduce", Operation::AllReduce, false},
    {"allreduce_coalesced", Operation::AllReduce, false},
    {"all_gather", Operation::AllGather, true},
    {"allgather", Operation::AllGather, true},
    {"_allgather_base", Operation::AllGather, true},
    {"allgather_into_tensor_coalesced", Operation::AllGather, true},
    {"reduce_scatter", Operation::ReduceScatter, false},
    {"_reduce_scatter_base", Operation::ReduceScatter, false},
    {"reduce_scatter_tensor_coalesced", Operation::ReduceScatter, false},
    {"broadcast", Operation::Broadcast, false},
    {"_broadcast_oop", Operation::Broadcast, false},
    {"reduce", Operation::Reduce, false},
    {"_reduce_oop", Operation::Reduce, false},
    {"all_to_all", Operation::AllToAll, false},
    {"all_to_allv", Operation::AllToAll, false},
    {"all_to_all_single", Operation::AllToAll, false},
    {"barrier", Operation::Barrier, false},
}};

struct TypeName {
  std::string_view text;
  std::int64_t bytes;
};
// c10/core/ScalarType.h.
constexpr std::array<TypeName, 14> kTypes{{{"Float", 4},
                                           {"Half", 2},
                                           {"BFloat16", 2},
                                           {"Double", 8},
                                           {"Byte", 1},
                                           {"Char", 1},
                                           {"Bool", 1},
                                           {"Short", 2},
                                           {"Int", 4},
                                           {"Long", 8},
                                           {"Float8_e4m3fn", 1},
                                           {"Float8_e5m2", 1},
                                           {"Float8_e4m3fnuz", 1},
                                           {"Float8_e5m2fnuz", 1}}};

bool is_work_of_gpu(std::string_view category) {
  constexpr std::array<std::string_view, 6> kCategories{"kernel", "gpu_memcpy", "gpu_memset",
                                                        "Kernel", "Memcpy",     "Memset"};
  return std::find(kCategories.begin(), kCategories.end(), category) != kCategories.end();
}

// "[0, 1, 2]". Nothing if it is empty, cut off or no list of numbers.
std::optional<std::vector<std::int64_t>> list_of(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return std::nullopt;
  }
  text = text.substr(1, text.size() - 2);
  std::vector<std::int64_t> list;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::vector<std::string_view> words = imported_words(text.substr(0, comma));
    const std::optional<std::int64_t> value =
        words.size() == 1 ? imported_number(words[0]) : std::nullopt;
    if (!value) {
      return std::nullopt;
    }
    list.push_back(*value);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list.empty() ? std::nullopt : std::optional(std::move(list));
}

// Fields of an object, with errors that name it.
class KinetoFields {
 public:
  KinetoFields(const json& object, std::string place) : object_(object), place_(std::move(place)) {}

  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

  [[noreturn]] void fail(std::string_view field, std::string_view expected) const {
    const auto found = object_.find(field);
    const std::string text =
        found == object_.end()
            ? "none"
            : shortened(found->dump(-1, ' ', false, json::error_handler_t::replace));
    fail_imported(place_, field, expected, text);
  }

  [[nodiscard]] std::string text(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_string()) {
      fail(key, "a text");
    }
    return found->get<std::string>();
  }
  [[nodiscard]] std::string text_or_none(const char* key) const {
    return has(key) ? text(key) : std::string();
  }
  // Some versions write numbers as texts.
  [[nodiscard]] std::int64_t integer(const char* key, std::int64_t max) const {
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
  // Whole microseconds and the rest apart: exact below 2^43 us, which starts since
  // ChromeTraceBaseTime are, and of whole microseconds. Starts since the epoch that have decimals
  // are known to a quarter of a microsecond, as a double holds no more of them.
  [[nodiscard]] std::int64_t nanoseconds_of(const char* key, std::int64_t max) const {
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

 private:
  const json& object_;
  std::string place_;
};

class KinetoReader {
 public:
  explicit KinetoReader(const ImportedFile& file) : file_(file) {}

  KinetoTrace read() {
    trace_.name = file_.name;
    check_json_depth(file_.name, file_.text);
    json root;
    try {
      root = json::parse(file_.text, [&](int depth, json::parse_event_t event, json& parsed) {
        return keep(depth, event, parsed);
      });
    } catch (const json::exception& problem) {
      fail_json(file_.name, file_.text, problem);
    }
    if (!root.is_object() || !root.contains("traceEvents")) {
      fail_imported(file_.name, "traceEvents", "a list of events", "none");
    }
    if (!root["traceEvents"].is_array() || !root["traceEvents"].empty()) {
      fail_imported(file_.name, "traceEvents", "a list of objects", "something else");
    }
    if (root.contains("distributedInfo")) {
      read_distribution(root["distributedInfo"]);
    }
    set_starts();
    std::stable_sort(trace_.events.begin(), trace_.events.end(),
                     [](const KinetoEvent& a, const KinetoEvent& b) { return a.start < b.start; });
    return std::move(trace_);
  }

 private:
  // Events are taken as they come and not kept as JSON: there are millions.
  bool keep(int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::key && depth == 1) {
      in_events_ = parsed == "traceEvents";
    }
    if (in_events_ && event == json::parse_event_t::object_end && depth == 2) {
      read_event(parsed);
      ++index_;
      return false;
    }
    return true;
  }

  void read_event(const json& object) {
    std::string name = object.contains("name") && object["name"].is_string()
                           ? object["name"].get<std::string>()
                           : std::string("no name");
    KinetoFields fields(object,
                        fmt::format("{}: event {} ({})", file_.name, index_, shortened(name)));
    const std::string phase = fields.text("ph");
    const std::string category = fields.text_or_none("cat");
    if (!is_work_of_gpu(category)) {
      ++trace_.left_out[phase == "X" && !category.empty() ? category : "no duration"];
      return;
    }
    if (phase != "X") {
      fields.fail("ph", "X, a complete event, on a GPU");
    }
    const auto arguments = object.find("args");
    if (arguments == object.end() || !arguments->is_object()) {
      fields.fail("args", "an object with the stream");
    }
    KinetoEvent event;
    event.name = std::move(name);
    event.place = fields.place();
    starts_.push_back(fields.nanoseconds_of("ts", kMaxStart));
    event.time = times_.add(fields.nanoseconds_of("dur", kMaxMicroseconds), nanoseconds(1),
                            event.place, "dur");
    read_arguments(KinetoFields(*arguments, fields.place()), event);
    trace_.events.push_back(std::move(event));
  }

  // Only now it is known which operation is the first.
  void set_starts() {
    const auto first = std::min_element(starts_.begin(), starts_.end());
    for (std::size_t index = 0; index < starts_.size(); ++index) {
      const std::int64_t after = starts_[index] - *first;
      KinetoEvent& event = trace_.events[index];
      if (after > kMaxMicroseconds * 1'000) {
        fail_imported(event.place, "ts",
                      fmt::format("at most {:g} microseconds after the first operation of the GPU",
                                  static_cast<double>(kMaxMicroseconds)),
                      fmt::format("{}.{:03}", after / 1'000, after % 1'000));
      }
      event.start = nanoseconds(after);
    }
  }

  void read_arguments(const KinetoFields& fields, KinetoEvent& event) {
    event.stream = fields.integer("stream", kMaxStream);
    if (fields.has("device")) {
      const std::int64_t device = fields.integer("device", kMaxImportedRank);
      if (device_.value_or(device) != device) {
        fields.fail("device", fmt::format("one GPU in a file, {} as before", *device_));
      }
      device_ = device;
    }
    if (fields.has("Collective name")) {
      read_call(fields, event);
    } else {
      mark_collective(event);
    }
  }

  static void read_call(const KinetoFields& fields, KinetoEvent& event) {
    const std::string name = fields.text("Collective name");
    const KinetoCallName* call = kineto_call_of(name);
    if (call == nullptr && name != "send" && name != "recv") {
      event.kind = KinetoKind::Recorded;
      event.unknown = kUnmodelledCollective;
      return;
    }
    const std::string type = fields.text("dtype");
    const auto bytes = std::find_if(kTypes.begin(), kTypes.end(),
                                    [&](const TypeName& each) { return each.text == type; });
    if (bytes == kTypes.end()) {
      fields.fail("dtype", "a type of PyTorch such as Float or BFloat16");
    }
    const auto size_of = [&](const char* key) {
      return Bytes(fields.integer(key, kMaxImportedBytes / bytes->bytes) * bytes->bytes);
    };
    event.group = fields.text_or_none("Process Group Name");
    event.group_size = fields.integer("Group size", kMaxImportedRank);
    read_ranks(fields, event);
    if (name == "send" || name == "recv") {
      event.kind = name == "send" ? KinetoKind::Send : KinetoKind::Receive;
      const bool sends = event.kind == KinetoKind::Send;
      event.peer =
          static_cast<int>(fields.integer(sends ? "Dst Rank" : "Src Rank", kMaxImportedRank));
      event.size = size_of(sends ? "In msg nelems" : "Out msg nelems");
      return;
    }
    event.kind = KinetoKind::Call;
    event.operation = call->operation;
    event.size = size_of(call->has_whole_output ? "Out msg nelems" : "In msg nelems");
    if (call->operation == Operation::AllToAll &&
        !(are_equal(fields, "In split size") && are_equal(fields, "Out split size"))) {
      event.kind = KinetoKind::Recorded;
      event.unknown = kUnequalSplits;
    }
  }

  static void read_ranks(const KinetoFields& fields, KinetoEvent& event) {
    const auto list = list_of(fields.text_or_none("Process Group Ranks"));
    if (!list) {
      return;
    }
    std::vector<int>& ranks = event.ranks.emplace();
    for (const std::int64_t rank : *list) {
      if (rank > kMaxImportedRank) {
        fields.fail("Process Group Ranks", "ranks");
      }
      ranks.push_back(static_cast<int>(rank));
    }
    if (static_cast<std::int64_t>(ranks.size()) != event.group_size) {
      fields.fail("Group size", fmt::format("{} as there are ranks", ranks.size()));
    }
  }

  static bool are_equal(const KinetoFields& fields, const char* key) {
    const std::string text = fields.text_or_none(key);
    const auto list = list_of(text);
    return list ? std::adjacent_find(list->begin(), list->end(), std::not_equal_to<>()) ==
                      list->end()
                : text.empty() || text == "[]";
  }

  void read_distribution(const json& object) {
    const std::string place = file_.name + ": distributedInfo";
    if (!object.is_object()) {
      fail_imported(place, "", "an object", "something else");
    }
    const KinetoFields fields(object, place);
    if (fields.has("rank")) {
      trace_.rank = static_cast<int>(fields.integer("rank", kMaxImportedRank));
    }
    if (fields.has("world_size")) {
      trace_.world_size = static_cast<int>(fields.integer("world_size", kMaxImportedRank));
    }
    if (!fields.has("pg_config") || !object["pg_config"].is_array()) {
      return;
    }
    for (const json& group : object["pg_config"]) {
      if (!group.is_object() || !group.contains("pg_name") || !group.contains("ranks")) {
        continue;
      }
      const KinetoFields of_group(group, place + ": pg_config");
      std::vector<int>& ranks = trace_.groups[of_group.text("pg_name")];
      ranks.clear();
      for (const json& rank : group["ranks"]) {
        if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() > kMaxImportedRank) {
          of_group.fail("ranks", "a list of ranks");
        }
        ranks.push_back(rank.get<int>());
      }
    }
  }

  const ImportedFile& file_;
  KinetoTrace trace_;
  ImportedTimes times_;
  // Starts of the events, in nanoseconds of the clock of the file.
  std::vector<std::int64_t> starts_;
  bool in_events_ = false;
  std::size_t index_ = 0;
  std::optional<std::int64_t> device_;
};

}  // namespace

const KinetoCallName* kineto_call_of(std::string_view name) {
  const auto found = std::find_if(kCallNames.begin(), kCallNames.end(),
                                  [&](const KinetoCallName& each) { return each.text == name; });
  return found == kCallNames.end() ? nullptr : &*found;
}

void mark_collective(KinetoEvent& event) {
  // RCCL has NCCL's names and rcclGenericKernel, and MSCCL's of its own.
  constexpr std::array<std::string_view, 4> kNames{"ncclKernel", "ncclDevKernel", "rccl",
                                                   "mscclKernel"};
  if (std::any_of(kNames.begin(), kNames.end(), [&](std::string_view each) {
        return event.name.find(each) != std::string::npos;
      })) {
    event.kind = KinetoKind::Recorded;
    event.unknown = kNamelessCollective;
  }
}

KinetoTrace read_kineto_events(const ImportedFile& file) {
  return KinetoReader(file).read();
}

}  // namespace trainyard
