// SPDX-License-Identifier: Apache-2.0
#include "cli/common/nccl_options.h"

#include <spdlog/fmt/fmt.h>

#include <string_view>

#include "cli/common/common.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::size_t kMostGraphBytes = std::size_t{4} << 20;

// A file that an option and a variable can name.
std::optional<std::string> file_of(const OptionReader& reader, std::string_view option,
                                   std::string_view variable, const std::string& value) {
  std::optional<std::string> file = reader.text(option);
  if (file && !value.empty()) {
    throw ConfigError(fmt::format("--{}: expected without --env {}, found both", option, variable));
  }
  if (!file && !value.empty()) {
    file = value;
  }
  return file;
}

}  // namespace

nccl::InitOptions NcclOptions::init_options() const {
  nccl::InitOptions init{.version = version, .environment = environment};
  if (graph_file) {
    init.graph_name = *graph_file;
    init.graph_text = read_file(*graph_file, kMostGraphBytes);
  }
  return init;
}

void read_nccl_version(const OptionReader& reader, NcclOptions& read) {
  const std::optional<std::string> text = reader.text("nccl-version");
  if (!text) {
    return;
  }
  const std::optional<nccl::ParsedVersion> version = nccl::parse_version(*text);
  if (!version) {
    fail_option("nccl-version", "a release such as 2.30.7, 2.28.9 or 2.27.7", *text);
  }
  read.version = version->known;
  if (!version->exact) {
    read.notes.push_back(
        fmt::format("NCCL {} is planned as {}, the nearest release whose rules are known", *text,
                    to_string(version->known)));
  }
}

Options nccl_options() {
  return {
      {"nccl-version", "V", "2.30.7 (the default), 2.28.9 or 2.27.7"},
      {"env", "NAME=VALUE", "an environment variable of NCCL; may be given again", kRepeatedInput},
      {"graph-file", "FILE.xml", "channels from NCCL's graph file instead of the search", kInput},
      {"tuner-csv", "FILE.csv", "rows of NCCL's example tuner plugin, which override", kInput}};
}

NcclOptions read_nccl_options(const OptionReader& reader, std::string_view topology,
                              std::span<const std::string> more) {
  NcclOptions read;
  read_nccl_version(reader, read);
  std::vector<std::string> assignments = reader.texts("env");
  assignments.insert(assignments.end(), more.begin(), more.end());
  read.environment = nccl::Environment::parse(assignments);
  if (!read.environment.topology_file.empty()) {
    throw ConfigError(fmt::format("--env: expected {}, found NCCL_TOPO_FILE", topology));
  }
  read.graph_file = file_of(reader, "graph-file", "NCCL_GRAPH_FILE", read.environment.graph_file);
  read.tuner_file =
      file_of(reader, "tuner-csv", "NCCL_TUNER_CONFIG_FILE", read.environment.tuner_config_file);
  return read;
}

}  // namespace trainyard
