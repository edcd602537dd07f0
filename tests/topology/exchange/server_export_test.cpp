// SPDX-License-Identifier: Apache-2.0
// "An exported file read back gives the same machine": for every shipped cluster the export of the
// import is the export, byte by byte.
#include "support/catch.h"

#include "topology/exchange/server_export.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/shipped.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/import_parts.h"

namespace trainyard {
namespace {

const std::filesystem::path kRoot = source_dir();

// Server 0 of a shipped cluster.
ServerOutline server_of(const std::filesystem::path& file) {
  ClusterOverrides overrides;
  if (read_text_file(file).find("\nnodes:") != std::string::npos) {
    overrides.nodes = 1;
  }
  return server_outline(load_cluster(file, shipped_catalogue(), overrides).topology, ServerId(0));
}

ServerOutline shipped_server(const std::string& name) {
  return server_of(kRoot / "configs/clusters" / (name + ".yaml"));
}

std::vector<std::filesystem::path> cluster_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "configs/clusters")) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// A root complex of its own, of which the formats do not know.
bool has_root(const ServerOutline& server) {
  return std::ranges::any_of(server.sockets, [](const std::vector<OutlineBranch>& socket) {
    return std::ranges::any_of(
        socket, [](const OutlineBranch& branch) { return branch.kind == NodeKind::RootComplex; });
  });
}

ServerOutline rebuilt(const ImportedServer& imported) {
  const std::string yaml =
      to_cluster_yaml(imported.tree, shipped_catalogue(), {.name = "again", .source = "a test"});
  INFO(yaml);
  ConfigDocument document = ConfigDocument::parse(yaml, "again.yaml");
  return server_outline(build_cluster(document, shipped_catalogue(), {}).topology, ServerId(0));
}

}  // namespace

TEST_CASE("every shipped server survives the way over NCCL's topology file") {
  const auto files = cluster_files();
  REQUIRE(files.size() >= 9);
  for (const std::filesystem::path& file : files) {
    INFO(file.filename().string());
    const ServerOutline server = server_of(file);
    const std::string xml = write_nccl_xml(to_nccl_xml(server, shipped_catalogue()));
    ImportOptions parts{.cpu = server.cpu};
    if (!shipped_catalogue().gpus().at(server.gpu).pci_ids) {
      parts.gpu = server.gpu;
    }
    if (server.nics > 0 && !shipped_catalogue().nics().at(server.nic).pci_ids) {
      parts.nic = server.nic;
    }
    const ImportedServer imported =
        import_nccl_xml(read_nccl_xml(xml, "a.xml"), shipped_catalogue(), parts, "a.xml");
    // Of more than two sockets it is said that they may be parts of one.
    REQUIRE((imported.remarks.empty() || server.sockets.size() > 2));
    const ServerOutline again = rebuilt(imported);
    REQUIRE((again == server || has_root(server)));
    REQUIRE(write_nccl_xml(to_nccl_xml(again, shipped_catalogue())) == xml);
  }
}

TEST_CASE("every shipped server of NVIDIA survives the way over the matrix of nvidia-smi") {
  int compared = 0;
  for (const std::filesystem::path& file : cluster_files()) {
    INFO(file.filename().string());
    const ServerOutline server = server_of(file);
    if (!shipped_catalogue().gpus().at(server.gpu).compute_capability) {
      continue;
    }
    const std::string text = write_smi_matrix(to_smi_matrix(server, shipped_catalogue()));
    ImportOptions parts{.gpu = server.gpu, .cpu = server.cpu};
    if (server.nics > 0) {
      parts.nic = server.nic;
    }
    const ServerOutline again = rebuilt(import_smi_matrix(read_smi_matrix(text, "topo.txt"),
                                                          shipped_catalogue(), parts, "topo.txt"));
    REQUIRE(write_smi_matrix(to_smi_matrix(again, shipped_catalogue())) == text);
    ++compared;
  }
  REQUIRE(compared >= 8);
}

