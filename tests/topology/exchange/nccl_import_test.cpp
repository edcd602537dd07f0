// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/import_parts.h"

#include <random>
#include <string>
#include <vector>

#include "support/damage.h"
#include "support/imported.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

ImportedServer import(const std::string& text, const ImportOptions& options = {}) {
  return import_nccl_xml(read_nccl_xml(text, "a.xml"), shipped_catalogue(), options, "a.xml");
}

std::string error_of(const std::string& text, const ImportOptions& options = {}) {
  return complaint([&] { return import(text, options); });
}

// Two sockets; two levels of switches; a NIC of two functions; the GPUs not in file order.
const std::string kMachine =
    read_text_file(source_dir().string() + "/tests/topology/data/two_sockets.xml");

}  // namespace

TEST_CASE("a machine is read with its switches, parts and links") {
  const ImportedServer server = import(kMachine);
  REQUIRE(server.tree.gpu == "H100-SXM");
  REQUIRE(server.tree.nic == "ConnectX-7-2x200G");
  REQUIRE(server.tree.cpu == "Xeon-SapphireRapids");
  REQUIRE(server.tree.switch_links == std::vector<int>{18, 18});
  // The socket of GPU 0 comes first. The empty bridge is gone; the functions of a card are one NIC.
  REQUIRE(tree_of(server) ==
          "    - - gpu\n"
          "    - - {switch: [{switch: [gpu], uplink: PCIe5, lanes: 8}, nic]}\n");
  REQUIRE(server.remarks.empty());
}

TEST_CASE("devices without an element of their own are known by their class") {
  const ImportedServer server = import(
      R"(<system version="1"><cpu numaid="0">
      <pci busid="0001:00:00.0" class="0x030200"/><pci busid="0002:00:00.0" class="0x020700"/>
      </cpu></system>)",
      {.gpu = "V100-SXM2-32GB", .nic = "ConnectX-5"});
  REQUIRE(tree_of(server) == "    - - gpu\n      - nic\n");
  REQUIRE(server.tree.gpu_links == std::vector<std::vector<int>>{{0}});
}

TEST_CASE("direct links join GPUs by bus id, whatever its case") {
  const std::string text = R"(<system version="1"><cpu numaid="0">
<pci busid="0000:0a:00.0" class="0x030200" vendor="0x10de" device="0x20b5"><gpu dev="0" sm="80">
 <nvlink target="0000:0B:00.0" count="12" tclass="0x030200"/></gpu></pci>
<pci busid="0000:0b:00.0" class="0x030200" vendor="0x10de" device="0x20b5"><gpu dev="1" sm="80">
 <nvlink target="0000:0A:00.0" count="12" tclass="0x030200"/></gpu></pci>
</cpu></system>)";
  const ImportedServer server = import(text);
  REQUIRE(server.tree.gpu == "A100-PCIe-80GB");
  REQUIRE(server.tree.gpu_links == std::vector<std::vector<int>>{{0, 12}, {12, 0}});
  REQUIRE(server.remarks.empty());

  // One direction only, and links of a GPU to itself, as in the files of some clouds.
  const ImportedServer odd = import(with(text, "0000:0A:00.0", "0000:0b:00.0"));
  REQUIRE(odd.tree.gpu_links == std::vector<std::vector<int>>{{0, 12}, {12, 0}});
  REQUIRE(odd.remarks ==
          std::vector<std::string>{"NVLinks of GPU 1 to itself are left out.",
                                   "GPUs 0 and 1 state 12 and 0 links: the larger is taken."});
  const ImportedServer gone = import(with(text, "0000:0A:00.0", "0000:0c:00.0"));
  REQUIRE(gone.remarks[0] ==
          "NVLinks of GPU 1 to 0000:0c:00.0, which is no GPU of the file, are left out.");
}

TEST_CASE("a file that lies about its devices is believed neither there nor about its switches") {
  std::string text = kMachine;
  while (text.find("32.0 GT/s PCIe") != std::string::npos) {
    text = with(text, "32.0 GT/s PCIe", "8 GT/s");
  }
  const ImportedServer server = import(text);
  REQUIRE(server.remarks ==
          std::vector<std::string>{
              "The file states \"8 GT/s\" for a GPU, and H100-SXM has PCIe5: the part is believed.",
              "The file states \"8 GT/s\" for a NIC, and ConnectX-7-2x200G has PCIe5: the part "
              "is believed.",
              "As the file is wrong about its devices, it is not believed about its PCIe "
              "switches."});
  REQUIRE(tree_of(server) ==
          "    - - gpu\n"
          "    - - {switch: [{switch: [gpu]}, nic]}\n");
}

