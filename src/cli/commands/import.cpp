// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "sim/config_error.h"
#include "sim/printable.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/accelerator_tables.h"
#include "topology/exchange/hwloc_xml.h"
#include "topology/exchange/import_parts.h"
#include "topology/exchange/simulated_network.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxImportBytes = std::size_t{64} << 20;

constexpr std::string_view kImportExample = R"(
FILE is a topology file of NCCL or RCCL (NCCL_TOPO_DUMP_FILE=machine.xml on the machine), what
lstopo --of xml (hwloc) wrote, or the output of nvidia-smi topo -m, rocm-smi --showtopo or hl-smi
topo -c -N, also as it was pasted into a page. The result is a cluster file of one server. Of a
topology of ns-3 (HPCC, SimAI) or htsim it is one with all servers and the fabric
(docs/commands/import.md).

Examples:
  trainyard import machine.xml --output machine.yaml
  trainyard import topo.txt --gpu A100-SXM-80GB --nic ConnectX-6 --cpu EPYC-Rome
  trainyard import fat_tree.topo --gpu H100-SXM --output fat-tree.yaml
)";

// A file of another kind that is easily taken for a topology, and what it is.
struct OtherFile {
  std::string_view root;  // Its XML begins with this element.
  std::string_view sentence;
};
constexpr std::array kOtherFiles = {
    OtherFile{"graphs",
              "a graph file of NCCL, which holds channels and no machine; --graph-file of "
              "collective takes it beside a cluster"},
    OtherFile{"algo",
              "a schedule of MSCCL, which holds no machine; --algo-file of collective takes "
              "it beside a cluster"},
    OtherFile{"nvidia_smi_log",
              "the output of nvidia-smi -q -x, which does not say how devices are "
              "joined"}};

// The name of the first element of XML, behind declarations and comments; empty for other text.
std::string_view root_element(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || text[start] != '<') {
    return "";
  }
  text.remove_prefix(start);
  while (text.starts_with("<!--") || text.starts_with("<?") || text.starts_with("<!")) {
    const std::string_view end = text.starts_with("<!--") ? "-->" : ">";
    const std::size_t after = text.find(end);
    const std::size_t next =
        after == std::string_view::npos ? after : text.find('<', after + end.size());
    if (next == std::string_view::npos) {
      return "system";  // The reader says what is wrong with it.
    }
    text.remove_prefix(next);
  }
  return text.substr(1, text.find_first_of(" \t\r\n/>", 1) - 1);
}

[[noreturn]] void fail_format(const std::string& file, std::string_view found) {
  throw ConfigError(
      fmt::format("{}: expected a topology file of NCCL, RCCL, ns-3 or htsim, lstopo --of xml, or "
                  "the output of "
                  "nvidia-smi topo -m, rocm-smi --showtopo or hl-smi topo -c -N, found {}",
                  file, found));
}

// Makes the cluster file of what one file says.
class FileImport {
 public:
  FileImport(const std::string& file, const Catalogue& catalogue, ImportOptions parts,
             std::optional<std::string> name)
      : file_(file), catalogue_(catalogue), parts_(std::move(parts)), name_(std::move(name)) {}

