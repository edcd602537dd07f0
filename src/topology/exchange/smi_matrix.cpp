// SPDX-License-Identifier: Apache-2.0
// Columns are told apart by blanks, as captures lose their tabs. This is ambiguous in one place: an
// empty affinity column cannot be seen, so values fill them from the left.
#include "topology/exchange/smi_matrix.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "sim/config.h"
#include "sim/numbers.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDevices = 512;
constexpr int kMaxNvLinks = 256;

// The cells are in the order of SmiDistance; NvLink has a number behind.
constexpr std::array<std::string_view, 7> kCells{"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS"};
constexpr std::string_view kOldSys = "SOC";
constexpr std::string_view kCellForms = "X, NV#, PIX, PXB, PHB, NODE or SYS";
constexpr std::string_view kBlanks = " \t\r";

constexpr std::array<std::string_view, 3> kAffinities{"CPU Affinity", "NUMA Affinity",
                                                      "GPU NUMA ID"};
constexpr std::size_t kNumaAffinity = 1;
// In the order of kAffinities.
constexpr std::array kAffinityMembers{&SmiDevice::cpu_affinity, &SmiDevice::numa_affinity,
                                      &SmiDevice::gpu_numa_id};

struct Word {
  std::string_view text;
  std::size_t column = 1;
};

struct Line {
  std::size_t number = 1;
  std::vector<Word> words;
};

void blank_out(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), what.size(), ' ');
  }
}

// Decorations of terminals and pages become blanks, so that columns stay in place: escape sequences
// (ESC [ ... letter), blanks of web pages, byte order marks, bars of tables and marks of quotes.
std::string without_decoration(std::string_view text) {
  std::string result(text);
  for (const std::string_view mark : {"\xc2\xa0", "\xef\xbb\xbf", "|", "> "}) {
    blank_out(result, mark);
  }
  for (std::size_t at = result.find("\x1b["); at != std::string::npos;
       at = result.find("\x1b[", at)) {
    std::size_t end = at + 2;
    while (end < result.size() &&
           (result[end] == ';' || (result[end] >= '0' && result[end] <= '9'))) {
      ++end;
    }
    end = std::min(end + 1, result.size());
    const std::size_t newline = result.find('\n', at);
    end = std::min(end, newline);
    std::fill(result.begin() + static_cast<std::ptrdiff_t>(at),
              result.begin() + static_cast<std::ptrdiff_t>(end), ' ');
  }
  return result;
}

// The lines that are not blank, nor the rule below the header of a table.
std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    Line result{.number = ++number, .words = {}};
    for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
      const std::size_t after = std::min(line.find_first_of(kBlanks, at), line.size());
      result.words.push_back({line.substr(at, after - at), at + 1});
      at = line.find_first_not_of(kBlanks, after);
    }
    const bool is_rule = line.find_first_not_of("-:|+ \t\r") == std::string_view::npos;
    if (!result.words.empty() && !is_rule) {
      lines.push_back(std::move(result));
    }
  }
  return lines;
}

bool is_gpu_name(std::string_view name) {
  return name.size() > 3 && name.starts_with("GPU") &&
         name.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

std::optional<SmiCell> parse_cell(std::string_view text) {
  if (text == kOldSys) {
    return SmiCell{.distance = SmiDistance::Sys};
  }
  constexpr auto kNvLink = static_cast<std::size_t>(SmiDistance::NvLink);
  for (std::size_t index = 0; index < kCells.size(); ++index) {
    if (index != kNvLink && text == kCells[index]) {
      return SmiCell{.distance = static_cast<SmiDistance>(index)};
    }
  }
  if (!text.starts_with(kCells[kNvLink])) {
    return std::nullopt;
  }
  const auto links = parse_number(text.substr(kCells[kNvLink].size()), 1, kMaxNvLinks);
  return links ? std::optional(SmiCell{.distance = SmiDistance::NvLink, .nvlinks = *links})
               : std::nullopt;
}

// Returns whether this is the line above the rows, each of which has a cell behind the name.
bool is_header(const Line& line) {
  return is_gpu_name(line.words[0].text) &&
         (line.words.size() == 1 || !parse_cell(line.words[1].text));
}

bool has_row_below(const std::vector<Line>& lines, std::size_t header) {
  return header + 1 < lines.size() &&
         lines[header + 1].words[0].text == lines[header].words[0].text;
}

// The first header with its row below, behind whatever stands in front: prompts, fences, tables of
// another kind; else the first line that may be one.
std::size_t find_header(const std::vector<Line>& lines) {
  std::size_t first = lines.size();
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (!is_header(lines[at])) {
      continue;
    }
    first = std::min(first, at);
    if (has_row_below(lines, at)) {
      return at;
    }
  }
  return first;
}