TEST_CASE("a slow bridge above fast devices is believed, an idle one is not") {
  const std::string slow =
      with(kMachine, "32.0 GT/s PCIe\" link_width=\"16", "16.0 GT/s PCIe\" link_width=\"8");
  REQUIRE(tree_of(import(slow)) ==
          "    - - gpu\n"
          "    - - {switch: [{switch: [gpu], uplink: PCIe5, lanes: 8}, nic], uplink: PCIe4, lanes: "
          "8}\n");
  const ImportedServer idle = import(with(kMachine, "32.0 GT/s PCIe", "2.5 GT/s PCIe"));
  REQUIRE(idle.remarks ==
          std::vector<std::string>{"The file states \"2.5 GT/s PCIe\" for a PCIe switch, of which "
                                   "there is no part: it gets the link of a GPU."});
}

TEST_CASE("what parts say otherwise than the file is remarked") {
  const ImportedServer speed = import(with(kMachine, "speed=\"200000\"", "speed=\"180000\""));
  REQUIRE(speed.remarks ==
          std::vector<std::string>{
              "The file states 380Gb/s for a NIC, and ConnectX-7-2x200G has 400Gb/s: "
              "the part is believed."});
  const ImportedServer links = import(with(kMachine, "count=\"18\"", "count=\"0\""));
  REQUIRE(links.remarks == std::vector<std::string>{
                               "The GPUs state 0 to 18 links to NVSwitches, and H100-SXM has 18: "
                               "the part is believed."});
  REQUIRE(links.tree.switch_links == std::vector<int>{18, 18});
}

TEST_CASE("adapters of other parts keep theirs; unknown ones are left out unless the user says") {
  const std::string other = with(kMachine, "0x1021", "0xa2dc");
  const std::string two = with(other, "0000:04:00.1", "0000:06:00.0");
  REQUIRE(tree_of(import(two)) ==
          "    - - gpu\n"
          "    - - {switch: [{switch: [gpu], uplink: PCIe5, lanes: 8}, nic, {nic: ConnectX-7}]}\n");
  const std::string unknown = with(two, "0xa2dc", "0x9999");
  const ImportedServer without = import(unknown);
  REQUIRE(without.tree.nics == 1);
  REQUIRE(without.remarks[0] ==
          "The adapter 0000:04:00.0 is of no part of the catalogue, or of several, and left out; "
          "--nic PART takes it in.");
  REQUIRE(import(unknown, {.nic = "Cassini"}).tree.nics == 2);
}

TEST_CASE("more than two NUMA nodes are remarked") {
  const std::string more = with(kMachine, "</system>",
                                "<cpu numaid=\"2\"><pci busid=\"0000:f0:00.0\" class=\"0x020700\" "
                                "vendor=\"0x15b3\" device=\"0x1021\"/></cpu></system>");
  REQUIRE(import(more).remarks ==
          std::vector<std::string>{"The 3 NUMA nodes of the file stand as sockets; those of one "
                                   "socket are nearer to each other than that."});
}

TEST_CASE("what a file leaves open is asked for in one line") {
  REQUIRE(error_of("<system version=\"1\"/>") == "a.xml: expected a GPU, found none");
  std::string unknown = kMachine;
  while (unknown.find("device=\"0x2330\"") != std::string::npos) {
    unknown = with(unknown, "device=\"0x2330\"", "");
  }
  REQUIRE(
      error_of(unknown) ==
      "a.xml:5:5: a GPU of sm 90 with 18 links may be GH200, GH200-144GB, H100-SXM, "
      "H100-SXM-500W, H100-SXM-64GB, H20, H20-141GB or H200-SXM; expected --gpu PART, found none");
  REQUIRE(error_of(with(kMachine, "0x2330", "0x2335")) ==
          "a.xml:19:3: expected GPUs of one kind, found another than at 5:5");
  REQUIRE(error_of(with(kMachine, "modelid=\"143\"", "modelid=\"1\"")) ==
          "a.xml:2:2: the CPU, whose link between sockets is needed, fits no part of the "
          "catalogue; expected --cpu PART, found none");
  std::string nics = kMachine;
  while (nics.find("device=\"0x1021\"") != std::string::npos) {
    nics = with(nics, "device=\"0x1021\"", "device=\"0x9999\"");
  }
  REQUIRE(
      error_of(with(nics, "speed=\"200000\"", "speed=\"1000\"")) ==
      "a.xml:9:4: an adapter 15b3:9999 of 201Gb/s fits no part of the catalogue; expected --nic "
      "PART, found none");
}

// The shape of a cloud's template: no ids, no elements of GPUs, no links, families as CPUID adds
// them up.
const std::string kTemplate = R"(<system version="1">
<cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
 <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
  <pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
  <pci busid="0002:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
  <pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/></pci></cpu>
<cpu numaid="1" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
  <pci busid="0003:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
  <pci busid="0004:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/></cpu>
