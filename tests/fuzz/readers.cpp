// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "calibration/machine/measurement_file.h"
#include "calibration/measured/measurement.h"
#include "calibration/measured/nccl_log.h"
#include "calibration/measured/pasted_output.h"
#include "cli/common/commands.h"
#include "cli/common/common.h"
#include "cli/compare/comparisons.h"
#include "cli/sweep/sweep_file.h"
#include "cli/sweep/sweep_journal.h"
#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_rules.h"
#include "collectives/msccl/msccl_schedule.h"
#include "collectives/msccl/mscclpp_schedule.h"
#include "collectives/schedule/message_file.h"
#include "nccl/tuning/graph_xml.h"
#include "nccl/tuning/tuner_csv.h"
#include "network/engines/packet_profile.h"
#include "network/traffic/traffic_trace.h"
#include "parallelism/trace_import/imported_workload.h"
#include "parallelism/workload/workload.h"
#include "support/program.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/accelerator_tables.h"
#include "topology/exchange/hwloc_xml.h"
#include "topology/exchange/import_parts.h"
#include "topology/exchange/simulated_network.h"

namespace trainyard {
namespace {

// A small cluster for what needs one.
const Cluster& some_cluster() {
  static const Cluster kCluster = load_cluster(configs_folder() / "clusters" / "dgx-a100.yaml",
                                               load_default_catalogue(), {.nodes = 2});
  return kCluster;
}

void read_cluster(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "fuzz.yaml");
  static_cast<void>(build_cluster(document, load_default_catalogue(), {}));
}

void read_parts(const std::string& text) {
  const ScratchFolder folder;
  Catalogue catalogue = load_default_catalogue();
  catalogue.add(folder.write("parts.yaml", text));
}

void read_workload(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "fuzz.yaml");
  static_cast<void>(build_workload(document, configs_folder() / "workloads" / "models"));
}

void read_traffic_file(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "fuzz.yaml");
  static_cast<void>(
      read_traffic(document, some_cluster(),
                   {.shipped_sizes = configs_folder() / "traffic" / "sizes", .seed = {}}));
}

// With the base of the shipped transports beside it.
void read_transport(const std::string& text) {
  const std::filesystem::path shipped = configs_folder() / "transport";
  const ScratchFolder folder;
  std::filesystem::copy_file(shipped / "default.yaml", folder.path() / "default.yaml");
  static_cast<void>(load_packet_options(folder.write("fuzz.yaml", text), shipped));
}

void read_mpi_rules(const std::string& text) {
  const ScratchFolder folder;
  static_cast<void>(MpiRules::load(folder.write("fuzz.yaml", text)));
}

void read_mpi_profile(const std::string& text) {
  const ScratchFolder folder;
  static_cast<void>(MpiProfile::load(folder.write("fuzz.yaml", text)));
}

void read_sweep_file(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "fuzz.yaml");
  const std::vector<Command> commands = all_commands();
  static_cast<void>(read_sweep(document, commands));
}

void read_measured_table(const std::string& text) {
  static_cast<void>(parse_measurement(text, "fuzz.yaml"));
}

void read_flows(const std::string& text, TraceFormat format) {
  const ScratchFolder folder;
  const Cluster& cluster = some_cluster();
  const TrafficDevices devices(cluster);
  static_cast<void>(read_trace(folder.write("flows", text), format, devices, cluster.gpus));
}

void read_nccl_topology(const std::string& text) {
  const NcclSystem system = read_nccl_xml(text, "fuzz.xml");
  static_cast<void>(import_nccl_xml(system, load_default_catalogue(), {}, "fuzz.xml"));
}

void read_hwloc(const std::string& text) {
  const NcclSystem system = read_hwloc_xml(text, "fuzz.xml");
  static_cast<void>(import_nccl_xml(system, load_default_catalogue(),
                                    {.gpu = "H100-SXM", .cpu = "EPYC-Rome"}, "fuzz.xml"));
}

