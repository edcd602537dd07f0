// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/goal_binary.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/trace_import/goal_builder.h"
#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kMagicBytes = 8;  // Places in the file are counted from behind them.
constexpr std::uint64_t kTableBegin = 6;
constexpr std::uint64_t kTableEntryBytes = 16;
constexpr std::uint64_t kOperationBytes = 39;
constexpr std::uint32_t kAny = 0xffff'ffff;

// Reads numbers one after the other from bytes that are known to be there.
class Numbers {
 public:
  explicit Numbers(std::string_view bytes) : bytes_(bytes) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(take(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(take(4)); }
  std::uint64_t u64() { return take(8); }

 private:
  std::uint64_t take(std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t at = size; at-- > 0;) {
      value = (value << 8) | static_cast<unsigned char>(bytes_[at]);
    }
    bytes_.remove_prefix(size);
    return value;
  }

  std::string_view bytes_;
};

// The bytes of a file in memory or on disc, of which a part is in memory at a time.
class FileBytes {
 public:
  explicit FileBytes(const ImportedFile& file) : file_(file), size_(file.text.size()) {
    if (file.is_on_disc) {
      stream_.open(file.name, std::ios::binary | std::ios::ate);
      size_ = static_cast<std::uint64_t>(std::max(std::streamoff{stream_.tellg()}, {}));
    }
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Valid until the next call. The part lies within the file.
  [[nodiscard]] std::string_view part(std::uint64_t begin, std::uint64_t size) {
    if (!file_.is_on_disc) {
      return std::string_view(file_.text).substr(begin, size);
    }
    part_.resize(size);
    stream_.seekg(static_cast<std::streamoff>(begin));
    if (!stream_.read(part_.data(), static_cast<std::streamsize>(size))) {
      throw ConfigError(file_.name + ": cannot be read");
    }
    return part_;
  }

 private:
  const ImportedFile& file_;
  std::ifstream stream_;
  std::uint64_t size_;
  std::string part_;
};

class GoalBinaryReader {
 public:
  GoalBinaryReader(const ImportedFile& file, int gpus)
      : name_(file.name), bytes_(file), gpus_(gpus) {}

  ImportedWorkload read() {
    read_head();
    GoalBuilder builder(ranks_);
    for (rank_ = 0; rank_ < ranks_; ++rank_) {
      read_rank(builder);
    }
    return std::move(builder).finish();
  }

 private:
  struct BinaryOperation {
    OperationId id;
    std::uint32_t waits_for;      // Operations, as the file says.
    std::uint32_t is_waited_for;  // Lists: so many for its end, ...
    std::uint32_t end_list;
    std::uint32_t start_is_waited_for;  // ... so many for its start.
    std::uint32_t start_list;
  };

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    fail_imported(fmt::format("{}: rank {}", name_, rank_), "", expected, found);
  }
  [[nodiscard]] std::string place_of(std::size_t operation) const {
    return fmt::format("{}: rank {}, operation {}", name_, rank_, operation);
  }
  [[noreturn]] void fail(std::size_t operation, std::string_view expected,
                         std::string_view found) const {
    fail_imported(place_of(operation), "", expected, found);
  }

  void read_head() {
    constexpr std::uint64_t kHeadBytes = kMagicBytes + kTableBegin;
    if (bytes_.size() < kHeadBytes) {
      fail_imported(name_, "", fmt::format("a head of {} bytes", kHeadBytes),
                    fmt::format("{} bytes", bytes_.size()));
    }
    const std::string_view head = bytes_.part(0, kHeadBytes);
    if (head.starts_with(kGoalMagicOfDestroyed)) {
      fail_imported(name_, "", "a schedule in binary form that is intact",
                    "one that LogGOPSim has run with --save-mem: write it again with txt2bin");
    }
    const std::uint32_t ranks = Numbers(head.substr(kMagicBytes)).u32();
    if (ranks < 1 || ranks > static_cast<std::uint32_t>(gpus_)) {
      fail_imported(name_, "", fmt::format("ranks from 1 to the {} GPUs of the cluster", gpus_),
                    std::to_string(ranks));
    }
    ranks_ = static_cast<int>(ranks);
    if (bytes_.size() < kMagicBytes + table_end()) {
      fail_imported(name_, "", fmt::format("a table of {} ranks", ranks),
                    fmt::format("the end of the file at byte {}", bytes_.size()));
    }
  }

