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

// Escape sequences of a terminal (ESC [ ... letter) become blanks, so that columns stay in place.
std::string without_escapes(std::string_view text) {
  std::string result(text);
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

// The lines that are not blank.
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
    if (!result.words.empty()) {
      lines.push_back(std::move(result));
    }
  }
  return lines;
}

bool is_gpu_name(std::string_view name) {
  return name.size() > 3 && name.starts_with("GPU") &&
         name.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

// "... nvidia-smi topo -m", behind whatever prompt.
bool is_command(const Line& line) {
  const std::size_t count = line.words.size();
  return count >= 3 && line.words[count - 3].text.ends_with("nvidia-smi") &&
         line.words[count - 2].text == "topo" && line.words[count - 1].text == "-m";
}

class MatrixReader {
 public:
  MatrixReader(std::string_view text, const std::string& name)
      : name_(name), text_(without_escapes(text)) {}

  SmiMatrix read() {
    if (text_.size() > kMaxBytes) {
      fail({}, 1, "", "expected at most 1 MiB, found more");
    }
    const auto odd = std::find_if(text_.begin(), text_.end(), [](char letter) {
      return letter != '\n' && kBlanks.find(letter) == std::string_view::npos &&
             (letter < ' ' || letter > '~');
    });
    if (odd != text_.end()) {
      const auto start =
          std::string_view(text_).substr(0, static_cast<std::size_t>(odd - text_.begin()));
      const auto number = 1 + std::count(start.begin(), start.end(), '\n');
      fail({.text = {}, .column = start.size() - (start.rfind('\n') + 1) + 1},
           static_cast<std::size_t>(number), "",
           fmt::format("expected printable ASCII, found {}", in_quotes({&*odd, 1})));
    }
    lines_ = lines_of(text_);
    if (at_ < lines_.size() && is_command(lines_[at_])) {
      ++at_;
    }
    if (at_ == lines_.size()) {
      fail({}, 1, "", "expected the matrix of nvidia-smi topo -m, found nothing");
    }
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

  static std::optional<SmiCell> parse_cell(std::string_view text) {
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

  void read_legends() {
    if (at_ < lines_.size() && lines_[at_].words[0].text == "Legend:") {
      for (++at_; at_ < lines_.size() && lines_[at_].words[0].text != "NIC"; ++at_) {
        const Line& line = lines_[at_];
        const std::string_view key = line.words[0].text;
        const bool is_key = key == "NV#" || (key != "NV" && parse_cell(key).has_value());
        if (!is_key || line.words.size() < 2 || line.words[1].text != "=") {
          fail(line.words[0], line.number, "legend",
               fmt::format("expected {} and \"=\", found {}", kCellForms, in_quotes(key)));
        }
      }
    }
    if (at_ < lines_.size() && lines_[at_].words[0].text == "NIC") {
      const Line& title = lines_[at_++];
      if (title.words.size() != 2 || title.words[1].text != "Legend:") {
        fail(title.words[0], title.number, "", "expected \"NIC Legend:\", found something else");
      }
      for (; at_ < lines_.size(); ++at_) {
        read_nic_name(lines_[at_]);
      }
    }
    if (at_ < lines_.size()) {
      const Line& line = lines_[at_];
      fail(line.words[0], line.number, "",
           fmt::format("expected a legend or the end, found {}", in_quotes(line.words[0].text)));
    }
  }

  // "NIC0: mlx5_0"
  void read_nic_name(const Line& line) {
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
  const std::string plain = without_escapes(text.substr(0, kMaxBytes));
  const std::vector<Line> lines = lines_of(plain);
  const std::size_t header = !lines.empty() && is_command(lines[0]) ? 1 : 0;
  return header < lines.size() && is_gpu_name(lines[header].words[0].text);
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