// Returns which of the first words is wanted, or how many words there are.
template <typename Wanted>
std::size_t place_of(const Line& line, const Wanted& is_wanted) {
  constexpr std::size_t kMostInFront = 8;
  for (std::size_t at = 0; at < std::min(line.words.size(), kMostInFront); ++at) {
    if (is_wanted(line.words[at].text)) {
      return at;
    }
  }
  return line.words.size();
}

std::size_t place_of_name(const Line& line, std::string_view name) {
  return place_of(line, [&](std::string_view word) { return word == name; });
}

void erase_before(Line& line, std::size_t index) {
  line.words.erase(line.words.begin(), line.words.begin() + static_cast<std::ptrdiff_t>(index));
}

// The lines of a text with a matrix. What stands in front of the devices in each line of the matrix
// is left out: a label above the rows, marks of comments, affinities to the left of the names.
std::vector<Line> matrix_lines(std::string_view text) {
  std::vector<Line> lines = lines_of(text);
  if (has_row_below(lines, find_header(lines))) {
    return lines;
  }
  for (std::size_t at = 0; at + 1 < lines.size(); ++at) {
    const std::size_t first = place_of(lines[at], is_gpu_name);
    if (first == lines[at].words.size()) {
      continue;
    }
    const std::size_t row = place_of_name(lines[at + 1], lines[at].words[first].text);
    if (row + 1 >= lines[at + 1].words.size() || lines[at + 1].words[row + 1].text != kCells[0]) {
      continue;
    }
    erase_before(lines[at], first);
    const std::size_t end = std::min(lines.size(), at + 1 + lines[at].words.size());
    for (std::size_t below = at + 1; below < end; ++below) {
      const std::size_t name = place_of_name(lines[below], lines[at].words[below - at - 1].text);
      if (name == lines[below].words.size()) {
        break;
      }
      erase_before(lines[below], name);
    }
    break;
  }
  return lines;
}

class MatrixReader {
 public:
  MatrixReader(std::string_view text, const std::string& name)
      : name_(name), text_(without_decoration(text)) {}

  SmiMatrix read() {
    if (text_.size() > kMaxBytes) {
      fail({}, 1, "", "expected at most 1 MiB, found more");
    }
    lines_ = matrix_lines(text_);
    if (lines_.empty()) {
      fail({}, 1, "", "expected the matrix of nvidia-smi topo -m, found nothing");
    }
    at_ = find_header(lines_);
    at_ = at_ < lines_.size() ? at_ : 0;
    check_printable(lines_[at_]);
    read_header(lines_[at_++]);
    for (std::size_t row = 0; row < matrix_.devices.size(); ++row) {
      read_row(row);
    }
    check_symmetry();
    read_legends();
    return std::move(matrix_);
  }

 private:
  void read_header(const Line& line) {
    std::size_t index = 0;
    // Names of affinity columns begin with a word that no device has.
    const auto is_affinity = [&](std::size_t at) {
      const std::string_view word = line.words[at].text;
      return word == "CPU" || word == "NUMA" || word == "GPU";
    };
    for (; index < line.words.size() && !is_affinity(index); ++index) {
      const Word& word = line.words[index];
      const std::string name(word.text);
      const auto same = [&](const SmiDevice& device) { return device.name == name; };
      if (std::any_of(matrix_.devices.begin(), matrix_.devices.end(), same)) {
        fail(word, line.number, "header", fmt::format("{} is there twice", in_quotes(name)));
      }
      matrix_.devices.push_back({.name = name, .is_gpu = is_gpu_name(name)});
    }
    if (matrix_.devices.empty() || !matrix_.devices[0].is_gpu) {
      fail(line.words[0], line.number, "header",
           fmt::format("expected the columns GPU0, GPU1, ... of nvidia-smi topo -m, found {}",
                       in_quotes(line.words[0].text)));
    }
    if (matrix_.devices.size() > kMaxDevices) {
      fail(line.words[0], line.number, "header",
           fmt::format("expected at most {} devices, found {}", kMaxDevices,
                       matrix_.devices.size()));
    }
    while (index < line.words.size()) {
      index = read_affinity_name(line, index);
    }
  }