  [[nodiscard]] std::uint64_t table_end() const {
    return kTableBegin + kTableEntryBytes * static_cast<std::uint64_t>(ranks_);
  }

  // Returns the bytes of the rank, which lie within the file.
  std::string_view part_of_rank() {
    const auto entry = static_cast<std::uint64_t>(rank_) * kTableEntryBytes;
    Numbers places(bytes_.part(kMagicBytes + kTableBegin + entry, kTableEntryBytes));
    const std::uint64_t begin = places.u64();
    const std::uint64_t end = places.u64();
    if (begin < table_end() || end < begin || end > bytes_.size() - kMagicBytes ||
        end - begin < 8) {
      fail(fmt::format("a part between bytes {} and {} of the file", table_end() + kMagicBytes,
                       bytes_.size()),
           fmt::format("one from {} to {}, counted from {}", begin, end, kMagicBytes));
    }
    return bytes_.part(kMagicBytes + begin, end - begin);
  }

  void read_rank(GoalBuilder& builder) {
    const std::string_view part = part_of_rank();
    Numbers head(part);
    const std::uint64_t count = head.u32();
    const std::uint64_t roots = head.u32();
    const std::uint64_t begin = 8 + 4 * roots;
    const std::uint64_t lists = begin + kOperationBytes * count;
    if (lists > part.size() || (part.size() - lists) % 4 != 0) {
      fail(fmt::format("a part of {} bytes and whole lists for {} operations and {} roots", lists,
                       count, roots),
           fmt::format("{} bytes", part.size()));
    }
    builder.open_rank(rank_);
    operations_.clear();
    requirements_.clear();
    Numbers numbers(part.substr(begin));
    for (std::uint64_t operation = 0; operation < count; ++operation) {
      read_operation(builder, numbers);
    }
    read_lists(part.substr(lists));
    check_roots(Numbers(part.substr(8)), roots);
    builder.close_rank(requirements_);
  }

  void read_operation(GoalBuilder& builder, Numbers& numbers) {
    const std::size_t at = operations_.size();
    const std::uint32_t waits_for = numbers.u32();
    const std::uint8_t kind = numbers.u8();
    const std::uint32_t peer = numbers.u32();
    const std::uint64_t amount = numbers.u64();
    const std::uint32_t tag = numbers.u32();
    const std::uint8_t cpu = numbers.u8();
    const std::uint8_t nic = numbers.u8();
    constexpr std::uint8_t kSend = 1;
    constexpr std::uint8_t kReceive = 2;
    constexpr std::uint8_t kComputation = 3;
    OperationId id;
    if (kind == kComputation) {
      constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      const SimTime time = times_.add(
          static_cast<std::int64_t>(std::min(amount, kMost)), nanoseconds(1),
          [&] { return place_of(at); }, "");
      id = builder.add_calc(cpu, name_of(builder, calc_name_, "calc"), time);
    } else if (kind == kSend || kind == kReceive) {
      check_message(at, peer, amount, tag);
      const bool sends = kind == kSend;
      id = builder.add_message(
          sends,
          sends ? name_of(builder, send_name_, "send") : name_of(builder, receive_name_, "recv"),
          {.peer = static_cast<int>(peer),
           .size = Bytes(static_cast<std::int64_t>(amount)),
           .tag = tag,
           .handover = Handover::Eager},
          cpu != 0 || nic != 0);
    } else {
      fail(at, "a send (1), a receive (2) or a computation (3)", std::to_string(kind));
    }
    BinaryOperation& operation = operations_.emplace_back();
    operation = {.id = id,
                 .waits_for = waits_for,
                 .is_waited_for = numbers.u32(),
                 .end_list = numbers.u32(),
                 .start_is_waited_for = numbers.u32(),
                 .start_list = numbers.u32()};
  }

  void check_message(std::size_t operation, std::uint32_t peer, std::uint64_t size,
                     std::uint32_t tag) const {
    if (peer == kAny || tag == kAny) {
      fail(operation,
           fmt::format("a {}, as which messages meet must be known before the run",
                       peer == kAny ? "rank" : "tag"),
           "-1, which represents any");
    }
    if (peer >= static_cast<std::uint32_t>(ranks_)) {
      fail(operation, fmt::format("a rank, from 0 to {}", ranks_ - 1), std::to_string(peer));
    }
    if (static_cast<int>(peer) == rank_) {
      fail(operation, "another rank", fmt::format("rank {} itself", peer));
    }
    if (size > static_cast<std::uint64_t>(kMaxImportedBytes)) {
      fail(operation, "a size of at most 1 TiB", std::to_string(size));
    }
  }