void read_matrix(const std::string& text) {
  const SmiMatrix matrix = read_smi_matrix(text, "fuzz.txt");
  static_cast<void>(import_smi_matrix(matrix, load_default_catalogue(),
                                      {.gpu = "A100-SXM-80GB", .nic = "ConnectX-6"}, "fuzz.txt"));
}

void read_accelerators(const std::string& text) {
  const bool is_rocm = looks_like_rocm_smi(text);
  const SmiMatrix matrix =
      is_rocm ? read_rocm_smi(text, "fuzz.txt") : read_hl_smi(text, "fuzz.txt");
  static_cast<void>(import_smi_matrix(matrix, load_default_catalogue(),
                                      {.gpu = is_rocm ? "MI300X" : "Gaudi2", .cpu = "EPYC-Rome"},
                                      "fuzz.txt"));
}

void read_network(SimulatedNetwork network) {
  constexpr std::uint32_t kMostHosts = 256;  // Larger ones are valid and take long.
  if (network.hosts > kMostHosts) {
    return;
  }
  const Catalogue& catalogue = load_default_catalogue();
  const std::string gpu = complete_network(network, catalogue, {.gpu = "H100-SXM"}, "fuzz.txt");
  read_cluster(to_cluster_yaml(network, catalogue, gpu, {.name = "fuzz", .source = "fuzz"}));
}

void read_graphs(const std::string& text) {
  const nccl::GraphNames names{.gpus = {0x1000, 0x2000}, .nics = {{0, 0}}};
  static_cast<void>(nccl::read_graph_xml(text, "fuzz.xml", names));
}

void read_tuner(const std::string& text) {
  static_cast<void>(nccl::TunerTable::parse(text, "fuzz.csv"));
}

void read_msccl(const std::string& text) {
  static_cast<void>(msccl_schedule(read_msccl_xml(text, "fuzz.xml"), "fuzz.xml"));
}

void read_messages(const std::string& text) {
  static_cast<void>(read_message_file(text, "fuzz.yaml"));
}

void read_plan(const std::string& text) {
  static_cast<void>(mscclpp_schedule(read_mscclpp_plan(text, "fuzz.json"), "fuzz.json"));
}

void read_log(const std::string& text) {
  std::vector<std::string> damage;
  static_cast<void>(parse_nccl_log(text, "fuzz.log", &damage));
}

void read_pasted(const std::string& text) {
  if (const std::optional<PastedTool> tool = pasted_tool(text)) {
    static_cast<void>(parse_pasted(text, *tool, "fuzz.log"));
  }
}

void read_harness(const std::string& text) {
  static_cast<void>(read_measurements(text, "fuzz.json"));
}

// The ranks of two servers of four.
void read_workload_of(ImportedFormat format, const std::string& text) {
  constexpr std::array kServers{0, 0, 0, 0, 1, 1, 1, 1};
  static_cast<void>(read_imported({{.name = "fuzz", .rank = std::nullopt, .text = text}}, format,
                                  {.server_of_gpu = kServers}));
}

void read_result(const std::string& text) {
  const ScratchFolder folder;
  const std::string file = folder.write("result.json", text).string();
  static_cast<void>(compare_results(file, file));
}

void read_journal(const std::string& text) {
  const ScratchFolder folder;
  folder.write("out.csv.partial", "{\"sweep\":42}\n" + text);
  static_cast<void>(read_journals((folder.path() / "out.csv").string(), 42, true));
}

