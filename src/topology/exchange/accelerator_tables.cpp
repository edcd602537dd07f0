// SPDX-License-Identifier: Apache-2.0
#include "topology/exchange/accelerator_tables.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::string_view kTableBlanks = " \t\r|";
constexpr std::string_view kTypeTitle = "Link Type between two GPUs";
constexpr std::string_view kWeightTitle = "Weight between two GPUs";
constexpr std::size_t kMaxTableDevices = 512;
constexpr int kWeightOfHop = 15;  // AMD's driver counts 15 for each hop of xGMI: hwloc, issue 775.

struct TableLine {
  std::size_t number = 0;
  std::string_view text;
  std::vector<std::string_view> words;
};

std::vector<TableLine> table_lines(std::string_view text) {
  std::vector<TableLine> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    TableLine line{.number = number, .text = text.substr(0, end), .words = {}};
    text.remove_prefix(std::min(end + 1, text.size()));
    for (std::size_t at = line.text.find_first_not_of(kTableBlanks);
         at != std::string_view::npos;) {
      const std::size_t after =
          std::min(line.text.find_first_of(kTableBlanks, at), line.text.size());
      line.words.push_back(line.text.substr(at, after - at));
      at = line.text.find_first_not_of(kTableBlanks, after);
    }
    if (!line.words.empty()) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool names_gpu(std::string_view word) {
  return word.starts_with("GPU") && is_digits(word.substr(3));
}

[[noreturn]] void fail_table(const std::string& name, std::size_t line, std::string_view expected,
                             std::string_view found) {
  throw ConfigError(
      fmt::format("{}:{}: expected {}, found {}", name, line, expected, in_quotes(found)));
}

// The names of a table of rocm-smi and its cells, row by row.
struct CellTable {
  std::vector<std::string> names;
  std::vector<std::vector<std::string_view>> cells;
};

// The table below the line with this title; without names if there is none.
CellTable read_table(const std::vector<TableLine>& lines, std::string_view title,
                     const std::string& name) {
  CellTable table;
  auto line = std::find_if(lines.begin(), lines.end(), [&](const TableLine& each) {
    return each.text.find(title) != std::string_view::npos;
  });
  if (line == lines.end()) {
    return table;
  }
  // Between title and table the tool writes what it could not find out.
  const auto is_title = [](const TableLine& each) { return each.words[0].starts_with("==="); };
  ++line;
  while (line != lines.end() && !names_gpu(line->words[0]) && !is_title(*line)) {
    ++line;
  }
  if (line == lines.end() || is_title(*line)) {
    return table;
  }
  for (const std::string_view word : line->words) {
    if (!names_gpu(word)) {
      fail_table(name, line->number, "the columns GPU0, GPU1, ...", word);
    }
    table.names.emplace_back(word);
  }
  if (table.names.size() > kMaxTableDevices) {
    fail_table(name, line->number, fmt::format("at most {} GPUs", kMaxTableDevices),
               std::to_string(table.names.size()));
  }
  for (const std::string& row : table.names) {
    const std::size_t before = line->number;
    if (++line == lines.end()) {
      fail_table(name, before, fmt::format("the row {} behind this", row), "nothing");
    }
    if (line->words[0] != row || line->words.size() != table.names.size() + 1) {
      fail_table(name, line->number, fmt::format("{} and {} cells", row, table.names.size()),
                 line->text);
    }
    table.cells.emplace_back(line->words.begin() + 1, line->words.end());
  }
  return table;
}

// "GPU[0]   : (Topology) Numa Node: 2", or "GPU 0 : ...", by name of the GPU.
std::map<std::string, std::string> read_numa_nodes(const std::vector<TableLine>& lines) {
  std::map<std::string, std::string> nodes;
  for (const TableLine& line : lines) {
    const std::size_t at = line.text.find("Numa Node:");
    const std::size_t first = line.text.find_first_of("0123456789");
    if (line.words[0].starts_with("GPU") && at != std::string_view::npos && first < at) {
      const std::size_t end = line.text.find_first_not_of("0123456789", first);
      nodes["GPU" + std::string(line.text.substr(first, end - first))] = line.words.back();
    }
  }
  return nodes;
}

// The distance of two GPUs without a link between them, as far as NUMA nodes tell it.
SmiCell by_numa(const SmiDevice& here, const SmiDevice& there) {
  return {.distance =
              here.numa_affinity == there.numa_affinity ? SmiDistance::Node : SmiDistance::Sys};
}

SmiMatrix empty_matrix(std::size_t devices, std::string_view maker) {
  SmiMatrix matrix{.devices = {}, .cells = {}, .counts_links = false, .maker = std::string(maker)};
  matrix.cells.assign(devices, std::vector<SmiCell>(devices));
  return matrix;
}

constexpr SmiCell kJoined{.distance = SmiDistance::NvLink, .nvlinks = 1};

// The line "modID  CPU Affinity  NUMA Affinity" of hl-smi.
bool is_module_header(const TableLine& line) {
  return line.words[0] == "modID" && line.words.size() > 1;
}

}  // namespace