  // The name of the operation that is read, whose text is made once. A zero is not written.
  GraphName name_of(GoalBuilder& builder, std::optional<NameId>& text, std::string_view kind) {
    if (operations_.empty()) {
      return {.text = builder.add_name(fmt::format("{} of operation 0", kind))};
    }
    if (!text) {
      text = builder.add_name(fmt::format("{} of operation ", kind));
    }
    return {.text = *text, .number = static_cast<std::uint32_t>(operations_.size())};
  }

  // Each list is taken once, so that all of them have as many members as the part has.
  void read_lists(std::string_view lists) {
    const std::uint64_t members = lists.size() / 4;
    waits_.assign(operations_.size(), 0);
    std::uint64_t taken = 0;
    for (std::size_t at = 0; at < operations_.size(); ++at) {
      const BinaryOperation& operation = operations_[at];
      taken += operation.is_waited_for;
      taken += operation.start_is_waited_for;
      if (taken > members) {
        break;
      }
      read_list(at, lists, operation.end_list, operation.is_waited_for, false);
      read_list(at, lists, operation.start_list, operation.start_is_waited_for, true);
    }
    if (taken != members) {
      fail(fmt::format("lists of {} members in all", members), fmt::format("{} or more", taken));
    }
  }

  void read_list(std::size_t operation, std::string_view lists, std::uint64_t begin,
                 std::uint64_t count, bool at_start) {
    if (count == 0) {
      return;
    }
    if (begin + count > lists.size() / 4) {
      fail(operation, fmt::format("a list within {} members", lists.size() / 4),
           fmt::format("{} from {} on", count, begin));
    }
    Numbers members(lists.substr(4 * begin));
    for (std::uint64_t at = 0; at < count; ++at) {
      const std::uint32_t member = members.u32();
      if (member >= operations_.size()) {
        fail(operation, fmt::format("one of {} operations that waits for it", operations_.size()),
             std::to_string(member));
      }
      ++waits_[member];
      requirements_.push_back({.after = operations_[member].id,
                               .before = operations_[operation].id,
                               .at_start = at_start});
    }
  }

  // LogGOPSim starts a rank at its roots, and an operation once as many have ended as it waits for.
  void check_roots(Numbers roots, std::uint64_t count) {
    for (std::size_t at = 0; at < operations_.size(); ++at) {
      if (operations_[at].waits_for != waits_[at]) {
        fail(at, fmt::format("to wait for {} operations, as many as list it", waits_[at]),
             std::to_string(operations_[at].waits_for));
      }
    }
    const auto expected = static_cast<std::uint64_t>(std::count(waits_.begin(), waits_.end(), 0U));
    if (count != expected) {
      fail(fmt::format("{} roots", expected), std::to_string(count));
    }
    for (std::uint64_t at = 0; at < count; ++at) {
      const std::uint32_t root = roots.u32();
      if (root >= operations_.size() || waits_[root] != 0) {
        fail("a root that waits for no operation, and once", std::to_string(root));
      }
      waits_[root] = kAny;  // Taken.
    }
  }

  const std::string& name_;
  FileBytes bytes_;
  int gpus_;
  int ranks_ = 0;
  int rank_ = 0;
  std::vector<BinaryOperation> operations_;  // Operations of the rank.
  std::vector<std::uint32_t> waits_;         // For how many each of them waits by the lists.
  std::vector<GoalBuilder::Requirement> requirements_;
  std::optional<NameId> calc_name_;
  std::optional<NameId> send_name_;
  std::optional<NameId> receive_name_;
  ImportedTimes times_;
};

}  // namespace

bool is_goal_binary(const ImportedFile& file) {
  FileBytes bytes(file);
  return is_goal_magic(bytes.part(0, std::min(bytes.size(), kMagicBytes)));
}

ImportedWorkload read_goal_binary(const ImportedFile& file, int gpus) {
  return GoalBinaryReader(file, gpus).read();
}

}  // namespace trainyard