constexpr std::array kReaders{
    FuzzedReader{"cluster", "configs/clusters", 150, read_cluster},
    FuzzedReader{"parts", "", 300, read_parts},
    FuzzedReader{"workload", "configs/workloads", 600, read_workload},
    FuzzedReader{"traffic", "configs/traffic", 800, read_traffic_file},
    FuzzedReader{"transport", "configs/transport", 800, read_transport},
    FuzzedReader{"mpi-rules", "configs/mpi/open-mpi-4.1.yaml", 800, read_mpi_rules},
    FuzzedReader{"mpi-profile", "configs/mpi/profile.yaml", 800, read_mpi_profile},
    FuzzedReader{"sweep", "configs/sweeps", 500, read_sweep_file},
    FuzzedReader{"measured-table", "validation/nccl", 600, read_measured_table},
    FuzzedReader{"flows-csv", "", 2000,
                 [](const std::string& text) { read_flows(text, TraceFormat::Csv); }},
    FuzzedReader{"flows-hpcc", "", 2000,
                 [](const std::string& text) { read_flows(text, TraceFormat::Hpcc); }},
    FuzzedReader{"nccl-topology", "tests/golden/dgx-a100.xml tests/topology/data", 600,
                 read_nccl_topology},
    FuzzedReader{"hwloc", "", 1000, read_hwloc},
    FuzzedReader{"matrix", "", 2000, read_matrix},
    FuzzedReader{"accelerators", "", 2000, read_accelerators},
    FuzzedReader{
        "hpcc-topology", "", 500,
        [](const std::string& text) { read_network(read_hpcc_topology(text, "fuzz.txt")); }},
    FuzzedReader{
        "htsim-topology", "", 500,
        [](const std::string& text) { read_network(read_htsim_topology(text, "fuzz.txt")); }},
    FuzzedReader{"nccl-graphs", "", 3000, read_graphs},
    FuzzedReader{"tuner", "", 5000, read_tuner},
    FuzzedReader{"msccl", "configs/algorithms", 300, read_msccl},
    FuzzedReader{"mscclpp", "", 500, read_plan},
    FuzzedReader{"messages", "configs/algorithms/messages", 800, read_messages},
    FuzzedReader{"nccl-log", "tests/golden/calibrate tests/golden/nvls-off-1x8-h100.log", 2000,
                 read_log},
    FuzzedReader{"pasted", "", 5000, read_pasted},
    FuzzedReader{"harness", "", 2000, read_harness},
    FuzzedReader{"goal", "configs/workloads/imported/dissemination-8.goal", 2000,
                 [](const std::string& text) { read_workload_of(ImportedFormat::Goal, text); }},
    FuzzedReader{"simai", "configs/workloads/imported/transformer-tp2-dp4.txt", 500,
                 [](const std::string& text) { read_workload_of(ImportedFormat::SimAi, text); }},
    FuzzedReader{"kineto", "configs/workloads/imported/kineto-2", 1000,
                 [](const std::string& text) { read_workload_of(ImportedFormat::Kineto, text); }},
    FuzzedReader{"nsight", "", 1000,
                 [](const std::string& text) { read_workload_of(ImportedFormat::Kineto, text); }},
    FuzzedReader{"chakra", "configs/workloads/imported/chakra-2", 1000,
                 [](const std::string& text) { read_workload_of(ImportedFormat::Chakra, text); }},
    FuzzedReader{"result", "", 1000, read_result},
    FuzzedReader{"journal", "", 1000, read_journal},
};

void add_files(const std::filesystem::path& place, std::vector<std::filesystem::path>& files) {
  if (std::filesystem::is_regular_file(place)) {
    files.push_back(place);
  } else if (std::filesystem::is_directory(place)) {
    for (const auto& entry : std::filesystem::directory_iterator(place)) {
      if (entry.is_regular_file()) {
        files.push_back(entry.path());
      }
    }
  }
}

}  // namespace

std::span<const FuzzedReader> fuzzed_readers() {
  return kReaders;
}

std::vector<std::filesystem::path> seeds_of(const FuzzedReader& reader,
                                            const std::filesystem::path& root) {
  std::vector<std::filesystem::path> files;
  std::istringstream places{std::string(reader.seeds)};
  for (std::string place; places >> place;) {
    add_files(root / place, files);
  }
  for (const char* const folder : {"seeds", "found"}) {
    add_files(root / "tests/fuzz" / folder / reader.name, files);
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace trainyard
