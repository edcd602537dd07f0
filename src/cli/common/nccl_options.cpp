// SPDX-License-Identifier: Apache-2.0
#include "cli/common/nccl_options.h"

#include <spdlog/fmt/fmt.h>

#include <string_view>

#include "cli/common/common.h"
#include "cli/common/runtime.h"
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

Options nccl_variables() {
  return {{"env",
           "NAME=VALUE",
           "an environment variable of NCCL; may be given again",
           {.repeats = true, .role = Role::Input, .synonyms = "environment"}},
          {"graph-file",
           "FILE.xml",
           "channels from NCCL's graph file (NCCL_GRAPH_FILE) instead of the search",
           {.role = Role::Input, .synonyms = "graph graphs"}},
          {"tuner-csv", "FILE.csv", "rows of NCCL's example tuner plugin, which override", kInput}};
}

Options nccl_options() {
  return joined({{nccl_version_option()}, nccl_variables()});
}

NcclOptions read_nccl_options(const OptionReader& reader, std::string_view topology) {
  NcclOptions read = read_nccl_variables(reader, topology);
  read.version = read_nccl_version(reader, read.notes);
  return read;
}

NcclOptions read_nccl_variables(const OptionReader& reader, std::string_view topology,
                                std::span<const std::string> more) {
  NcclOptions read;
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