bool looks_like_rocm_smi(std::string_view text) {
  return text.find(kTypeTitle) != std::string_view::npos ||
         text.find(kWeightTitle) != std::string_view::npos;
}

SmiMatrix read_rocm_smi(std::string_view text, const std::string& name) {
  const std::vector<TableLine> lines = table_lines(text);
  const CellTable types = read_table(lines, kTypeTitle, name);
  const CellTable weights = read_table(lines, kWeightTitle, name);
  if (types.names.empty()) {
    throw ConfigError(fmt::format(
        "{}: expected the table \"{}\" of rocm-smi --showtopo, found none", name, kTypeTitle));
  }
  if (!weights.names.empty() && weights.names != types.names) {
    throw ConfigError(fmt::format("{}: expected the same GPUs in all tables, found others", name));
  }
  const std::map<std::string, std::string> nodes = read_numa_nodes(lines);
  SmiMatrix matrix = empty_matrix(types.names.size(), "AMD");
  for (const std::string& gpu : types.names) {
    const auto node = nodes.find(gpu);
    matrix.devices.push_back(
        {.name = gpu, .is_gpu = true, .numa_affinity = node == nodes.end() ? "" : node->second});
  }
  for (std::size_t a = 0; a < types.names.size(); ++a) {
    for (std::size_t b = 0; b < types.names.size(); ++b) {
      if (a == b) {
        continue;
      }
      // Both directions should agree; where one has a link, there is one.
      const auto is_joined = [&](std::size_t from, std::size_t to) {
        const auto weight = weights.names.empty()
                                ? std::optional(kWeightOfHop)
                                : parse_number(weights.cells[from][to], 0, 1'000'000);
        return types.cells[from][to] == "XGMI" && weight && *weight <= kWeightOfHop;
      };
      matrix.cells[a][b] = is_joined(a, b) || is_joined(b, a)
                               ? kJoined
                               : by_numa(matrix.devices[a], matrix.devices[b]);
    }
  }
  return matrix;
}

bool looks_like_hl_smi(std::string_view text) {
  const std::vector<TableLine> lines = table_lines(text.substr(0, 4096));
  return std::any_of(lines.begin(), lines.end(), is_module_header);
}

SmiMatrix read_hl_smi(std::string_view text, const std::string& name) {
  const std::vector<TableLine> lines = table_lines(text);
  auto line = std::find_if(lines.begin(), lines.end(), is_module_header);
  if (line == lines.end()) {
    throw ConfigError(
        fmt::format("{}: expected the columns modID, CPU Affinity and NUMA Affinity of hl-smi topo "
                    "-c -N, found none",
                    name));
  }
  const auto has_column = [&](std::string_view word) {
    return std::ranges::find(line->words, word) != line->words.end();
  };
  const bool has_cores = has_column("CPU");
  const bool has_nodes = has_column("NUMA");
  SmiMatrix matrix = empty_matrix(0, "Intel");
  for (++line; line != lines.end(); ++line) {
    const std::vector<std::string_view>& words = line->words;
    if (!is_digits(words[0])) {
      if (words[0].starts_with('-')) {
        continue;
      }
      break;
    }
    const std::size_t least = 1 + (has_cores ? 1 : 0) + (has_nodes ? 1 : 0);
    if (words.size() < least || matrix.devices.size() == kMaxTableDevices) {
      fail_table(name, line->number, "a module, its cores and its NUMA node", line->text);
    }
    // The cores may have blanks in between: "0-39, 80-119".
    matrix.devices.push_back(
        {.name = fmt::format("GPU{}", words[0]),
         .is_gpu = true,
         .cpu_affinity =
             fmt::format("{}", fmt::join(words.begin() + 1, words.end() - (has_nodes ? 1 : 0), "")),
         .numa_affinity = has_nodes ? std::string(words.back()) : ""});
  }
  const std::size_t count = matrix.devices.size();
  if (count == 0) {
    throw ConfigError(fmt::format("{}: expected a module, found none", name));
  }
  matrix.cells.assign(count, std::vector<SmiCell>(count, kJoined));
  for (std::size_t module = 0; module < count; ++module) {
    matrix.cells[module][module] = {};
  }
  return matrix;
}

}  // namespace trainyard
