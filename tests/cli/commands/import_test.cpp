// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::string run(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  REQUIRE(run_command(import_command(), arguments, out) == 0);
  return out.str();
}

std::string error_of_import(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(import_command(), arguments, out);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string exported(const std::string& cluster, const std::string& form) {
  std::ostringstream out;
  REQUIRE(run_command(topology_command(),
                      std::vector<std::string>{"--cluster", cluster, "--format", form}, out) == 0);
  return out.str();
}

}  // namespace

TEST_CASE("import reads either format and writes a cluster file that gives the same machine") {
  const ScratchFolder folder;
  const std::string xml = exported("dgx-h100", "nccl-xml");
  const std::string file = folder.write("machine.xml", xml).string();
  const std::string yaml = run({file, "--cpu", "Xeon-SapphireRapids", "--name", "Mine"});
  REQUIRE(yaml.rfind("name: \"Mine\"\n"
                     "source: \"Imported from machine.xml, a topology file of NCCL.\"\n"
                     "nodes: 1\n"
                     "server:\n"
                     "  template: nvswitch\n"
                     "  gpu: H100-SXM\n",
                     0) == 0);
  // The same but for the CPU, which only the second one knows.
  const std::string again = exported(folder.write("again.yaml", yaml).string(), "nccl-xml");
  REQUIRE(again.find("modelid=\"143\"") != std::string::npos);
  REQUIRE(again.substr(again.find("<pci"), 2000) == xml.substr(xml.find("<pci"), 2000));

  const std::string matrix = folder.write("topo.txt", exported("dgx-h100", "smi")).string();
  const std::string from_matrix =
      run({matrix, "--gpu", "H100-SXM", "--nic", "ConnectX-7", "--cpu", "Xeon-SapphireRapids"});
  REQUIRE(from_matrix.rfind("name: \"topo\"\n", 0) == 0);
  REQUIRE(from_matrix.substr(from_matrix.find("server:")) == yaml.substr(yaml.find("server:")));
}

TEST_CASE("import writes to a file") {
  const ScratchFolder folder;
  const std::string file = folder.write("a.xml", exported("h100-1gpu-400g", "nccl-xml")).string();
  const std::string output = (folder.path() / "a.yaml").string();
  REQUIRE(run({file, "--output", output}).empty());
  REQUIRE(read_text_file(output).find("  tree:\n    - - {switch: [gpu, nic]}\n") !=
          std::string::npos);
}

TEST_CASE("remarks of an import are comments in the file and warnings in the log") {
  const ScratchFolder folder;
  std::string xml = exported("h100-1gpu-400g", "nccl-xml");
  xml.replace(xml.find("400000"), 6, "380000");
  (void)folder.write("a.xml", xml);
  const ProgramResult result = run_program({"import", "a.xml"}, folder.path());
  REQUIRE(result.status == 0);
  const std::string remark =
      "The file states 380Gb/s for a NIC, and ConnectX-7 has 400Gb/s: the part is believed.";
  REQUIRE(result.output.rfind("# " + remark + "\nname: ", 0) == 0);
  REQUIRE(result.error == "trainyard: warning: a.xml: " + remark + '\n');
}

TEST_CASE("mistakes on the command line of import are one line") {
  const ScratchFolder folder;
  REQUIRE(error_of_import({}) ==
          "import: expected a file to read, found none; see trainyard import --help");
  REQUIRE(error_of_import({"a", "b"}) == "import: expected options and one file, found \"b\"");
  const std::string missing = (folder.path() / "none.xml").string();
  REQUIRE(error_of_import({missing}) == missing + ": cannot be read: No such file or directory");
  REQUIRE(error_of_import({folder.path().string()}) ==
          folder.path().string() + ": expected a file, found a directory");
  const std::string text = folder.write("a.txt", "name: a\n").string();
  REQUIRE(error_of_import({text}) ==
          text +
              ": expected a topology file of NCCL, RCCL, ns-3 or htsim, lstopo --of xml, or the "
              "output of nvidia-smi topo -m, rocm-smi --showtopo or hl-smi topo -c -N, found none "
              "of them");
  const std::string empty = folder.write("b.txt", "").string();
  REQUIRE(error_of_import({empty}).find("found none of them") != std::string::npos);
  const std::string xml = folder.write("a.xml", "<system version=\"1\"/>").string();
  REQUIRE(
      error_of_import({xml, "--gpu", "H100"}).rfind("--gpu: expected a part of the catalogue", 0) ==
      0);
  REQUIRE(error_of_import({xml}) == xml + ": expected a GPU, found none");
}