TEST_CASE("a DGX A100 as NCCL's topology file", "[golden]") {
  const std::string xml =
      write_nccl_xml(to_nccl_xml(shipped_server("dgx-a100"), shipped_catalogue()));
  const std::filesystem::path expected = kRoot / "tests/golden/dgx-a100.xml";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(expected, std::ios::binary) << xml;
  }
  REQUIRE(xml == read_text_file(expected));
}

TEST_CASE("a DGX-1 has the matrix that is published for it") {
  // gist ashwin/e139748bdba15f5af63f0146d01ee4c3, its NICs in the order of their switches.
  const std::string published =
      "      GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 NIC0 NIC1 NIC2 NIC3\n"
      "GPU0   X   NV1  NV1  NV2  NV2  SYS  SYS  SYS  PIX  PHB  SYS  SYS\n"
      "GPU1  NV1   X   NV2  NV1  SYS  NV2  SYS  SYS  PIX  PHB  SYS  SYS\n"
      "GPU2  NV1  NV2   X   NV2  SYS  SYS  NV1  SYS  PHB  PIX  SYS  SYS\n"
      "GPU3  NV2  NV1  NV2   X   SYS  SYS  SYS  NV1  PHB  PIX  SYS  SYS\n"
      "GPU4  NV2  SYS  SYS  SYS   X   NV1  NV1  NV2  SYS  SYS  PIX  PHB\n"
      "GPU5  SYS  NV2  SYS  SYS  NV1   X   NV2  NV1  SYS  SYS  PIX  PHB\n"
      "GPU6  SYS  SYS  NV1  SYS  NV1  NV2   X   NV2  SYS  SYS  PHB  PIX\n"
      "GPU7  SYS  SYS  SYS  NV1  NV2  NV1  NV2   X   SYS  SYS  PHB  PIX\n"
      "NIC0  PIX  PIX  PHB  PHB  SYS  SYS  SYS  SYS   X   PHB  SYS  SYS\n"
      "NIC1  PHB  PHB  PIX  PIX  SYS  SYS  SYS  SYS  PHB   X   SYS  SYS\n"
      "NIC2  SYS  SYS  SYS  SYS  PIX  PIX  PHB  PHB  SYS  SYS   X   PHB\n"
      "NIC3  SYS  SYS  SYS  SYS  PHB  PHB  PIX  PIX  SYS  SYS  PHB   X\n";
  const SmiMatrix matrix = to_smi_matrix(shipped_server("dgx-1"), shipped_catalogue());
  REQUIRE(matrix.cells == read_smi_matrix(published, "published").cells);
}

TEST_CASE("the sockets of GPUs are the NUMA nodes of the matrix") {
  const SmiMatrix matrix = to_smi_matrix(shipped_server("dgx-h100"), shipped_catalogue());
  REQUIRE(matrix.devices[3].numa_affinity == "0");
  REQUIRE(matrix.devices[4].numa_affinity == "1");
  REQUIRE(matrix.devices[8].numa_affinity.empty());
}

