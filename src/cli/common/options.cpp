// SPDX-License-Identifier: Apache-2.0
#include "cli/common/options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/host_threads.h"
#include "report/formats/output.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 6> kConfigs{"clusters", "workloads", "workloads/models",
                                                   "traffic",  "transport", "sweeps"};

// The same file, by whatever path; both may be missing.
bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code error;  // Ignored: a missing file equals no existing one.
  const auto whole = [&](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file, error), error);
  };
  return std::filesystem::equivalent(one, other, error) || whole(one) == whole(other);
}

bool is_read_as(const std::string& output, const std::string& value) {
  if (value.empty()) {
    return false;
  }
  std::error_code error;
  if (std::filesystem::is_directory(value, error)) {
    return is_same_file(std::filesystem::absolute(output, error).parent_path().string(), value);
  }
  return is_same_file(output, value) ||
         std::any_of(kConfigs.begin(), kConfigs.end(), [&](std::string_view kind) {
           return is_same_file(output, (configs_folder() / kind / (value + ".yaml")).string());
         });
}

}  // namespace

void fail_value(std::string_view what, std::string_view expected, std::string_view found,
                std::span<const std::string> candidates) {
  throw ConfigError(fmt::format("{}: expected {}, found {}{}", what, expected, in_quotes(found),
                                did_you_mean(found, candidates)));
}

void fail_option(std::string_view name, std::string_view expected, std::string_view found,
                 std::span<const std::string> candidates) {
  fail_value(fmt::format("--{}", name), expected, found, candidates);
}

bool OptionReader::given(std::string_view name) const {
  reads_.emplace(name);
  return values_.contains(name);
}

std::optional<std::string> OptionReader::text(std::string_view name) const {
  reads_.emplace(name);
  const auto found = values_.find(name);
  return found != values_.end() ? std::optional(found->second.front()) : std::nullopt;
}

std::string OptionReader::required_text(std::string_view name, std::string_view expected) const {
  const std::optional<std::string> value = text(name);
  if (!value) {
    throw ConfigError(
        fmt::format("{0}: expected {1}, found none; see trainyard {0} --help", command_.name,
                    expected.empty() ? fmt::format("--{}", name) : std::string(expected)));
  }
  return *value;
}

std::optional<int> OptionReader::integer(std::string_view name, int min, int max) const {
  const std::optional<std::string> value = text(name);
  if (!value) {
    return std::nullopt;
  }
  const std::optional<int> number = parse_number<int>(*value);
  if (!number || *number < min || *number > max) {
    fail_option(name, fmt::format("a whole number from {} to {}", min, max), *value);
  }
  return number;
}

std::optional<Bytes> OptionReader::message_size(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  if (!value) {
    return std::nullopt;
  }
  // 4 TiB a rank: no GPU memory is within a factor of ten of it.
  constexpr Bytes kMax = gib(4096);
  try {
    const Bytes size = parse_message_size(*value);
    if (size >= Bytes(1) && size <= kMax) {
      return size;
    }
  } catch (const UnitError&) {
    // Falls through to the same error: what was expected is the same.
  }
  fail_option(name, "a size from 1 to 4096G, such as 8, 64K, 1G or 25MiB", *value);
}

std::size_t OptionReader::choice(std::string_view name) const {
  const std::vector<std::string> choices = choices_of(*this, name);
  const std::string value = chosen(name);
  const auto found = std::ranges::find(choices, value);
  if (found == choices.end()) {
    fail_option(name, alternatives(choices), value, choices);
  }
  return static_cast<std::size_t>(found - choices.begin());
}

void OptionReader::assume(std::string_view name, std::string value, std::string reason) {
  CHECK(!values_.contains(name), "what is given is not assumed");
  values_[std::string(name)] = {std::move(value)};
  reasons_[std::string(name)] = std::move(reason);
}

std::string OptionReader::reason(std::string_view name) const {
  const auto found = reasons_.find(name);
  return found == reasons_.end() ? "" : found->second;
}

std::string OptionReader::word(std::string_view name) const {
  return choices_of(*this, name).at(choice(name));
}

