// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/pasted_output.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstdint>

#include "calibration/measured/measured_rows.h"
#include "parallelism/workload/imported_text.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

using Words = std::vector<std::string_view>;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "0 1 2": the columns of a matrix.
bool is_head(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (imported_number(words[i]) != static_cast<std::int64_t>(i)) {
      return false;
    }
  }
  return !words.empty();
}

class PastedReader {
 public:
  PastedReader(PastedTool tool, const std::string& name) : name_(name) { output_.tool = tool; }

  PastedOutput read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      ++line_;
      read_line(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    close_matrix();
    if (output_.values.empty()) {
      throw ConfigError(fmt::format("{}: expected values of {}, found {}", name_,
                                    to_string(output_.tool),
                                    output_.warnings.empty() ? "none" : output_.warnings.front()));
    }
    return std::move(output_);
  }

 private:
  void read_line(std::string_view line) {
    switch (output_.tool) {
      case PastedTool::NvBandwidth:
        read_nvbandwidth(line);
        break;
      case PastedTool::PeerToPeerTest:
        read_peer_to_peer(line);
        break;
      case PastedTool::Perftest:
        read_perftest(line);
        break;
      case PastedTool::Osu:
        read_osu(line);
        break;
    }
  }

  void warn(std::string_view expected, std::string_view found) {
    output_.warnings.push_back(fmt::format("{}:{}: left out: expected {}, found {}", name_, line_,
                                           expected, in_quotes(found)));
  }

  void read_nvbandwidth(std::string_view line) {
    const Words words = imported_words(line);
    if (words.size() >= 2 && words[0] == "Running") {
      close_matrix();
      test_ = words[1];
      test_ = test_.substr(0, test_.find_last_not_of('.') + 1);
      return;
    }
    const bool is_header = contains(line, "(row)") && contains(line, "(column)");
    if (is_header) {
      close_matrix();
      // Latencies are those of kernels that chase pointers, of no message.
      wants_head_ = contains(line, "(GB/s)") && !test_.empty();
      part_ = contains(line, " Total ")   ? " total"
              : contains(line, " Read1")  ? " first"
              : contains(line, " Read2")  ? " second"
              : contains(line, " Write1") ? " first"
              : contains(line, " Write2") ? " second"
                                          : "";
      is_latency_ = false;
      return;
    }
    read_matrix(line, words);
  }

  void read_peer_to_peer(std::string_view line) {
    const Words words = imported_words(line);
    const std::size_t matrix = line.find(" Matrix (");
    if (matrix != std::string_view::npos) {
      close_matrix();
      const std::size_t begin = line.find_first_not_of(" \t");
      test_ = line.substr(begin, matrix - begin);
      wants_head_ = true;
      part_.clear();
      is_latency_ = contains(line, "(us)");
      return;
    }
    if (!words.empty() && words[0] == "CPU") {
      close_matrix();  // Times of the host's calls.
      return;
    }
    const bool has_corner = !words.empty() && (words[0] == "D\\D" || words[0] == "GPU");
    read_matrix(line, has_corner ? Words(words.begin() + 1, words.end()) : words);
  }