TEST_CASE("what a topology file says of each device comes from the catalogue") {
  const NcclSystem system = to_nccl_xml(shipped_server("dgx-h100"), shipped_catalogue());
  REQUIRE(system.cpus.size() == 2);
  REQUIRE(system.cpus[0].vendor == "GenuineIntel");
  const NcclPci& bridge = system.cpus[0].pcis.at(0);
  REQUIRE(bridge.busid == "0000:01:00.0");
  REQUIRE(bridge.device_class == "0x060400");
  REQUIRE(bridge.link_speed == "32.0 GT/s PCIe");
  REQUIRE(bridge.link_width == 16);
  const NcclPci& gpu = bridge.pcis.at(0);
  REQUIRE(gpu.busid == "0000:02:00.0");
  REQUIRE(gpu.vendor == "0x10de");
  REQUIRE(gpu.device == "0x2330");
  REQUIRE(gpu.gpus.at(0).sm == 90);
  // 8 x (switch, GPU, NIC) take the first 24 bus ids.
  const NcclGpuLink switched{.target = "0000:19:00.0", .count = 18, .tclass = "0x068000"};
  REQUIRE(gpu.gpus[0].nvlinks == std::vector<NcclGpuLink>{switched});
  const NcclNet& net = bridge.pcis.at(1).nics.at(0).nets.at(0);
  REQUIRE(net.speed == 400'000);
  REQUIRE(element_count(system) == 1 + 2 + 8 * (1 + 3 + 3));
}

TEST_CASE("an adapter has an entry for each port") {
  ServerOutline server = empty_server(1, 2);
  server.gpu = "L40S";
  server.nic = "ConnectX-7-2x200G";
  const auto nic = [&](int index) {
    return OutlineBranch{.kind = NodeKind::Nic, .index = index, .part = server.nic};
  };
  server.sockets = {{OutlineBranch{}, nic(0), nic(1)}};
  const NcclSystem system = to_nccl_xml(server, shipped_catalogue());
  const std::vector<NcclNet>& nets = system.cpus.at(0).pcis.at(2).nics.at(0).nets;
  REQUIRE(nets.size() == 2);
  REQUIRE(nets[1].name == "nic1port2");
  REQUIRE(nets[1].dev == 3);
  REQUIRE(nets[1].port == 2);
  REQUIRE(nets[1].speed == 200'000);
  REQUIRE(nets[0].guid == nets[1].guid);
  const ImportedServer again = import_nccl_xml(system, shipped_catalogue(), {}, "a.xml");
  REQUIRE(again.tree.nic == server.nic);
  REQUIRE(again.remarks.empty());
}

TEST_CASE("NICs that are cut off from the fabric or the server are left out") {
  const auto nics = [](const std::vector<std::string>& pulls) {
    const Cluster cluster = load_cluster(kRoot / "configs/clusters/dgx-h100.yaml",
                                         shipped_catalogue(), {.nodes = 2, .pulls = pulls});
    return server_outline(cluster.topology, ServerId(0)).nics;
  };
  REQUIRE(nics({}) == 8);
  REQUIRE(nics({"leaf0"}) == 7);
  REQUIRE(nics({"server0/nic0,leaf0", "server0/nic5,server0/pcie5"}) == 6);
  REQUIRE(nics({"server1/nic0"}) == 8);
  // Where nothing is plugged into anything, a NIC is none the worse.
  ConfigDocument document = ConfigDocument::parse(
      "name: a\nsource: b\nnodes: 1\nserver: {template: pcie, gpu: L40S, gpus: 1, nic: "
      "ConnectX-7,\n"
      "  nics: 2}\n",
      "a.yaml");
  const Cluster alone = build_cluster(document, shipped_catalogue(), {});
  REQUIRE(!has_network(alone.topology));
  REQUIRE(server_outline(alone.topology, ServerId(0)).nics == 2);
}

TEST_CASE("a GPU that is cut off from all CPUs is refused") {
  const Cluster cluster =
      load_cluster(kRoot / "configs/clusters/dgx-a100.yaml", shipped_catalogue(),
                   {.nodes = 2, .pulls = {"server0/cpu0,server0/pcie0"}});
  REQUIRE_THROWS_WITH(server_outline(cluster.topology, ServerId(0)),
                      "the server: expected all GPUs and NICs below a CPU, found server0/gpu0 cut "
                      "off by a fault");
}

TEST_CASE("a port whose cable is pulled is not in NCCL's file") {
  const auto ports = [](const std::vector<std::string>& pulls) {
    const Cluster cluster = load_cluster(kRoot / "configs/clusters/alibaba-hpn.yaml",
                                         shipped_catalogue(), {.nodes = 2, .pulls = pulls});
    const std::string text = write_nccl_xml(
        to_nccl_xml(server_outline(cluster.topology, ServerId(1)), shipped_catalogue()));
    std::vector<std::string> found;
    for (std::size_t at = text.find("<net name="); at != std::string::npos;
         at = text.find("<net name=", at + 1)) {
      const std::size_t begin = text.find('"', at) + 1;
      found.push_back(text.substr(begin, text.find('"', begin) - begin));
    }
    return found;
  };
  std::vector<std::string> all = ports({});
  REQUIRE(all.size() == 16);
  REQUIRE(all[7] == "nic3port2");
  all.erase(all.begin() + 7);
  REQUIRE(ports({"server1/nic3,plane1-leaf3"}) == all);
}

TEST_CASE("the links of AMD's GPUs are xgmi, and nvidia-smi has no form for them") {
  const ServerOutline server = shipped_server("mi300x");
  const NcclSystem system = to_nccl_xml(server, shipped_catalogue());
  const NcclGpu& gpu = system.cpus.at(0).pcis.at(0).pcis.at(0).gpus.at(0);
  REQUIRE(gpu.nvlinks.empty());
  REQUIRE(gpu.xgmis.size() == 7);
  REQUIRE(!gpu.sm);
  REQUIRE(gpu.gcn == "gfx942");
  REQUIRE_THROWS_WITH(to_smi_matrix(server, shipped_catalogue()),
                      "the server: expected NVIDIA GPUs for the matrix of nvidia-smi, found "
                      "MI300X");
}

TEST_CASE("a server with more elements than NCCL reads is refused") {
  ServerOutline server = empty_server(86, 0);
  server.gpu = "H100-SXM";
  server.sockets.emplace_back();
  for (int index = 0; index < 86; ++index) {
    server.sockets[0].push_back({.kind = NodeKind::Gpu, .index = index});
  }
  server.switch_links.assign(86, 18);
  REQUIRE_THROWS_WITH(to_nccl_xml(server, shipped_catalogue()),
                      "the server: expected at most 256 elements in a topology file, as NCCL reads "
                      "them, found 260");
}

TEST_CASE("a server with GPUs of several parts is refused") {
  ConfigDocument document = ConfigDocument::parse(
      "name: a\nsource: b\nnodes: 1\nserver:\n  template: pcie\n  gpu: L40S\n"
      "  tree:\n    - [gpu, {gpu: H100-PCIe}]\n",
      "a.yaml");
  const Cluster cluster = build_cluster(document, shipped_catalogue(), {});
  REQUIRE_THROWS_WITH(server_outline(cluster.topology, ServerId(0)),
                      "the server: expected GPUs of one part, found L40S and H100-PCIe");
}

TEST_CASE("a root complex is a distance of its own, and flat in a topology file") {
  ConfigDocument document = ConfigDocument::parse(
      "name: a\nsource: b\nnodes: 1\nserver:\n  template: pcie\n  gpu: L40S\n"
      "  tree:\n    - [{root: [gpu, gpu], bandwidth: 50 GB/s}, {root: [gpu], bandwidth: 50 "
      "GB/s}]\n",
      "a.yaml");
  const Cluster cluster = build_cluster(document, shipped_catalogue(), {});
  const ServerOutline server = server_outline(cluster.topology, ServerId(0));
  const SmiMatrix matrix = to_smi_matrix(server, shipped_catalogue());
  REQUIRE(matrix.cells[0][1] == SmiCell{SmiDistance::Phb});
  REQUIRE(matrix.cells[0][2] == SmiCell{SmiDistance::Node});
  REQUIRE(to_nccl_xml(server, shipped_catalogue()).cpus.at(0).pcis.size() == 3);
}

TEST_CASE("generations of PCIe are written as Linux writes them") {
  REQUIRE(link_speed_text(shipped_catalogue().link("PCIe3")) == "8.0 GT/s PCIe");
  REQUIRE(link_speed_text(shipped_catalogue().link("PCIe4")) == "16.0 GT/s PCIe");
  REQUIRE(link_speed_text(shipped_catalogue().link("PCIe5")) == "32.0 GT/s PCIe");
  REQUIRE(link_speed_text(shipped_catalogue().link("PCIe6")) == "64.0 GT/s PCIe");
}

}  // namespace trainyard
