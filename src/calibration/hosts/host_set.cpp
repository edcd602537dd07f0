// SPDX-License-Identifier: Apache-2.0
#include "calibration/hosts/host_set.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "sim/config.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

constexpr std::string_view kFormat = "trainyard-hosts-1";
constexpr std::array<std::string_view, 1> kFormats{kFormat};
constexpr std::array<std::string_view, 3> kPaths{"memory", "shared", "tcp"};
constexpr std::array<std::string_view, 18> kTests{
    "copy",          "sum",        "rewrite-copy",    "rewrite-sum",    "ping-pong",
    "sends",         "exchange",   "written",         "returned",       "exchange-written",
    "socket-stream", "all_reduce", "broadcast",       "reduce_scatter", "reduce",
    "all_gather",    "alltoall",   "socket-ping-pong"};

// No test takes less than a picosecond, or more than minutes.
constexpr Number kMicroseconds{1e-6, 1e9};
constexpr Whole kCounts{1, 1'000'000};

template <std::size_t kCount>
auto word_of(const std::array<std::string_view, kCount>& words) {
  return Via{Choice{words}, [&words](const ConfigNode& node) {
               return std::string(words[node.as_choice(words)]);
             }};
}

// Bytes without a unit, as programs write them.
const Via kBytes{Whole{1, std::int64_t{1} << 40}, [](const ConfigNode& node) {
                   return Bytes(node.as_integer(1, std::int64_t{1} << 40));
                 }};

void row_fields(Fields& fields, HostRow& row) {
  fields.required("test", row.test, word_of(kTests), "What was done.");
  fields.required("path", row.path, word_of(kPaths), "What the bytes went through.");
  fields.required("ranks", row.ranks, kCounts, "Ranks of MPI that took part.");
  fields.required("bytes", row.size, kBytes, "Bytes of a message or a collective.");
  fields.required("least_us", row.least, kMicroseconds, "The least time of one, in microseconds.");
  fields.required("median_us", row.median, kMicroseconds, "The median.");
  fields.required("repeats", std::ignore, Unread{}, "How often it was measured.");
  fields.optional("cpu_us", row.cpu, kMicroseconds, "CPU time of both ends of a message.");
}

void source_fields(Fields& fields, HostSet& /*set*/) {
  fields.required("program", std::ignore, Unread{}, "What measured.");
  fields.required("date", std::ignore, Unread{}, "When.");
  fields.required("note", std::ignore, Unread{}, "What else is to be known.");
}

void system_fields(Fields& fields, HostSet& set) {
  fields.required("cpu", set.cpu, Text{}, "The CPU, as the kernel names it.");
  fields.required("cores", set.cores, kCounts, "Cores that ranks had.");
  fields.required("kernel", std::ignore, Unread{}, "The kernel.");
  fields.required("mpi", set.mpi, Text{}, "The release of MPI.");
}

// In the order in which each is there first.
std::vector<HostRow> merged(const std::vector<HostRow>& rows) {
  const auto key = [](const HostRow& row) {
    return std::tuple(row.test, row.path, row.ranks, row.size);
  };
  std::map<decltype(key(rows.front())), std::size_t> places;
  std::vector<HostRow> made;
  for (const HostRow& row : rows) {
    const auto [entry, is_new] = places.try_emplace(key(row), made.size());
    if (is_new) {
      made.push_back(row);
      continue;
    }
    HostRow& one = made[entry->second];
    one.least = std::min(one.least, row.least);
    one.median = std::min(one.median, row.median);
    one.cpu = std::min(one.cpu, row.cpu);
  }
  return made;
}

}  // namespace

std::optional<Operation> HostRow::operation() const {
  return parse_operation(test);
}

bool HostRow::is_between_hosts() const {
  return path == "tcp" && operation();
}

int HostSet::hosts() const {
  int most = 1;
  for (const HostRow& row : rows) {
    most = row.is_between_hosts() ? std::max(most, row.ranks) : most;
  }
  return most;
}

bool HostSet::is_crowded(const HostRow& row) const {
  return !row.is_between_hosts() && row.ranks > cores;
}

void host_set_fields(Fields& fields, HostSet& set) {
  std::string format;
  fields.required("format", format, word_of(kFormats), "The format of this file.");
  fields.required("source", set, Group{source_fields}, "Where it is from.");
  fields.required("system", set, Group{system_fields}, "The host.");
  fields.required("rows", set.rows, List{Group{row_fields}}, "Measurements.");
}

bool is_host_set(std::string_view text) {
  return text.find("format: " + std::string(kFormat)) != std::string_view::npos;
}

HostSet parse_host_set(const std::string& text, const std::string& name) {
  ConfigDocument document = ConfigDocument::parse(text, name);
  HostSet set;
  read_fields(document.root(), set, host_set_fields);
  set.name = name;
  set.rows = merged(set.rows);
  return set;
}

}  // namespace trainyard
