// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/kineto_events.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "parallelism/trace_import/kineto_json.h"
#include "parallelism/trace_import/kineto_launches.h"
#include "parallelism/workload/imported_text.h"

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

// Titles of calls ("nccl:all_reduce") differ from their names for these.
constexpr std::array<KinetoCallName, 19> kCallNames{{
    {"allreduce", Operation::AllReduce, false},
    {"all_reduce", Operation::AllReduce, false},
    {"_all_gather_base", Operation::AllGather, true},
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

// Returns what a file is that has no list of events, as far as its keys tell.
std::string_view other_file(const json& root) {
  struct OtherFile {
    const char* key;
    std::string_view what;
  };
  constexpr std::array<OtherFile, 3> kOthers{
      {{"nodes",
        "nodes of some kind, and no schema before them as execution traces of PyTorch have"},
       {"workload_graph", "a Chakra trace as JSON, of which the form in protocol buffers is read"},
       {"rocprofiler-sdk-tool", "the result of rocprof, which no format here is"}}};
  const auto found = std::find_if(kOthers.begin(), kOthers.end(), [&](const OtherFile& each) {
    return root.is_object() && root.contains(each.key);
  });
  return found == kOthers.end() ? "none" : found->what;
}

class KinetoReader final : public KinetoEventSink {
 public:
  explicit KinetoReader(const ImportedFile& file) : file_(file) {}

  KinetoTrace read() {
    trace_.name = file_.name;
    const json root = read_kineto_json(file_, *this);
    if (!root.is_object() || !root.contains("traceEvents")) {
      fail_imported(file_.name, "traceEvents", "a list of events", other_file(root));
    }
    if (!root["traceEvents"].is_array() || !root["traceEvents"].empty()) {
      fail_imported(file_.name, "traceEvents", "a list of objects", "something else");
    }
    if (root.contains("distributedInfo")) {
      read_distribution(root["distributedInfo"]);
    }
    set_starts();
    look_around_launches();
    return std::move(trace_);
  }

  [[nodiscard]] KinetoWanted wanted(const KinetoHead& head) override {
    if (!head.phase || !head.category || !head.name || is_work_of_gpu(*head.category)) {
      return KinetoWanted::Now;
    }
    count(*head.phase == "X" && !head.category->empty() ? *head.category : "no duration");
    return KinetoLaunches::is_of_launches(*head.category, *head.name) ? KinetoWanted::Later
                                                                      : KinetoWanted::No;
  }

  void take(const json& event, std::size_t index) override {
    index_ = index;
    read_event(event);
  }

  [[nodiscard]] bool wants_later() const override {
    return std::any_of(read_.begin(), read_.end(),
                       [](const Read& read) { return read.correlation >= 0; });
  }

 private:
  // A work of the GPU as it is read: its name is cut out of it before it is known to be the file's.
  struct Read {
    std::int64_t start = 0;  // In nanoseconds of the clock of the file.
    std::size_t index = 0;   // Among the events of the file.
    std::int64_t correlation = -1;
    KinetoEvent event;
  };

  void read_event(const json& object) {
    const std::string_view named = kineto_text(object, "name");
    const std::string_view name =
        object.contains("name") && object["name"].is_string() ? named : std::string_view("no name");
    const KinetoFields fields(object, file_.name, index_, name);
    const std::string_view phase = kineto_text(object, "ph");
    if (phase.empty()) {
      fields.fail("ph", "a text");
    }
    const std::string_view category = kineto_text(object, "cat");
    if (category.empty() && fields.has("cat")) {
      static_cast<void>(fields.text("cat"));
    }
    if (!is_work_of_gpu(category)) {
      if (KinetoLaunches::is_of_launches(category, name)) {
        launches_.take(object, fields);
      } else {
        count(phase == "X" && !category.empty() ? category : "no duration");
      }
      return;
    }
    if (phase != "X") {
      fields.fail("ph", "X, a complete event, on a GPU");
    }
    const auto arguments = object.find("args");
    if (arguments == object.end() || !arguments->is_object()) {
      fields.fail("args", "an object with the stream");
    }
    Read read{.index = index_, .event = {}};
    read.event.name = trace_.names.own(name);
    read.start = fields.nanoseconds_of("ts", kMaxStart);
    read.event.time = times_.add(
        fields.nanoseconds_of("dur", kMaxMicroseconds), nanoseconds(1),
        [&] { return fields.place(); }, "dur");
    read_arguments(fields, fields.within(*arguments), read);
    read_.push_back(std::move(read));
  }

  void count(std::string_view category) { ++trace_.left_out[std::string(category)]; }

  // Only now it is known which operation is the first.
  void set_starts() {
    std::stable_sort(read_.begin(), read_.end(),
                     [](const Read& a, const Read& b) { return a.start < b.start; });
    for (Read& read : read_) {
      const std::int64_t after = read.start - read_.front().start;
      if (after > kMaxMicroseconds * 1'000) {
        fail_imported(
            fmt::format("{}: event {} ({})", file_.name, read.index, shortened(read.event.name)),
            "ts",
            fmt::format("at most {:g} microseconds after the first operation of the GPU",
                        static_cast<double>(kMaxMicroseconds)),
            fmt::format("{}.{:03}", after / 1'000, after % 1'000));
      }
      read.event.start = nanoseconds(after);
      trace_.events.push_back(std::move(read.event));
    }
  }

  void look_around_launches() {
    std::vector<std::pair<std::size_t, LaunchedCall>> calls;
    std::map<std::uint64_t, int> kernels;  // How many each call has.
    for (std::size_t index = 0; index < trace_.events.size(); ++index) {
      const KinetoEvent& event = trace_.events[index];
      if (event.kind == KinetoKind::Recorded && event.unknown == kNamelessCollective) {
        if (std::optional<LaunchedCall> call = launches_.around(read_[index].correlation)) {
          ++kernels[call->number];
          calls.emplace_back(index, std::move(*call));
        }
      }
    }
    for (const auto& [index, call] : calls) {
      if (kernels[call.number] > 1) {
        continue;  // Nothing says what each of them does.
      }
      KinetoEvent& event = trace_.events[index];
      if (call.fields.is_object()) {
        read_call(KinetoFields(call.fields, file_.name, read_[index].index, event.name), event);
      } else if (call.bytes > 0) {
        add_launched(index, call);
      }
    }
    read_.clear();
  }

  void add_launched(std::size_t index, const LaunchedCall& call) {
    const KinetoCallName* name = kineto_call_of(call.name);
    if (name == nullptr) {
      return;
    }
    KinetoLaunched launched{
        .event = index, .operation = name->operation, .put_in = Bytes(call.bytes)};
    const std::int64_t smaller = std::min(call.bytes, call.output_bytes);
    const std::int64_t larger = std::max(call.bytes, call.output_bytes);
    if (name->operation == Operation::AllGather || name->operation == Operation::ReduceScatter) {
      launched.group_size = smaller > 0 && larger % smaller == 0 ? larger / smaller : 0;
    } else if (name->operation == Operation::AllToAll && smaller > 0 && smaller != larger) {
      launched.unknown = kUnequalSplits;
    }
    trace_.launched.push_back(launched);
  }

  void read_arguments(const KinetoFields& event, const KinetoFields& fields, Read& read) {
    // The thread of work of a GPU is its stream, which tools may leave to say so.
    read.event.stream = fields.has("stream") || !event.has("tid")
                            ? fields.integer("stream", kMaxStream)
                            : event.integer("tid", kMaxStream);
    if (fields.has("device")) {
      const std::int64_t device = fields.integer("device", kMaxImportedRank);
      if (device_.value_or(device) != device) {
        fields.fail("device", fmt::format("one GPU in a file, {} as before", *device_));
      }
      device_ = device;
    }
    if (fields.has("Collective name")) {
      read_call(fields, read.event);
      return;
    }
    mark_collective(read.event);
    if (read.event.kind == KinetoKind::Recorded && fields.has("correlation")) {
      read.correlation = fields.integer("correlation", std::numeric_limits<std::int64_t>::max());
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
    if (!object.is_object()) {
      fail_imported(file_.name + ": distributedInfo", "", "an object", "something else");
    }
    const KinetoFields fields(object, file_.name, "distributedInfo");
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
      const KinetoFields of_group(group, file_.name, "distributedInfo: pg_config");
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
  KinetoLaunches launches_;
  std::vector<Read> read_;  // Sorted by start from set_starts() on.
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
