// SPDX-License-Identifier: Apache-2.0
#include "cli/common/options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cli/common/option_checks.h"
#include "report/formats/output.h"
#include "sim/config.h"
#include "sim/printable.h"

namespace trainyard {

namespace options = boost::program_options;

namespace {

std::string suggestion(std::string_view found, std::span<const std::string> candidates) {
  const std::optional<std::string> nearest = nearest_word(found, candidates);
  return nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : "";
}

[[noreturn]] void fail_unknown(std::string_view command, const std::string& option,
                               const options::options_description& described) {
  std::vector<std::string> known;
  for (const auto& each : described.options()) {
    known.push_back("--" + each->long_name());
  }
  const std::string nearest = suggestion(option, known);
  throw ConfigError(
      fmt::format("{0}: unknown option {1}{2}", command, in_quotes(option),
                  nearest.empty() ? fmt::format("; see trainyard {} --help", command) : nearest));
}

[[noreturn]] void fail_syntax(std::string_view command,
                              const options::invalid_command_line_syntax& error) {
  const std::string option = error.get_option_name();
  switch (error.kind()) {
    case options::invalid_syntax::missing_parameter:
    case options::invalid_syntax::empty_adjacent_parameter:
      throw ConfigError(fmt::format("{}: expected a value, found none", escaped(option)));
    case options::invalid_syntax::extra_parameter:
      throw ConfigError(fmt::format("{}: expected no value, found one", escaped(option)));
    default:
      throw ConfigError(
          fmt::format("{0}: {1}; see trainyard {0} --help", command, escaped(error.what())));
  }
}

// "NAME..." stands for any number of arguments.
bool is_list(const std::string& positional) {
  return positional.ends_with("...");
}

// What Boost takes but nobody means: an option as the value of another; arguments left over.
void check_form(std::string_view command, const options::parsed_options& parsed,
                const std::vector<std::string>& positional) {
  const bool any_number = !positional.empty() && is_list(positional.back());
  std::vector<std::string> unnamed;
  for (const options::option& option : parsed.options) {
    if (option.string_key.empty()) {
      unnamed.insert(unnamed.end(), option.value.begin(), option.value.end());
    } else if (!option.value.empty() && option.value[0].starts_with("--")) {
      fail_option(option.string_key, "a value", option.value[0]);
    }
  }
  if (unnamed.size() > positional.size() && !any_number) {
    fail_value(command,
               positional.empty()
                   ? "options alone"
                   : fmt::format("options and one {}", fmt::join(positional, ", one ")),
               unnamed[positional.size()]);
  }
}

}  // namespace

options::variables_map parse_options(std::string_view command,
                                     std::span<const std::string> arguments,
                                     const options::options_description& described,
                                     const std::vector<std::string>& positional) {
  options::options_description all = described;
  options::positional_options_description places;
  for (std::string name : positional) {
    if (is_list(name)) {
      name.resize(name.size() - 3);
      all.add_options()(name.c_str(), options::value<std::vector<std::string>>()->composing());
      places.add(name.c_str(), -1);
    } else {
      all.add_options()(name.c_str(), options::value<std::string>());
      places.add(name.c_str(), 1);
    }
  }
  const auto parser = [&] {  // Running one uses it up.
    options::command_line_parser fresh({arguments.begin(), arguments.end()});
    fresh.options(all).style(options::command_line_style::unix_style &
                             ~options::command_line_style::allow_guessing);
    return fresh;
  };
  options::variables_map values;
  try {
    check_form(command, parser().run(), positional);
    options::store(parser().positional(places).run(), values);
  } catch (const options::unknown_option& error) {
    fail_unknown(command, error.get_option_name(), described);
  } catch (const options::invalid_command_line_syntax& error) {
    fail_syntax(command, error);
  } catch (const options::multiple_occurrences& error) {
    throw ConfigError(
        fmt::format("{}: expected once, found again", escaped(error.get_option_name())));
  } catch (const options::error& error) {
    throw ConfigError(
        fmt::format("{0}: {1}; see trainyard {0} --help", command, escaped(error.what())));
  }
  return values;
}

void fail_value(std::string_view what, std::string_view expected, std::string_view found,
                std::span<const std::string> candidates) {
  throw ConfigError(fmt::format("{}: expected {}, found {}{}", what, expected, in_quotes(found),
                                suggestion(found, candidates)));
}

void fail_option(std::string_view name, std::string_view expected, std::string_view found,
                 std::span<const std::string> candidates) {
  fail_value(fmt::format("--{}", name), expected, found, candidates);
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
    throw ConfigError(
        fmt::format("{0}: expected --{1}, found none; see trainyard {0} --help", command_, name));
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

std::size_t OptionReader::choice(std::string_view name, std::vector<std::string> choices,
                                 std::string_view remark) const {
  const std::optional<std::string> value = text(name);
  if (!value) {
    return 0;
  }
  const auto found = std::ranges::find(choices, *value);
  if (found == choices.end()) {
    const std::string reason = remark.empty() ? "" : fmt::format(" ({})", remark);
    fail_option(name, alternatives(choices) + reason, *value, choices);
  }
  return static_cast<std::size_t>(found - choices.begin());
}

// Of an option that may be given once, too.
std::vector<std::string> OptionReader::texts(std::string_view name) const {
  if (!given(name)) {
    return {};
  }
  const boost::any& value = values_[std::string(name)].value();
  const auto* const one = boost::any_cast<std::string>(&value);
  return one != nullptr ? std::vector{*one} : boost::any_cast<std::vector<std::string>>(value);
}

options::typed_value<std::string>* text_value(const char* name) {
  return options::value<std::string>()->value_name(name);
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

std::string alternatives(std::span<const std::string> words) {
  std::string text;
  for (std::size_t index = 0; index < words.size(); ++index) {
    const bool is_last = index + 1 == words.size();
    text += (index == 0 ? "" : is_last ? " or " : ", ") + words[index];
  }
  return text;
}

void add_cluster_options(options::options_description& all) {
  auto add = all.add_options();
  add("help", "this text");
  add("cluster", text_value("NAME|FILE"), "the cluster: a file, or a name in configs/clusters");
  add_override_options(all);
}

void add_override_options(options::options_description& all) {
  auto add = all.add_options();
  add("nodes", text_value("N"), "servers, instead of the file's number");
  add("gpus-per-node", text_value("N"), "GPUs used in each server (default: all)");
  add("set", options::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "change a value of the cluster file; may be given again");
  add("pull", options::value<std::vector<std::string>>()->composing()->value_name("A,B"),
      "pull the cables between nodes A and B, or all of node A; may be given again");
}

ClusterOverrides cluster_overrides(const OptionReader& reader) {
  check_keys("set", reader.texts("set"));
  return {.nodes = reader.integer("nodes", 1, 1'000'000),
          .gpus_per_node = reader.integer("gpus-per-node", 1, 1'000'000),
          .settings = reader.texts("set"),
          .pulls = reader.texts("pull")};
}

void add_output_options(options::options_description& all) {
  auto add = all.add_options();
  add("format", text_value("FORMAT"), "table (the default), csv or json");
  add("output", text_value("FILE"),
      "write there, whole or not at all, instead of to standard output");
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

std::optional<std::string> output_file(const OptionReader& reader, std::string_view name) {
  std::optional<std::string> value = reader.text(name);
  if (!value) {
    return std::nullopt;
  }
  const std::filesystem::path file(*value);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code error;  // What cannot be looked at is no folder either.
  if (value->empty() || !std::filesystem::is_directory(folder, error) ||
      std::filesystem::is_directory(file, error)) {
    fail_option(name, "a file in a folder that exists", *value);
  }
  check_writable(name, file);
  check_not_read({name, value}, reader);
  return value;
}

void check_writable(std::string_view option, const std::filesystem::path& file) {
  if (const std::optional<std::string> reason = unwritable_reason(file)) {
    throw ConfigError(fmt::format("--{}: expected a file that can be written, found {}: {}", option,
                                  in_quotes(file.string()), *reason));
  }
}

void check_distinct_files(const std::vector<NamedFile>& files) {
  for (std::size_t later = 0; later < files.size(); ++later) {
    for (std::size_t first = 0; first < later; ++first) {
      if (files[later].file && files[first].file &&
          is_same_file(*files[later].file, *files[first].file)) {
        fail_option(files[later].option,
                    fmt::format("another file than that of --{}", files[first].option),
                    *files[later].file);
      }
    }
  }
}

}  // namespace trainyard