  // Returns the index of the word after it.
  std::size_t read_affinity_name(const Line& line, std::size_t index) {
    const bool is_last = index + 1 == line.words.size();
    if (line.words[index].text == "NUMA" && is_last) {  // Some tables shorten it.
      affinities_.push_back(kNumaAffinity);
      return index + 1;
    }
    for (std::size_t kind = 0; kind < kAffinities.size(); ++kind) {
      std::string text;
      std::size_t end = index;
      while (end < line.words.size() && text.size() < kAffinities[kind].size()) {
        text += (text.empty() ? "" : " ") + std::string(line.words[end++].text);
      }
      const bool is_new = std::ranges::find(affinities_, kind) == affinities_.end();
      if (text == kAffinities[kind] && is_new) {
        affinities_.push_back(kind);
        return end;
      }
    }
    fail(line.words[index], line.number, "header",
         fmt::format("expected the column {} or the end, found {}", fmt::join(kAffinities, ", "),
                     in_quotes(line.words[index].text)));
  }

  void read_row(std::size_t row) {
    const std::string& device = matrix_.devices[row].name;
    if (at_ == lines_.size()) {
      fail({}, lines_.back().number, "",
           fmt::format("expected the row {}, found the end", in_quotes(device)));
    }
    const Line& line = lines_[at_++];
    check_printable(line);
    if (line.words[0].text != device) {
      fail(line.words[0], line.number, "",
           fmt::format("expected the row {}, as the columns say, found {}", in_quotes(device),
                       in_quotes(line.words[0].text)));
    }
    const std::size_t columns = matrix_.devices.size();
    if (line.words.size() <= columns) {
      fail(line.words.back(), line.number, device,
           fmt::format("expected {} cells, found {}", columns, line.words.size() - 1));
    }
    matrix_.cells.emplace_back();
    for (std::size_t column = 0; column < columns; ++column) {
      matrix_.cells.back().push_back(read_cell(line, row, column));
    }
    const std::size_t extra = line.words.size() - 1 - columns;
    if (extra == 2 && affinities_.empty() && line.words[1 + columns].text == "NUMA") {
      matrix_.devices[row].numa_affinity = line.words[2 + columns].text;  // Some add "NUMA 0".
      return;
    }
    if (extra > affinities_.size()) {
      const Word& word = line.words[1 + columns + affinities_.size()];
      fail(word, line.number, device,
           fmt::format("expected the end of the row, found {}", in_quotes(word.text)));
    }
    for (std::size_t index = 0; index < extra; ++index) {
      matrix_.devices[row].*kAffinityMembers.at(affinities_[index]) =
          line.words[1 + columns + index].text;
    }
  }

  [[nodiscard]] SmiCell read_cell(const Line& line, std::size_t row, std::size_t column) const {
    const Word& word = line.words[1 + column];
    const std::string path = matrix_.devices[row].name + '.' + matrix_.devices[column].name;
    const std::optional<SmiCell> cell = parse_cell(word.text);
    if (!cell || (row == column) != (cell->distance == SmiDistance::Self)) {
      fail(word, line.number, path,
           fmt::format("expected {}, found {}",
                       row == column ? "X" : kCellForms.substr(kCellForms.find(' ') + 1),
                       in_quotes(word.text)));
    }
    return *cell;
  }

  void check_symmetry() const {
    for (std::size_t row = 0; row < matrix_.cells.size(); ++row) {
      for (std::size_t column = 0; column < row; ++column) {
        const SmiCell& here = matrix_.cells[row][column];
        const SmiCell& there = matrix_.cells[column][row];
        if (here != there) {
          const Line& line = lines_[at_ - matrix_.cells.size() + row];
          fail(line.words[1 + column], line.number,
               matrix_.devices[row].name + '.' + matrix_.devices[column].name,
               fmt::format("expected {} as in the other direction, found {}", to_string(there),
                           to_string(here)));
        }
      }
    }
  }

  // Text behind the rows and their legends is no longer of nvidia-smi.
  void read_legends() {
    if (at_ < lines_.size() && lines_[at_].words.size() > matrix_.devices.size() &&
        parse_cell(lines_[at_].words[1].text)) {
      const Line& line = lines_[at_];
      fail(line.words[0], line.number, "",
           fmt::format("expected a legend or the end, found {}", in_quotes(line.words[0].text)));
    }
    if (at_ < lines_.size() && lines_[at_].words[0].text == "Legend:") {
      for (++at_; at_ < lines_.size() && second_word() == "="; ++at_) {
        const Line& line = lines_[at_];
        const std::string_view key = line.words[0].text;
        if (key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ#") != std::string_view::npos) {
          break;  // A line of something else that has a "=".
        }
        if (key != "NV#" && (key == "NV" || !parse_cell(key))) {
          fail(line.words[0], line.number, "legend",
               fmt::format("expected {} and \"=\", found {}", kCellForms, in_quotes(key)));
        }
      }
    }
    if (at_ < lines_.size() && lines_[at_].words[0].text == "NIC" && second_word() == "Legend:") {
      for (++at_; at_ < lines_.size() && lines_[at_].words[0].text.ends_with(':'); ++at_) {
        read_nic_name(lines_[at_]);
      }
    }
  }