</system>)";

TEST_CASE("a template is asked for its parts at once and gets the links of a shipped server") {
  const std::string question = error_of(kTemplate);
  REQUIRE(question.find("a.xml:4:4: a GPU may be any of ") == 0);
  REQUIRE(question.find("; an adapter without PCI id may be any of ") != std::string::npos);
  REQUIRE(question.find("; expected --gpu PART and --nic PART, found none") != std::string::npos);
  // Four of these are joined in pairs of four links, as in Polaris.
  const ImportedServer server = import(kTemplate, {.gpu = "A100-SXM-40GB", .nic = "ConnectX-6"});
  REQUIRE(server.tree.cpu == "EPYC-Rome");
  REQUIRE(server.tree.gpu_links[0] == std::vector<int>{0, 4, 4, 4});
  REQUIRE(server.remarks.back().find("The file states no links between the GPUs") == 0);
  // A file that states one link is believed about the others.
  const ImportedServer stated = import(
      with(kTemplate, R"("0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>)",
           R"("0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="0">
           <nvlink target="0002:00:00.0" count="12" tclass="0x030200"/></gpu></pci>)"),
      {.gpu = "A100-PCIe-40GB", .nic = "ConnectX-6"});
  REQUIRE(stated.tree.gpu_links[0] == std::vector<int>{0, 12, 0, 0});
}

TEST_CASE("devices without a class are what the user says") {
  const std::string text = R"(<system version="1"><cpu numaid="0"><pci busid="0000:00:16.0"/>
<pci busid="0000:00:17.0"/><pci busid="0000:00:1A.0"/></cpu></system>)";
  const std::string question = error_of(text);
  REQUIRE(question.find("a.xml:1:38: 3 devices have no class, which NCCL reads from the machine; "
                        "a GPU may be any of ") == 0);
  REQUIRE(
      question.find("; expected --nic-at BUS-ID,...|none of those that are NICs, --nic PART and "
                    "--gpu PART, found none") != std::string::npos);
  ImportOptions options{.gpu = "A10G", .nic = "EFA-100G"};
  options.nics_at = {"0000:00:1a.0"};
  const ImportedServer server = import(text, options);
  REQUIRE(server.tree.gpus == 2);
  REQUIRE(server.tree.nics == 1);
  options.nics_at = std::vector<std::string>{};
  REQUIRE(import(text, options).tree.gpus == 3);
  options.nics_at = {"0000:00:ff.0"};
  REQUIRE(error_of(text, options) ==
          "--nic-at: expected the bus id of a device without a class, such as 0000:00:16.0, "
          "found \"0000:00:ff.0\"");
}

// The shape of RCCL's files: version 2, xGMI links with counts, the number of compute units as sm.
const std::string kRccl = R"(<system version="2">
<cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
 <pci busid="0000:32:00.0" class="0x038000"><gpu dev="0" sm="120" gcn="908" arch="38911" rank="0">
  <xgmi target="0000:35:00.0" count="4" tclass="0x038000"/></gpu></pci>
 <pci busid="0000:35:00.0" class="0x038000"><gpu dev="1" sm="120" gcn="908" arch="38911" rank="1">
  <xgmi target="0000:32:00.0" count="4" tclass="0x038000"/></gpu></pci>
 <pci busid="0000:60:00.0" class="0x020000" vendor="0x8086" device="0x1537">
  <nic><net name="a" dev="0" speed="1000" port="0" guid="0"/></nic></pci></cpu>
</system>)";

TEST_CASE("a file of RCCL is read with its links, even more than the part has") {
  const ImportedServer server = import(kRccl);
  REQUIRE(server.tree.gpu == "MI100");
  REQUIRE(server.tree.gpu_links == std::vector<std::vector<int>>{{0, 4}, {4, 0}});
  REQUIRE(server.tree.nics == 0);
  REQUIRE(server.remarks ==
          std::vector<std::string>{
              "The adapter 0000:60:00.0 of 1Gb/s is left out, as a port for management.",
              "The file states 4 links for a GPU, and MI100 has 3: the file is believed."});
  const std::string yaml = to_cluster_yaml(server.tree, shipped_catalogue(), {});
  REQUIRE(yaml.find("gpu: {base: MI100, scale_up_links: 4, source: as imported}") !=
          std::string::npos);
}

TEST_CASE("a damaged machine is imported or refused in one line") {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 engine(seed);
    const std::string text = damaged(kMachine, "<>/=\"0123456789abcdefx: \n.", engine);
    INFO("seed=" << seed << '\n' << text);
    const std::string error = error_of(text);
    REQUIRE(error.find('\n') == std::string::npos);
    refused += error != "no error" ? 1 : 0;
  }
  REQUIRE(refused > 50);
}

}  // namespace trainyard
