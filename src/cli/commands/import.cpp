// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/import.h"

#include <spdlog/fmt/fmt.h>

#include <boost/program_options.hpp>
#include <filesystem>
#include <optional>
#include <string_view>

#include "cli/common/common.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "sim/config_error.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/nccl_import.h"
#include "topology/exchange/smi_import.h"

namespace trainyard {
namespace {

namespace options = boost::program_options;

constexpr std::size_t kMostImportBytes = std::size_t{4} << 20;

constexpr std::string_view kImportExample = R"(
FILE is a topology file of NCCL (NCCL_TOPO_DUMP_FILE=machine.xml on the machine) or the output of
nvidia-smi topo -m. The result is a cluster file of one server (docs/commands/import.md).

Examples:
  trainyard import machine.xml --output machine.yaml
  trainyard import topo.txt --gpu A100-SXM-80GB --nic ConnectX-6 --cpu EPYC-Rome
)";

options::options_description described_import_options() {
  options::options_description all("Options");
  auto add = all.add_options();
  add("help", "this text");
  add("gpu", options::value<std::string>()->value_name("PART"),
      "part of the GPUs, where the file leaves it open");
  add("nic", options::value<std::string>()->value_name("PART"), "part of the NICs, likewise");
  add("cpu", options::value<std::string>()->value_name("PART"), "part of the CPUs, likewise");
  add("name", options::value<std::string>()->value_name("TEXT"),
      "name of the cluster; without it that of the file");
  add("output", options::value<std::string>()->value_name("FILE"),
      "write to FILE instead of standard output");
  add_log_option(all);
  return all;
}

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

}  // namespace

int run_import(std::span<const std::string> arguments, std::ostream& out) {
  const options::variables_map values =
      parse_options("import", arguments, described_import_options(), {"file"});
  const OptionReader reader("import", values);
  if (reader.given("help")) {
    out << "trainyard import FILE [options]\n\n" << described_import_options() << kImportExample;
    return 0;
  }
  const std::optional<std::string> given = reader.text("file");
  if (!given) {
    throw ConfigError("import: expected a file to read, found none; see trainyard import --help");
  }
  const std::string& file = *given;
  const ImportOptions parts{
      .gpu = reader.text("gpu"), .nic = reader.text("nic"), .cpu = reader.text("cpu")};
  const std::optional<std::string> output = output_file(reader, "output");
  const Catalogue catalogue = load_default_catalogue();
  const Imported imported = import_text(read_file(file, kMostImportBytes), file, catalogue, parts);
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
  // What is written can be read: a machine that the builder refuses is told now.
  ConfigDocument document = ConfigDocument::parse(cluster, file + ", as a cluster");
  (void)build_cluster(document, catalogue, {});
  write_output(output, cluster, out);
  return 0;
}

}  // namespace trainyard