  [[nodiscard]] std::string_view second_word() const {
    return lines_[at_].words.size() > 1 ? lines_[at_].words[1].text : "";
  }

  // "NIC0: mlx5_0"
  void read_nic_name(const Line& line) {
    check_printable(line);
    const std::string_view key = line.words[0].text;
    const auto device =
        std::find_if(matrix_.devices.begin(), matrix_.devices.end(),
                     [&](const SmiDevice& each) { return !each.is_gpu && key == each.name + ':'; });
    if (device == matrix_.devices.end() || line.words.size() != 2 || !device->nic_name.empty()) {
      fail(line.words[0], line.number, "NIC legend",
           fmt::format("expected a NIC of the matrix, once, and its name, found {}",
                       in_quotes(key)));
    }
    device->nic_name = line.words[1].text;
  }

  // Text around the matrix may be anything.
  void check_printable(const Line& line) const {
    for (const Word& word : line.words) {
      const auto odd = std::find_if(word.text.begin(), word.text.end(),
                                    [](char letter) { return letter < ' ' || letter > '~'; });
      if (odd != word.text.end()) {
        const auto offset = static_cast<std::size_t>(odd - word.text.begin());
        fail({.text = {}, .column = word.column + offset}, line.number, "",
             fmt::format("expected printable ASCII, found {}",
                         in_quotes(word.text.substr(offset, 1))));
      }
    }
  }

  [[noreturn]] void fail(const Word& word, std::size_t line, std::string_view path,
                         std::string_view message) const {
    throw ConfigError(fmt::format("{}:{}:{}: {}{}{}", name_, line, word.column, path,
                                  path.empty() ? "" : ": ", message));
  }

  const std::string& name_;
  std::string text_;
  std::vector<Line> lines_;
  std::size_t at_ = 0;
  std::vector<std::size_t> affinities_;  // Indices into kAffinities.
  SmiMatrix matrix_;
};

constexpr std::string_view kLegend = R"(
Legend:

  X    = The device itself
  SYS  = Through the link between CPU sockets (NUMA nodes)
  NODE = Through several PCIe host bridges of one NUMA node
  PHB  = Through one PCIe host bridge, that of the CPU
  PXB  = Through several PCIe switches, no host bridge
  PIX  = Through at most one PCIe switch
  NV#  = Over # NVLinks
)";

}  // namespace

std::string to_string(const SmiCell& cell) {
  const std::string_view name = kCells[static_cast<std::size_t>(cell.distance)];
  return cell.distance == SmiDistance::NvLink ? fmt::format("{}{}", name, cell.nvlinks)
                                              : std::string(name);
}

bool looks_like_smi_matrix(std::string_view text) {
  const std::string plain = without_decoration(text.substr(0, kMaxBytes));
  const std::vector<Line> lines = matrix_lines(plain);
  return find_header(lines) < lines.size();
}

bool looks_like_p2p_matrix(std::string_view text) {
  constexpr std::array<std::string_view, 7> kStates{"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
  const std::string plain = without_decoration(text.substr(0, kMaxBytes));
  const std::vector<Line> lines = matrix_lines(plain);
  const std::size_t row = find_header(lines) + 1;
  return row < lines.size() && is_gpu_name(lines[row].words[0].text) &&
         std::ranges::any_of(lines[row].words, [&](const Word& word) {
           return std::ranges::find(kStates, word.text) != kStates.end();
         });
}

SmiMatrix read_smi_matrix(std::string_view text, const std::string& name) {
  return MatrixReader(text, name).read();
}

std::string write_smi_matrix(const SmiMatrix& matrix) {
  std::string text;
  for (const SmiDevice& device : matrix.devices) {
    text += '\t' + device.name;
  }
  text += fmt::format("\t{}\n", fmt::join(kAffinities, "\t"));
  std::string names;
  for (std::size_t row = 0; row < matrix.devices.size(); ++row) {
    const SmiDevice& device = matrix.devices[row];
    text += device.name;
    for (const SmiCell& cell : matrix.cells[row]) {
      text += cell.distance == SmiDistance::Self ? "\t X " : '\t' + to_string(cell);
    }
    for (const auto member : kAffinityMembers) {
      text += (device.*member).empty() ? "" : '\t' + device.*member;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
    if (!device.nic_name.empty()) {
      names += fmt::format("  {}: {}\n", device.name, device.nic_name);
    }
  }
  text += kLegend;
  return names.empty() ? text : text + "\nNIC Legend:\n\n" + names;
}

}  // namespace trainyard
