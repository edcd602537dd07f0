// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/import_parts.h"

#include <random>
#include <string>
#include <vector>

#include "support/damage.h"
#include "support/imported.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

const ImportOptions kParts{.gpu = "A100-SXM-80GB", .nic = "ConnectX-6", .cpu = "EPYC-Rome"};

ImportedServer import_import(const std::string& text, const ImportOptions& options = kParts) {
  return import_smi_matrix(read_smi_matrix(text, "topo.txt"), shipped_catalogue(), options,
                           "topo.txt");
}

std::string error_of_import(const std::string& text, const ImportOptions& options = kParts) {
  return complaint([&] { return import_import(text, options); });
}

// One half is that of a DGX A100 (each device on a bridge of its own), the other has one switch.
const std::string kMixed =
    "      GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 NIC2 CPU Affinity NUMA Affinity\n"
    "GPU0   X   NV12 NV12 NV12 PXB  SYS  NODE 0-15         0\n"
    "GPU1  NV12  X   NV12 NV12 PXB  SYS  NODE 0-15         0\n"
    "GPU2  NV12 NV12  X   NV12 SYS  PIX  SYS  16-31        1\n"
    "GPU3  NV12 NV12 NV12  X   SYS  PIX  SYS  16-31        1\n"
    "NIC0  PXB  PXB  SYS  SYS   X   SYS  NODE\n"
    "NIC1  SYS  SYS  PIX  PIX  SYS   X   SYS\n"
    "NIC2  NODE NODE SYS  SYS  NODE SYS   X\n";

// Nothing but NVLinks: the affinities alone tell the sockets.
const std::string kHidden =
    "      GPU0 GPU1 GPU2 CPU Affinity\n"
    "GPU0   X   NV18 NV18 0-15\n"
    "GPU1  NV18  X   NV18 16-31\n"
    "GPU2  NV18 NV18  X   0-15\n";

}  // namespace

TEST_CASE("PIX is one switch, PXB one above others, NODE a socket, SYS another") {
  const ImportedServer server = import_import(kMixed);
  REQUIRE(tree_of(server) ==
          "    - - {switch: [{switch: [gpu], times: 2}, {switch: [nic]}]}\n"
          "      - nic\n"
          "    - - {switch: [gpu, gpu, nic]}\n");
  REQUIRE(server.tree.switch_links == std::vector<int>{12, 12, 12, 12});
  REQUIRE(server.tree.cpu == "EPYC-Rome");
  // NIC 1 of the matrix stands behind NIC 2 in the tree.
  REQUIRE(server.remarks ==
          std::vector<std::string>{"NIC0, NIC1, ... are NIC 0, 2, 1 of the file: here they count "
                                   "in the order of the tree."});
}

TEST_CASE("where NVLinks hide the tree, affinities tell the sockets") {
  ImportOptions options = kParts;
  options.gpu = "H100-SXM";
  const ImportedServer server = import_import(kHidden, options);
  REQUIRE(tree_of(server) == "    - - gpu\n      - gpu\n    - - gpu\n");
  // Without them nothing parts the GPUs.
  std::string bare = with(kHidden, "0-15\n", "\n");
  bare = with(with(bare, "16-31", ""), "0-15", "");
  const ImportedServer one = import_import(bare, options);
  REQUIRE(one.tree.sockets.size() == 1);
  REQUIRE(one.remarks[0] ==
          "The matrix does not say whether GPU0 and GPU1 share a socket: they do here.");
}

TEST_CASE("distances tell the sockets where a virtual machine names the same cores for all") {
  std::string text = kMixed;
  for (const char* of_second : {"16-31        1\nGPU3", "16-31        1\nNIC0"}) {
    text = with(text, of_second, std::string("0-15         0") + (of_second + 14));
  }
  const ImportedServer server = import_import(text);
  REQUIRE(server.tree == import_import(kMixed).tree);
}

TEST_CASE("NVLinks are direct where a GPU has enough for every peer, else through switches") {
  const std::string pair =
      "      GPU0 GPU1\n"
      "GPU0   X   NV12\n"
      "GPU1  NV12  X\n";
  ImportOptions options = kParts;
  options.gpu = "A100-PCIe-80GB";
  REQUIRE(import_import(pair, options).tree.gpu_links ==
          std::vector<std::vector<int>>{{0, 12}, {12, 0}});
  // Four A100 with four of twelve links to each of the others, as in Polaris.
  const std::string mesh =
      "      GPU0 GPU1 GPU2 GPU3\n"
      "GPU0   X   NV4  NV4  NV4\n"
      "GPU1  NV4   X   NV4  NV4\n"
      "GPU2  NV4  NV4   X   NV4\n"
      "GPU3  NV4  NV4  NV4   X\n";
  const ServerOutline tree = import_import(mesh).tree;
  REQUIRE(tree.gpu_links[1] == std::vector<int>{4, 0, 4, 4});
  REQUIRE(tree.switch_links == std::vector<int>{0, 0, 0, 0});
}

TEST_CASE("a matrix that is no tree is refused at the cell") {
  std::string text = kMixed;
  text = with(text, "NV12 NV12 NV12 PXB  SYS  NODE 0-15         0\nGPU1",
              "NV12 NV12 NV12 SYS  SYS  NODE 0-15         0\nGPU1");
  text = with(text, "NIC0  PXB", "NIC0  SYS");
  REQUIRE(error_of_import(text) ==
          "topo.txt: GPU0.NIC0: expected PHB, as follows from the other cells, found SYS");
}

TEST_CASE("what a matrix leaves open is asked for in one line") {
  REQUIRE(error_of_import(kMixed, {.gpu = "A100-SXM-80GB", .cpu = "EPYC-Rome"}) ==
          "topo.txt: the matrix does not name the part of the NICs; expected --nic PART, found "
          "none");
  REQUIRE(
      error_of_import(kMixed, {.nic = "ConnectX-6", .cpu = "EPYC-Rome"}) ==
      "topo.txt: a GPU with 12 links may be A100-PCIe-40GB, A100-PCIe-80GB, A100-SXM-40GB, "
      "A100-SXM-64GB, A100-SXM-80GB, H100-NVL-94GB or H100-PCIe; expected --gpu PART, found none");
  const std::string cpu = error_of_import(kMixed, {.gpu = "A100-SXM-80GB", .nic = "ConnectX-6"});
  REQUIRE(cpu.find("topo.txt: the CPU, whose link between sockets is needed, may be any of ") == 0);
  const std::string all = error_of_import(kMixed, {});
  REQUIRE(all.find("; expected --nic PART, --gpu PART and --cpu PART, found none") !=
          std::string::npos);
}

TEST_CASE("a damaged matrix is imported or refused in one line") {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 engine(seed);
    const std::string text = damaged(kMixed, " \n0123XNVPIBHSYODE", engine);
    INFO("seed=" << seed << '\n' << text);
    const std::string error = error_of_import(text);
    REQUIRE(error.find('\n') == std::string::npos);
    refused += error != "no error" ? 1 : 0;
  }
  REQUIRE(refused > 50);
}

}  // namespace trainyard
