// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/accelerator_tables.h"

#include <random>
#include <string>
#include <vector>

#include "support/damage.h"
#include "support/imported.h"

namespace trainyard {
namespace {

// Two pairs with a link each; 30 is the weight of two hops, 40 that of PCIe.
const std::string kRocm =
    "user@host:~$ rocm-smi --showtopo\n"
    "\n"
    "=========== ROCm System Management Interface ===========\n"
    "=============== Weight between two GPUs ================\n"
    "       GPU0   GPU1   GPU2   GPU3   \n"
    "GPU0   0      15     30     40     \n"
    "GPU1   15     0      40     40     \n"
    "GPU2   30     40     0      15     \n"
    "GPU3   40     40     15     0      \n"
    "\n"
    "============== Link Type between two GPUs ==============\n"
    "       GPU0   GPU1   GPU2   GPU3   \n"
    "GPU0   0      XGMI   XGMI   PCIE   \n"
    "GPU1   XGMI   0      PCIE   PCIE   \n"
    "GPU2   XGMI   PCIE   0      XGMI   \n"
    "GPU3   PCIE   PCIE   XGMI   0      \n"
    "\n"
    "====================== Numa Nodes ======================\n"
    "GPU[0]\t\t: (Topology) Numa Node: 0\n"
    "GPU[0]\t\t: (Topology) Numa Affinity: 0\n"
    "GPU[1]\t\t: (Topology) Numa Node: 0\n"
    "GPU[1]\t\t: (Topology) Numa Affinity: 0\n"
    "GPU 2 \t\t: (Topology) Numa Node: 1\n"
    "GPU[3]\t\t: (Topology) Numa Node: 1\n"
    "================= End of ROCm SMI Log ==================\n";

const std::string kModules =
    "modID   CPU Affinity    NUMA Affinity    \n"
    "-----   ------------    -------------    \n"
    "0       0-39, 80-119    0  \n"
    "1       0-39, 80-119    0  \n"
    "2       40-79, 120-159          1  \n"
    "3       40-79, 120-159          1  \n";

ImportedServer import_rocm(const std::string& text, const ImportOptions& options) {
  return import_smi_matrix(read_rocm_smi(text, "t.txt"), shipped_catalogue(), options, "t.txt");
}

std::string error_of_rocm(const std::string& text) {
  return complaint([&] { return read_rocm_smi(text, "t.txt"); });
}

std::string error_of_modules(const std::string& text) {
  return complaint([&] { return read_hl_smi(text, "t.txt"); });
}

}  // namespace

TEST_CASE("rocm-smi --showtopo is a matrix of direct links and NUMA nodes") {
  REQUIRE(looks_like_rocm_smi(kRocm));
  REQUIRE_FALSE(looks_like_rocm_smi(kModules));
  const SmiMatrix matrix = read_rocm_smi(kRocm, "t.txt");
  REQUIRE(matrix.devices.size() == 4);
  REQUIRE(matrix.devices[2].numa_affinity == "1");
  REQUIRE(matrix.cells[0][1] == SmiCell{SmiDistance::NvLink, 1});
  REQUIRE(matrix.cells[0][2] == SmiCell{SmiDistance::Sys});  // Two hops.
  REQUIRE(matrix.cells[1][3] == SmiCell{SmiDistance::Sys});
  const ImportedServer server = import_rocm(kRocm, {.gpu = "MI50", .cpu = "EPYC-Rome"});
  REQUIRE(tree_of(server).find("    - - gpu\n      - gpu\n    - - gpu\n      - gpu\n") == 0);
  // MI50 has two links: both stand between the two of a pair.
  REQUIRE(server.tree.gpu_links[0] == std::vector<int>{0, 2, 0, 0});
  REQUIRE(server.remarks ==
          std::vector<std::string>{"How many links join two GPUs is not in the file: 2 stand for "
                                   "each pair, of the 2 that MI50 has."});
  const std::string open = complaint([&] { return import_rocm(kRocm, {}); });
  REQUIRE(open.find("t.txt: a GPU of AMD may be any of 11 parts; ") == 0);
  REQUIRE(open.find("expected --gpu PART and --cpu PART, found none") != std::string::npos);
}

TEST_CASE("a table of rocm-smi that could not be found out is passed over") {
  const std::string text = with(kRocm, "       GPU0   GPU1   GPU2   GPU3   \n",
                                "ERROR: GPU[1]   : Cannot read Link Weight\n"
                                "       GPU0   GPU1   GPU2   GPU3   \n");
  REQUIRE(read_rocm_smi(text, "t.txt") == read_rocm_smi(kRocm, "t.txt"));
  const std::size_t start = kRocm.find("       GPU0");
  const std::string without =
      kRocm.substr(0, start) + kRocm.substr(kRocm.find("============== Link"));
  REQUIRE(read_rocm_smi(without, "t.txt").cells[0][2] == SmiCell{SmiDistance::NvLink, 1});
}

TEST_CASE("a full mesh of MI300X takes its seven links") {
  std::string text = "=== Link Type between two GPUs ===\n      ";
  for (int gpu = 0; gpu < 8; ++gpu) {
    text += " GPU" + std::to_string(gpu);
  }
  for (int row = 0; row < 8; ++row) {
    text += "\nGPU" + std::to_string(row);
    for (int column = 0; column < 8; ++column) {
      text += row == column ? " 0" : " XGMI";
    }
  }
  const ImportedServer server = import_rocm(text, {.gpu = "MI300X"});
  const std::string yaml = to_cluster_yaml(server.tree, shipped_catalogue(), {});
  REQUIRE(yaml.find("template: full-mesh\n  gpu: MI300X\n") != std::string::npos);
}

TEST_CASE("hl-smi topo names the sockets of modules that are joined each to each") {
  REQUIRE(looks_like_hl_smi(kModules));
  REQUIRE_FALSE(looks_like_hl_smi(kRocm));
  const SmiMatrix matrix = read_hl_smi("```\n" + kModules + "```\n", "t.txt");
  REQUIRE(matrix.devices.size() == 4);
  REQUIRE(matrix.devices[0].cpu_affinity == "0-39,80-119");
  const ImportedServer server = import_smi_matrix(
      matrix, shipped_catalogue(), {.gpu = "Gaudi2", .cpu = "Xeon-IceLake"}, "t.txt");
  const int links = shipped_catalogue().gpus().at("Gaudi2").scale_up_links.value;
  REQUIRE(server.tree.gpu_links[0] == std::vector<int>{0, links / 3, links / 3, links / 3});
  REQUIRE(tree_of(server).find("    - - gpu\n      - gpu\n    - - gpu\n      - gpu\n") == 0);
}

TEST_CASE("hl-smi topo may show the cores or the NUMA nodes alone") {
  const SmiMatrix nodes =
      read_hl_smi("modID NUMA Affinity\n----- -------------\n0 0\n1 0\n2 1\n3 1\n", "t.txt");
  REQUIRE(nodes.devices[2].numa_affinity == "1");
  REQUIRE(nodes.devices[2].cpu_affinity.empty());
  const SmiMatrix cores =
      read_hl_smi("modID CPU Affinity\n0 0-39, 80-119\n1 40-79, 120-159\n", "t.txt");
  REQUIRE(cores.devices[1].cpu_affinity == "40-79,120-159");
  REQUIRE(cores.devices[1].numa_affinity.empty());
  const ImportedServer server = import_smi_matrix(
      cores, shipped_catalogue(), {.gpu = "Gaudi2", .cpu = "Xeon-IceLake"}, "t.txt");
  REQUIRE(tree_of(server).find("    - - gpu\n    - - gpu\n") == 0);
}

TEST_CASE("mistakes in the tables of accelerators are one line with their place") {
  REQUIRE(error_of_rocm("=== Weight between two GPUs ===\n GPU0\nGPU0 0\n") ==
          "t.txt: expected the table \"Link Type between two GPUs\" of rocm-smi --showtopo, found "
          "none");
  REQUIRE(error_of_rocm(with(kRocm, "GPU0   0      XGMI   XGMI   PCIE", "GPU0   0      XGMI")) ==
          "t.txt:13: expected GPU0 and 4 cells, found \"GPU0   0      XGMI   \"");
  REQUIRE(error_of_rocm("=== Link Type between two GPUs ===\n GPU0 GPU1\nGPU0 0 XGMI\n") ==
          "t.txt:3: expected the row GPU1 behind this, found \"nothing\"");
  REQUIRE(error_of_rocm("=== Link Type between two GPUs ===\n GPU0 CPU0\n") ==
          "t.txt:2: expected the columns GPU0, GPU1, ..., found \"CPU0\"");
  REQUIRE(error_of_modules("modID CPU Affinity\n") == "t.txt: expected a module, found none");
  REQUIRE(error_of_modules("modID CPU Affinity NUMA Affinity\n0 0-39\n") ==
          "t.txt:2: expected a module, its cores and its NUMA node, found \"0 0-39\"");
}

TEST_CASE("damaged tables of accelerators are read or refused in one line") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 engine(seed);
    INFO("seed=" << seed);
    const std::string rocm = damaged(kRocm, " \n=:0123GPUXMIEC[]", engine);
    REQUIRE(error_of_rocm(rocm).find('\n') == std::string::npos);
    const std::string modules = damaged(kModules, " \n-,0123modID", engine);
    REQUIRE(error_of_modules(modules).find('\n') == std::string::npos);
  }
}

}  // namespace trainyard