  std::string read(const std::string& text) {
    if (looks_like_hpcc_topology(text)) {
      return network(read_hpcc_topology(text, file_), "a topology of ns-3");
    }
    if (looks_like_htsim_topology(text)) {
      return network(read_htsim_topology(text, file_), "a topology of htsim");
    }
    if (looks_like_rocm_smi(text)) {
      return matrix(read_rocm_smi(text, file_), "the output of rocm-smi --showtopo");
    }
    if (looks_like_hl_smi(text)) {
      return matrix(read_hl_smi(text, file_), "the output of hl-smi topo -c -N");
    }
    if (looks_like_p2p_matrix(text)) {
      fail_format(file_,
                  "that of nvidia-smi topo -p2p, which says who may access whom, not where "
                  "devices are");
    }
    if (looks_like_smi_matrix(text)) {
      return matrix(read_smi_matrix(text, file_), "the matrix of nvidia-smi topo -m");
    }
    // Pages that a table was pasted into may begin like XML, too.
    if (const std::string_view root = root_element(text); !root.empty()) {
      return read_xml(text, root);
    }
    fail_format(file_, "none of them");
  }

  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  std::string read_xml(const std::string& text, std::string_view root) {
    const auto other = std::ranges::find(kOtherFiles, root, &OtherFile::root);
    if (other != kOtherFiles.end()) {
      fail_format(file_, other->sentence);
    }
    const bool is_hwloc = root == "topology";
    const NcclSystem system = is_hwloc ? read_hwloc_xml(text, file_) : read_nccl_xml(text, file_);
    return server(import_nccl_xml(system, catalogue_, parts_, file_),
                  is_hwloc              ? "written by lstopo (hwloc)"
                  : system.version == 2 ? "a topology file of RCCL"
                                        : "a topology file of NCCL");
  }
  std::string matrix(const SmiMatrix& matrix, std::string_view format) {
    return server(import_smi_matrix(matrix, catalogue_, parts_, file_), format);
  }
  std::string server(const ImportedServer& server, std::string_view format) {
    remarks_ = server.remarks;
    return to_cluster_yaml(server.tree, catalogue_, text(format));
  }
  std::string network(SimulatedNetwork network, std::string_view format) {
    const std::string gpu = complete_network(network, catalogue_, parts_, file_);
    remarks_ = network.remarks;
    return to_cluster_yaml(network, catalogue_, gpu, text(format));
  }
  [[nodiscard]] ClusterText text(std::string_view format) const {
    const std::filesystem::path path(file_);
    return {.name = name_.value_or(path.stem().string()),
            .source = fmt::format("Imported from {}, {}.", path.filename().string(), format),
            .remarks = remarks_};
  }

  const std::string& file_;
  const Catalogue& catalogue_;
  ImportOptions parts_;
  std::optional<std::string> name_;
  std::vector<std::string> remarks_;
};

int run_import(const OptionReader& reader, std::ostream& out) {
  const std::string file = reader.required_text("file", "a file to read");
  ImportOptions parts{
      .gpu = reader.text("gpu"), .nic = reader.text("nic"), .cpu = reader.text("cpu")};
  if (const std::optional<std::string> bus_ids = reader.text("nic-at")) {
    parts.nics_at =
        *bus_ids == "none" ? std::vector<std::string>{} : split_list(lower_case(*bus_ids));
  }
  const std::optional<std::string> output = output_file(reader, "output");
  const Catalogue& catalogue = load_default_catalogue();
  FileImport import(file, catalogue, std::move(parts), reader.text("name"));
  const std::string cluster = import.read(read_file(file, kMaxImportBytes));
  spdlog::logger logger = make_logger(reader);
  for (const std::string& remark : import.remarks()) {
    logger.warn("{}: {}", file, remark);
  }
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
          .summary = "a cluster file from topologies of NCCL, ns-3, htsim or nvidia-smi topo -m",
          .usage = "import FILE [options]",
          .arguments = {{.name = "file", .traits = kInput}},
          .options =
              joined({Options{{"gpu",
                               "PART",
                               "part of the GPUs, where the file leaves it open",
                               {.names = "gpus"}},
                              {"nic", "PART", "part of the NICs, likewise", {.names = "nics"}},
                              {"cpu", "PART", "part of the CPUs, likewise", {.names = "cpus"}},
                              {"nic-at", "BUS-ID,...|none",
                               "which devices without a class are NICs; the others are GPUs"},
                              {"name", "TEXT", "name of the cluster; without it that of the file"},
                              output_file_option()},
                      log_options()}),
          .example = kImportExample,
          .run = run_import};
}

}  // namespace trainyard
