// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

#include "sim/config.h"
#include "sim/printable.h"

namespace trainyard {

namespace options = boost::program_options;

options::variables_map parse_options(std::string_view command,
                                     std::span<const std::string> arguments,
                                     const options::options_description& described,
                                     std::vector<std::string> positional) {
  options::options_description all = described;
  options::positional_options_description places;
  for (const std::string& name : positional) {
    all.add_options()(name.c_str(), options::value<std::string>());
    places.add(name.c_str(), 1);
  }
  options::variables_map values;
  try {
    const auto parsed = options::command_line_parser({arguments.begin(), arguments.end()})
                            .options(all)
                            .positional(places)
                            .style(options::command_line_style::unix_style &
                                   ~options::command_line_style::allow_guessing)
                            .run();
    options::store(parsed, values);
  } catch (const options::error& error) {
    throw ConfigError(
        fmt::format("{0}: {1}; see trainyard {0} --help", command, escaped(error.what())));
  }
  return values;
}

void fail_option(std::string_view name, std::string_view expected, std::string_view found,
                 std::span<const std::string> candidates) {
  const std::optional<std::string> nearest = nearest_word(found, candidates);
  throw ConfigError(fmt::format("--{}: expected {}, found {}{}", name, expected, in_quotes(found),
                                nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : ""));
}

bool OptionReader::given(std::string_view name) const {
  return values_.count(std::string(name)) > 0;
}

std::optional<std::string> OptionReader::text(std::string_view name) const {
  return given(name) ? std::optional(values_[std::string(name)].as<std::string>()) : std::nullopt;
}

std::string OptionReader::required_text(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  if (!value) {
    throw ConfigError(fmt::format("--{}: missing; see --help", name));
  }
  return *value;
}

std::optional<int> OptionReader::integer(std::string_view name, int least, int most) const {
  const std::optional<std::string> value = text(name);
  if (!value) {
    return std::nullopt;
  }
  int number = 0;
  const char* end = value->data() + value->size();
  const auto [rest, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || rest != end || number < least || number > most) {
    fail_option(name, fmt::format("a whole number from {} to {}", least, most), *value);
  }
  return number;
}

std::optional<Bytes> OptionReader::message_size(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  if (!value) {
    return std::nullopt;
  }
  // 4 TiB a rank: no GPU memory is within a factor of ten of it.
  constexpr Bytes kMost = gib(4096);
  try {
    const Bytes size = parse_message_size(*value);
    if (size >= Bytes(1) && size <= kMost) {
      return size;
    }
  } catch (const UnitError&) {
    // Falls through to the same error: what was expected is the same.
  }
  fail_option(name, "a size from 1 to 4096G, such as 8, 64K, 1G or 25MiB", *value);
}

std::size_t OptionReader::choice(std::string_view name, std::vector<std::string> choices) const {
  const std::optional<std::string> value = text(name);
  if (!value) {
    return 0;
  }
  const auto found = std::ranges::find(choices, *value);
  if (found == choices.end()) {
    fail_option(name, fmt::format("{}", fmt::join(choices, " or ")), *value, choices);
  }
  return static_cast<std::size_t>(found - choices.begin());
}

std::vector<std::string> OptionReader::texts(std::string_view name) const {
  return given(name) ? values_[std::string(name)].as<std::vector<std::string>>()
                     : std::vector<std::string>();
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) {
      return parts;
    }
    list.remove_prefix(comma + 1);
  }
}

void add_cluster_options(options::options_description& all) {
  const auto text = [](const char* name) {
    return options::value<std::string>()->value_name(name);
  };
  auto add = all.add_options();
  add("help", "this text");
  add("cluster", text("NAME|FILE"), "the cluster: a file, or a name in configs/clusters");
  add("nodes", text("N"), "servers, instead of the file's number");
  add("gpus-per-node", text("N"), "GPUs used in each server");
  add("set", options::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "change a value of the cluster file; may be given again");
}

ClusterOverrides cluster_overrides(const OptionReader& reader) {
  return {.nodes = reader.integer("nodes", 1, 1'000'000),
          .gpus_per_node = reader.integer("gpus-per-node", 1, 1'000'000),
          .settings = reader.texts("set")};
}

void add_output_options(options::options_description& all) {
  const auto text = [](const char* name) {
    return options::value<std::string>()->value_name(name);
  };
  auto add = all.add_options();
  add("format", text("FORMAT"), "table (the default), csv or json");
  add("output", text("FILE"), "write there, whole or not at all, instead of to standard output");
}

Format output_format(const OptionReader& reader) {
  switch (reader.choice("format", {"table", "csv", "json"})) {
    case 1:
      return Format::Csv;
    case 2:
      return Format::Json;
    default:
      return Format::Table;
  }
}

}  // namespace trainyard
