// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <optional>
#include <string_view>

#include "cli/common/common.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "sim/config_error.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/import_parts.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxImportBytes = std::size_t{4} << 20;

constexpr std::string_view kImportExample = R"(
FILE is a topology file of NCCL (NCCL_TOPO_DUMP_FILE=machine.xml on the machine) or the output of
nvidia-smi topo -m. The result is a cluster file of one server (docs/commands/import.md).

Examples:
  trainyard import machine.xml --output machine.yaml
  trainyard import topo.txt --gpu A100-SXM-80GB --nic ConnectX-6 --cpu EPYC-Rome
)";

struct Imported {
  ImportedServer server;
  std::string_view format;
};

Imported import_text(const std::string& text, const std::string& file, const Catalogue& catalogue,
                     const ImportOptions& parts) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool is_xml = start != std::string::npos && (text[start] == '<' || text[start] == '\xef');
  if (is_xml) {
    return {import_nccl_xml(read_nccl_xml(text, file), catalogue, parts, file),
            "a topology file of NCCL"};
  }
  if (looks_like_smi_matrix(text)) {
    return {import_smi_matrix(read_smi_matrix(text, file), catalogue, parts, file),
            "the matrix of nvidia-smi topo -m"};
  }
  throw ConfigError(fmt::format(
      "{}: expected a topology file of NCCL or the output of nvidia-smi topo -m, found neither",
      file));
}

int run_import(const OptionReader& reader, std::ostream& out) {
  const std::string file = reader.required_text("file", "a file to read");
  const ImportOptions parts{
      .gpu = reader.text("gpu"), .nic = reader.text("nic"), .cpu = reader.text("cpu")};
  const std::optional<std::string> output = output_file(reader, "output");
  const Catalogue& catalogue = load_default_catalogue();
  const Imported imported = import_text(read_file(file, kMaxImportBytes), file, catalogue, parts);
  const std::filesystem::path path(file);
  spdlog::logger logger = make_logger(reader);
  for (const std::string& remark : imported.server.remarks) {
    logger.warn("{}: {}", file, remark);
  }
  const std::string cluster = to_cluster_yaml(
      imported.server.tree, catalogue,
      {.name = reader.text("name").value_or(path.stem().string()),
       .source = fmt::format("Imported from {}, {}.", path.filename().string(), imported.format),
       .remarks = imported.server.remarks});
  // The output must be readable: a machine that the builder refuses is told now.
  ConfigDocument document = ConfigDocument::parse(cluster, file + ", as a cluster");
  (void)build_cluster(document, catalogue, {});
  write_output(output, cluster, out);
  return 0;
}

}  // namespace

Command import_command() {
  return {.name = "import",
          .form = "import FILE",
          .summary = "a cluster file from NCCL's topology file or nvidia-smi topo -m",
          .usage = "import FILE [options]",
          .arguments = {{.name = "file", .traits = kInput}},
          .options =
              joined({Options{{"gpu", "PART", "part of the GPUs, where the file leaves it open"},
                              {"nic", "PART", "part of the NICs, likewise"},
                              {"cpu", "PART", "part of the CPUs, likewise"},
                              {"name", "TEXT", "name of the cluster; without it that of the file"},
                              output_file_option()},
                      log_options()}),
          .example = kImportExample,
          .run = run_import};
}

}  // namespace trainyard