TEST_CASE("files that are easily taken for a topology are named") {
  const ScratchFolder folder;
  const auto found = [&](const std::string& text) {
    const std::string error = error_of_import({folder.write("a.xml", text).string()});
    return error.substr(std::min(error.find(", found "), error.size()));
  };
  REQUIRE(found("<!-- a --><graphs version=\"1\"/>").find(", found a graph file of NCCL") == 0);
  REQUIRE(found("<?xml version=\"1.0\"?>\n<algo/>").find(", found a schedule of MSCCL") == 0);
  REQUIRE(found("\tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n")
              .find(", found that of nvidia-smi topo -p2p") == 0);
  REQUIRE(found("<!-- open").find("-->") == std::string::npos);
}

TEST_CASE("import reads what lstopo, rocm-smi and hl-smi print") {
  const ScratchFolder folder;
  const auto imported = [&](const std::string& text, const std::string& gpu) {
    return run({folder.write("a.txt", text).string(), "--gpu", gpu});
  };
  REQUIRE(imported("=== Link Type between two GPUs ===\n GPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n",
                   "MI210")
              .find("source: \"Imported from a.txt, the output of rocm-smi --showtopo.\"") !=
          std::string::npos);
  REQUIRE(imported("modID CPU Affinity NUMA Affinity\n0 0-39 0\n1 0-39 0\n", "Gaudi2")
              .find("the output of hl-smi topo -c -N.") != std::string::npos);
  REQUIRE(imported("<details>\n\n```\n\tGPU0\tGPU1\nGPU0\tX\tPHB\nGPU1\tPHB\tX\n```\n</details>\n",
                   "L40S")
              .find("the matrix of nvidia-smi topo -m.") != std::string::npos);
  const std::string lstopo =
      R"(<topology version="2.0"><object type="Machine"><object type="PCIDev"
      pci_busid="0000:01:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1"/></object></topology>)";
  REQUIRE(imported(lstopo, "H100-SXM").find("written by lstopo (hwloc).") != std::string::npos);
}

TEST_CASE("import makes a cluster of a network that a packet simulator describes") {
  const ScratchFolder folder;
  // Four hosts on two leaves below two spines.
  const std::string hpcc =
      folder
          .write("topology.txt",
                 "8 4 8\n4 5 6 7\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n"
                 "3 5 100Gbps 1us 0\n4 6 400Gbps 2us 0\n4 7 400Gbps 2us 0\n5 6 400Gbps 2us 0\n"
                 "5 7 400Gbps 2us 0\n")
          .string();
  const std::string yaml = run({hpcc, "--gpu", "H100-SXM"});
  REQUIRE(yaml.substr(yaml.find("fabric:")) ==
          "fabric:\n"
          "  template: clos\n"
          "  leaf: imported-leaf\n"
          "  cable: 180 m\n"
          "  spine: imported-spine\n"
          "  spine_cable: 380 m\n"
          "  nodes_per_leaf: 2\n"
          "  tiers: 2\n"
          "  uplinks: 2\n"
          "  spines: 2\n"
          "  routing: ecmp\n");
  REQUIRE(error_of_import({hpcc}).find("expected --gpu PART, found none") != std::string::npos);
  const std::string cluster = folder.write("a.yaml", yaml).string();
  for (const char* const runtime : {"plain", "nccl"}) {
    std::ostringstream out;
    REQUIRE(run_command(collective_command(),
                        std::vector<std::string>{"all_reduce", "--cluster", cluster, "-b", "1M",
                                                 "-e", "1M", "--runtime", runtime},
                        out) == 0);
  }
}

TEST_CASE("the help of import shows an example") {
  REQUIRE(run({"--help"}).find("trainyard import machine.xml --output machine.yaml") !=
          std::string::npos);
}

}  // namespace trainyard