std::string OptionReader::chosen(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() ? found->second.front() : choices_of(*this, name).front();
}

std::vector<std::string> OptionReader::texts(std::string_view name) const {
  reads_.emplace(name);
  const auto found = values_.find(name);
  return found != values_.end() ? found->second : std::vector<std::string>();
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

std::vector<int> index_list(std::string_view text) {
  constexpr int kMaxIndex = 999'999;
  const auto index = [](std::string_view number) {
    const std::optional<int> value = parse_number<int>(number);
    return value && number.front() != '-' && *value <= kMaxIndex ? value : std::nullopt;
  };
  std::vector<int> indices;
  for (const std::string& part : split_list(text)) {
    const std::string_view range = std::string_view(part).substr(0, part.find(':'));
    const std::size_t dash = range.find('-');
    const auto first = index(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : index(range.substr(dash + 1));
    const auto step = range.size() == part.size()
                          ? std::optional(1)
                          : index(std::string_view(part).substr(range.size() + 1));
    const bool is_vain_step = range.size() < part.size() && dash == std::string_view::npos;
    if (!first || !last || *last < *first || !step || *step == 0 || is_vain_step) {
      return {};
    }
    for (int next = *first; next <= *last; next += *step) {
      indices.push_back(next);
    }
  }
  return indices;
}

std::string alternatives(std::span<const std::string> words) {
  std::string text;
  for (std::size_t index = 0; index < words.size(); ++index) {
    const bool is_last = index + 1 == words.size();
    text += (index == 0 ? "" : is_last ? " or " : ", ") + words[index];
  }
  return text;
}

Options cluster_options() {
  return joined(
      {{{"cluster",
         "NAME|FILE",
         "the cluster: a file, or a name in configs/clusters",
         {.role = Role::Input, .names = "clusters", .synonyms = "machine system topology"}}},
       override_options()});
}

// Settings that people take for options.
constexpr std::string_view kSettingWords =
    "tp=plan.tensor=N tensor=plan.tensor=N pp=plan.pipeline=N pipeline=plan.pipeline=N "
    "cp=plan.context=N ep=plan.expert=N zero=plan.zero_stage=N micro-batch=batch.micro=N "
    "global-batch=batch.global=N routing=fabric.routing=NAME "
    "oversubscription=fabric.oversubscription=N nics=server.nics=N gpu=server.gpu=NAME "
    "sequence=batch.sequence=N";

Option parts_option() {
  return {"parts",
          "FILE|DIR",
          "parts of your own: a YAML file, or a folder of them; may be given again",
          {.repeats = true, .role = Role::Input, .synonyms = "hardware catalogue catalog"}};
}

Options override_options() {
  return {
      {"nodes",
       "N",
       "servers, instead of the file's number",
       {.synonyms = "servers hosts num-nodes gpus"}},
      {"gpus-per-node",
       "N",
       "GPUs used in each server (default: all)",
       {.synonyms = "gpus gpus-per-server"}},
      {"set",
       "KEY=VALUE",
       "change a value of the cluster file; may be given again",
       {.repeats = true, .role = Role::Input, .names = "cluster-keys", .synonyms = kSettingWords}},
      parts_option(),
      {"pull", "A,B", "pull the cables between nodes A and B, or all of node A; may be given again",
       kRepeated}};
}

ClusterOverrides cluster_overrides(const OptionReader& reader) {
  check_keys("set", reader.texts("set"));
  return {.nodes = reader.integer("nodes", 1, 1'000'000),
          .gpus_per_node = reader.integer("gpus-per-node", 1, 1'000'000),
          .settings = reader.texts("set"),
          .pulls = reader.texts("pull"),
          .parts = reader.texts("parts")};
}

Option estimates_option() {
  return {
      "estimates", "",
      "list the values of the cluster's parts that nobody has measured or published, with their "
      "sources",
      kResult};
}

Option seed_option(std::string_view help) {
  return {"seed", "N", help, {.synonyms = "random-seed"}};
}

std::optional<std::uint64_t> read_seed(const OptionReader& reader) {
  const std::optional<int> seed = reader.integer("seed", 0, 2'147'483'647);
  return seed ? std::optional(static_cast<std::uint64_t>(*seed)) : std::nullopt;
}

Option threads_option() {
  return {"threads",
          "N",
          "how much runs at once (default: all cores); never changes a result",
          {.synonyms = "jobs cores"}};
}

unsigned read_threads(const OptionReader& reader) {
  return static_cast<unsigned>(threads_for_host(reader.integer("threads", 1, 1'024)).value_or(0));
}

Options size_options(std::string_view needs) {
  constexpr std::string_view kWords = "size sizes bytes";
  return with_needs(
      needs,
      {{"minbytes", "SIZE", "least message size (default 8)", {.letter = 'b', .synonyms = kWords}},
       {"maxbytes", "SIZE", "greatest size (default 1G)", {.letter = 'e', .synonyms = kWords}},
       {"stepfactor",
        "N",
        "factor between sizes (default 2)",
        {.letter = 'f', .synonyms = "factor"}}});
}

Options output_options() {
  return {{"format",
           "FORMAT",
           "table, csv or json (default: as --output ends, else table)",
           {.role = Role::Result, .choices = "table|csv|json", .synonyms = kFormatWords}},
          effects_option(),
          output_file_option(),
          {"report", "FILE.html",
           "the result as a page that opens without a network; needs libjs-d3", kResult}};
}

Option output_file_option() {
  return {"output",
          "FILE",
          "write there, whole or not at all, instead of to standard output",
          {.letter = 'o', .role = Role::Result, .synonyms = "out outfile output-file"}};
}

Format output_format(const OptionReader& reader) {
  if (!reader.given("format") && reader.given("output")) {
    const std::string ending = std::filesystem::path(*reader.text("output")).extension();
    if (const auto format = parse_format(ending.substr(ending.empty() ? 0 : 1))) {
      return *format;
    }
  }
  return static_cast<Format>(reader.choice("format"));
}

std::optional<std::string> output_file(const OptionReader& reader, std::string_view name) {
  std::optional<std::string> value = reader.text(name);
  if (!value) {
    return std::nullopt;
  }
  const std::filesystem::path file(*value);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code error;  // Ignored: a path that cannot be looked at is no folder.
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

void check_not_read(const NamedFile& output, const Command& command, std::string_view input,
                    const std::string& value) {
  std::error_code error;
  const Option* const row = command.find(input);
  if (row == nullptr || row->traits.role != Role::Input || input == output.option || !output.file ||
      !std::filesystem::is_regular_file(*output.file, error)) {
    return;
  }
  const std::size_t sign = value.find('=');
  const std::string assigned = sign == std::string::npos ? "" : value.substr(sign + 1);
  for (const std::string& part : {value, value.substr(0, value.rfind('@')), assigned}) {
    if (is_read_as(*output.file, part)) {
      fail_option(output.option,
                  command.is_argument(input) ? "another file than one that is read"
                                             : fmt::format("another file than that of --{}", input),
                  *output.file);
    }
  }
}

void check_not_read(const NamedFile& output, const OptionReader& reader) {
  const Command& command = reader.command();
  for (const auto& [name, texts] : reader.values()) {
    for (const std::string& value : texts) {
      check_not_read(output, command, name, value);
    }
  }
}

void check_keys(std::string_view name, const std::vector<std::string>& settings) {
  std::set<std::string> keys;
  for (const std::string& setting : settings) {
    const std::string key = setting.substr(0, setting.find('='));
    if (!keys.insert(key).second) {
      throw ConfigError(fmt::format("--{} {}: expected once, found again", name, escaped(key)));
    }
  }
}

void check_gpus_per_process(int gpus, const Cluster& cluster) {
  for (const int of_node : cluster.server_gpus) {
    if (of_node % gpus != 0) {
      fail_option("gpus-per-process",
                  fmt::format("a number that divides the {} GPUs of a node", of_node),
                  std::to_string(gpus));
    }
  }
}

}  // namespace trainyard