  // The head of a matrix, or a row: its number, then a value for each column.
  void read_matrix(std::string_view line, const Words& words) {
    if (wants_head_ && is_head(words)) {
      columns_ = words.size();
      wants_head_ = false;
      next_row_ = 0;
      return;
    }
    if (columns_ == 0 || words.empty()) {
      return;
    }
    const std::optional<std::int64_t> row = imported_number(words[0]);
    if (!row) {
      close_matrix();
      return;
    }
    if (*row != next_row_) {
      warn(fmt::format("row {} of {}", next_row_, test_), line);
      close_matrix();
      return;
    }
    ++next_row_;
    if (words.size() != columns_ + 1) {
      warn(fmt::format("{} values of {}", columns_, test_), line);
      return;
    }
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "N/A") {
        continue;
      }
      const std::optional<PrintedNumber> value = parse_printed(words[i]);
      if (!value) {
        warn("a number or N/A", words[i]);
        continue;
      }
      if (value->value > 0.0) {
        add(static_cast<int>(*row), static_cast<int>(i - 1), Bytes(), value->value);
      }
    }
  }

  void add(int row, int column, Bytes size, double value) {
    output_.values.push_back({.test = test_ + part_,
                              .line = line_,
                              .row = row,
                              .column = column,
                              .size = size,
                              .is_latency = is_latency_,
                              .value = value});
  }

  void close_matrix() {
    columns_ = 0;
    wants_head_ = false;
  }

  void read_perftest(std::string_view line) {
    const std::size_t title = line.find(" Test");
    if (title != std::string_view::npos &&
        (contains(line, " BW Test") || contains(line, " Latency Test"))) {
      const std::size_t begin = line.find_first_not_of(" \t");
      test_ = line.substr(begin, title - begin);
      columns_ = 0;
      return;
    }
    if (contains(line, "#bytes") && contains(line, "#iterations")) {
      read_perftest_header(line);
      return;
    }
    const Words words = imported_words(line);
    const std::optional<std::int64_t> size =
        words.empty() ? std::nullopt : imported_number(words[0]);
    if (columns_ == 0 || !size) {
      return;
    }
    const std::optional<PrintedNumber> value =
        words.size() > place_ ? parse_printed(words[place_]) : std::nullopt;
    if (words.size() != columns_ || !value || value->value <= 0.0 || *size == 0) {
      warn(fmt::format("{} values as in the header", columns_), line);
      return;
    }
    add(0, 0, Bytes(*size), value->value * scale_);
  }

  // Names of columns are of one or two words: "BW peak[MB/sec]", "99% percentile[usec]".
  void read_perftest_header(std::string_view line) {
    Words names;
    for (const std::string_view word : imported_words(line)) {
      const bool goes_on = !names.empty() && (names.back() == "BW" || names.back().ends_with('%'));
      if (goes_on) {
        names.back() = word;
      } else {
        names.push_back(word);
      }
    }
    columns_ = 0;
    part_.clear();
    for (std::size_t i = 0; i < names.size(); ++i) {
      // "BW average[MB/sec]" of newer, "BW_average[MB/sec]" of other versions; the median of times.
      const bool is_rate = contains(names[i], "average[");
      const bool is_time = names[i] == "t_typical[usec]";
      if (is_rate || is_time) {
        place_ = i;
        columns_ = names.size();
        is_latency_ = is_time;
        scale_ = is_time ? 1.0 : contains(names[i], "[Gb/s") ? 1.0 / 8.0 : 1048576.0 / 1e9;
      }
    }
    if (columns_ == 0) {
      warn("a column BW average[...] or t_typical[usec]", line);
    }
    if (test_.empty()) {
      test_ = is_latency_ ? "Latency" : "BW";
    }
  }

  void read_osu(std::string_view line) {
    const std::size_t title = line.find("OSU ");
    const std::size_t end = line.find(" Test");
    if (title != std::string_view::npos && end != std::string_view::npos && title < end) {
      test_ = line.substr(title, end - title);
      part_.clear();
      columns_ = 0;
    } else if (contains(line, "Send Buffer on ")) {
      const bool from_gpu = contains(line, "Send Buffer on DEVICE");
      const bool to_gpu = contains(line, "Receive Buffer on DEVICE");
      part_ = fmt::format(", {} to {}", from_gpu ? "D" : "H", to_gpu ? "D" : "H");
    } else if (contains(line, "Size ") && !test_.empty()) {
      columns_ = 2;
      is_latency_ = contains(line, "Latency (us)");
    } else if (const Words words = imported_words(line); columns_ > 0 && !words.empty()) {
      const std::optional<std::int64_t> size = imported_number(words[0]);
      if (!size || *size == 0) {
        return;
      }
      const auto value = words.size() > 1 ? parse_printed(words[1]) : std::nullopt;
      if (!value || value->value <= 0.0) {
        warn("a size and a value", line);
        return;
      }
      add(0, 0, Bytes(*size), is_latency_ ? value->value : value->value / 1e3);
    }
  }

  const std::string& name_;
  PastedOutput output_;
  std::size_t line_ = 0;
  std::string test_;
  std::string part_;  // Name in a test with several matrices.
  bool is_latency_ = false;
  bool wants_head_ = false;
  std::size_t columns_ = 0;  // Columns of the table that is open; 0: none.
  std::int64_t next_row_ = 0;
  std::size_t place_ = 0;  // Place of perftest's column.
  double scale_ = 1.0;
};

}  // namespace

std::string_view to_string(PastedTool tool) {
  static constexpr std::array<std::string_view, 4> kNames{"nvbandwidth", "p2pBandwidthLatencyTest",
                                                          "perftest", "osu"};
  return kNames.at(static_cast<std::size_t>(tool));
}

std::optional<PastedTool> pasted_tool(std::string_view text) {
  if (contains(text, "nvbandwidth Version") ||
      (contains(text, "Running ") && contains(text, "(row)") && contains(text, "(column)"))) {
    return PastedTool::NvBandwidth;
  }
  if (contains(text, "GPU Bandwidth Latency Test]") || contains(text, " Bandwidth Matrix (GB/s)") ||
      contains(text, " Matrix (GB/s)")) {
    return PastedTool::PeerToPeerTest;
  }
  if (contains(text, "#bytes") && contains(text, "#iterations")) {
    return PastedTool::Perftest;
  }
  if (contains(text, "OSU ") &&
      (contains(text, "Bandwidth (MB/s)") || contains(text, "Latency (us)"))) {
    return PastedTool::Osu;
  }
  return std::nullopt;
}

PastedOutput parse_pasted(std::string_view text, PastedTool tool, const std::string& name) {
  return PastedReader(tool, name).read(text);
}

}  // namespace trainyard
