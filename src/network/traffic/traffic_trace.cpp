// SPDX-License-Identifier: Apache-2.0
// The format of HPCC is that of alibaba-edu/High-Precision-Congestion-Control,
// simulation/scratch/third.cc (ReadFlowInput) and traffic_gen/README.md; that of htsim is of
// Broadcom/csg-htsim, sim/datacenter/connection_matrix.cpp (load).
#include "network/traffic/traffic_trace.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::size_t kColumns = 5;
enum Column : std::size_t { kStart, kSource, kTarget, kBytes, kPriority };
constexpr std::array<std::string_view, kColumns> kNames{"start_us", "source", "target", "bytes",
                                                        "priority"};

class TraceReader {
 public:
  TraceReader(const std::filesystem::path& file, TraceFormat format, const TrafficDevices& devices,
              std::span<const NodeId> endpoints)
      : name_(file.string()), format_(format), devices_(devices), endpoints_(endpoints) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
      throw ConfigError(fmt::format("{}: expected a file, found a directory", name_));
    }
    if (std::filesystem::is_character_file(file, error)) {  // It may never end.
      throw ConfigError(fmt::format("{}: expected a file, found a device", name_));
    }
    errno = 0;
    stream_.open(file, std::ios::binary);
    if (!stream_) {
      throw ConfigError(fmt::format("{}: cannot be read: {}", name_, std::strerror(errno)));
    }
  }

  std::vector<FlowStart> read() {
    read_header();
    while (!is_complete() && (is_read_ahead_ || next_line())) {
      is_read_ahead_ = false;
      if (format_ == TraceFormat::Htsim) {
        read_connection();
      } else {
        read_flow();
      }
    }
    if (stream_.bad()) {
      throw ConfigError(fmt::format("{}: cannot be read to its end", name_));
    }
    if (flows_.empty()) {
      fail("expected a flow on each line, found none");
    }
    if (announced_ && static_cast<std::size_t>(*announced_) != flows_.size()) {
      fail(fmt::format("expected {} flows as the {} line says, found {}", *announced_,
                       format_ == TraceFormat::Hpcc ? "first" : "second", flows_.size()));
    }
    std::ranges::stable_sort(flows_, {}, &FlowStart::time);
    if (format_ == TraceFormat::Hpcc) {
      const SimTime first = flows_.front().time;
      for (FlowStart& flow : flows_) {
        flow.time = flow.time - first;
      }
    }
    return std::move(flows_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("{}:{}: {}", name_, line_number_, what));
  }
  [[noreturn]] void fail(std::string_view column, std::string_view expected,
                         std::string_view found) const {
    fail(fmt::format("{}: expected {}, found {}", column, expected, in_quotes(found)));
  }

  // HPCC does not read what follows the flows that it announces either.
  [[nodiscard]] bool is_complete() const {
    return format_ == TraceFormat::Hpcc && announced_ == static_cast<std::int64_t>(flows_.size());
  }

  // The next line that means something, cut into fields.
  bool next_line() {
    std::string_view text;
    do {
      if (!std::getline(stream_, line_)) {
        return false;
      }
      ++line_number_;
      text = line_;
      text = text.substr(0, text.find_last_not_of(" \t\r") + 1);
      text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    } while (text.empty() || text.front() == '#');
    fields_.clear();
    if (format_ == TraceFormat::Csv) {
      split_at_commas(text);
    } else {
      split_at_blanks(text);
    }
    return true;
  }
  void split_at_commas(std::string_view text) {
    while (true) {
      const std::size_t comma = text.find(',');
      std::string_view field = text.substr(0, comma);
      field.remove_prefix(std::min(field.find_first_not_of(" \t"), field.size()));
      field = field.substr(0, field.find_last_not_of(" \t") + 1);
      fields_.push_back(field);
      if (comma == std::string_view::npos) {
        return;
      }
      text.remove_prefix(comma + 1);
    }
  }
  void split_at_blanks(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
      fields_.push_back(text.substr(at, end - at));
      at = std::min(text.find_first_not_of(" \t", end), text.size());
    }
  }

  void read_header() {
    if (!next_line()) {
      line_number_ = 1;
      fail("expected a first line, found an empty file");
    }
    if (format_ == TraceFormat::Hpcc) {
      places_ = {5, 0, 1, 4, 2};
      width_ = 6;
      if (fields_.size() != 1) {
        fail(fmt::format("expected the number of flows, found {} fields", fields_.size()));
      }
      announced_ = whole("flows", fields_[0], 1, std::numeric_limits<std::int64_t>::max());
      return;
    }
    if (format_ == TraceFormat::Htsim) {
      read_matrix_header();
      return;
    }
    width_ = fields_.size();
    for (std::size_t place = 0; place < width_; ++place) {
      const auto known = std::ranges::find(kNames, fields_[place]);
      if (known == kNames.end()) {
        fail(fmt::format("expected a header of {}, found {}", fmt::join(kNames, ", "),
                         in_quotes(fields_[place])));
      }
      auto& column = places_.at(static_cast<std::size_t>(known - kNames.begin()));
      if (column) {
        fail(fmt::format("expected {} once, found it twice", *known));
      }
      column = place;
    }
    for (std::size_t column = kStart; column < kPriority; ++column) {
      if (!places_.at(column)) {
        fail(fmt::format("expected the column {}, found none", kNames.at(column)));
      }
    }
  }

  // Ends with the first connection read.
  void read_matrix_header() {
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    do {
      if (fields_[0].find("->") != std::string_view::npos) {
        is_read_ahead_ = true;
        break;
      }
      const bool has_value = fields_.size() == 2;
      if (has_value && fields_[0] == "Nodes") {
        nodes_ = whole("Nodes", fields_[1], 1, kMax);
      } else if (has_value && fields_[0] == "Connections") {
        announced_ = whole("Connections", fields_[1], 1, kMax);
      } else if (fields_.size() != 2 || fields_[1] != "0") {
        fail(
            fmt::format("expected Nodes, Connections or a connection, found {} (triggers and "
                        "failures are not modelled)",
                        in_quotes(fields_[0])));
      }
    } while (next_line());
    if (nodes_ > static_cast<std::int64_t>(endpoints_.size())) {
      fail("Nodes", fmt::format("at most {}, the endpoints", endpoints_.size()),
           std::to_string(nodes_));
    }
  }

  // "source->target", then names with values.
  void read_connection() {
    const std::size_t arrow = fields_[0].find("->");
    if (arrow == std::string_view::npos || fields_.size() % 2 == 0) {
      fail(fmt::format("expected source->target and names with values, found {}",
                       in_quotes(fields_[0])));
    }
    FlowStart flow{.source = device("source", fields_[0].substr(0, arrow)),
                   .target = device("target", fields_[0].substr(arrow + 2))};
    std::optional<std::string_view> begin;
    for (std::size_t at = 1; at < fields_.size(); at += 2) {
      const std::string_view name = fields_[at];
      if (name == "start") {
        begin = fields_[at + 1];
      } else if (name == "size") {
        flow.size = Bytes(whole("size", fields_[at + 1], 1, kMaxFlowSize.count()));
      } else if (name != "id" && name != "prio") {
        fail(fmt::format("expected start, size, id or prio, found {} (triggers are not modelled)",
                         in_quotes(name)));
      }
    }
    if (!begin || flow.size == Bytes()) {
      fail(fmt::format("expected start and size, found no {}", begin ? "size" : "start"));
    }
    flow.time = start(*begin, 1.0);
    if (flow.source == flow.target) {
      fail("target", "another device than the source", fields_[0]);
    }
    flows_.push_back(flow);
  }

  void read_flow() {
    if (fields_.size() != width_) {
      fail(fmt::format("expected {} fields, found {}", width_, fields_.size()));
    }
    const bool is_csv = format_ == TraceFormat::Csv;
    FlowStart flow{.time = start(field(kStart), is_csv ? 1e6 : 1e12),
                   .size = Bytes(whole("bytes", field(kBytes), 1, kMaxFlowSize.count())),
                   .source = device("source", field(kSource)),
                   .target = device("target", field(kTarget))};
    if (flow.source == flow.target) {
      fail("target", "another device than the source", field(kTarget));
    }
    if (places_.at(kPriority)) {
      flow.priority = static_cast<std::uint8_t>(whole("priority", field(kPriority), 0, 7));
    }
    flows_.push_back(flow);
  }

  [[nodiscard]] std::string_view field(Column column) const { return fields_[*places_.at(column)]; }

  [[nodiscard]] std::int64_t whole(std::string_view column, std::string_view text, std::int64_t min,
                                   std::int64_t max) const {
    const auto value = parse_number(text, min, max);
    if (!value) {
      fail(column, fmt::format("a whole number from {} to {}", min, max), text);
    }
    return *value;
  }

  // Rounds to the nearest picosecond.
  [[nodiscard]] SimTime start(std::string_view text, double picoseconds_per_unit) const {
    constexpr double kMax = 1e18;  // 11 days.
    const double time = parse_number<double>(text).value_or(-1.0) * picoseconds_per_unit;
    if (!(time >= 0.0) || time > kMax) {
      fail("start", fmt::format("a number from 0 to {}", kMax / picoseconds_per_unit), text);
    }
    return SimTime(std::llround(time));
  }

  [[nodiscard]] NodeId device(std::string_view column, std::string_view text) const {
    if (const auto number = parse_number<std::uint32_t>(text)) {
      if (*number >= endpoints_.size()) {
        fail(column, fmt::format("a number below {}, that of the endpoints", endpoints_.size()),
             text);
      }
      return endpoints_[*number];
    }
    const auto found = devices_.find(text);
    if (!found) {
      fail(fmt::format("{}: expected the name of a NIC or GPU or its number, found {}{}", column,
                       in_quotes(text), devices_.suggestion(text)));
    }
    return *found;
  }

  std::string name_;
  TraceFormat format_;
  const TrafficDevices& devices_;
  std::span<const NodeId> endpoints_;
  std::ifstream stream_;
  std::string line_;
  std::int64_t line_number_ = 0;
  std::vector<std::string_view> fields_;
  std::size_t width_ = 0;
  std::array<std::optional<std::size_t>, kColumns> places_ = {};
  std::optional<std::int64_t> announced_;
  std::int64_t nodes_ = 0;  // Nodes of a connection matrix.
  bool is_read_ahead_ = false;
  std::vector<FlowStart> flows_;
};

}  // namespace

std::vector<FlowStart> read_trace(const std::filesystem::path& file, TraceFormat format,
                                  const TrafficDevices& devices,
                                  std::span<const NodeId> endpoints) {
  return TraceReader(file, format, devices, endpoints).read();
}

}  // namespace trainyard
