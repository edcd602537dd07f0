// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/nccl_xml.h"

#include <random>
#include <string>

#include "sim/config_error.h"
#include "support/damage.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

// Every element and every attribute, as NCCL and RCCL write them.
const std::string kSample =
    read_text_file(source_dir().string() + "/tests/topology/data/every_element.xml");

std::string error_of_xml(const std::string& text) {
  try {
    (void)read_nccl_xml(text, "a.xml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string with(const std::string& old, const std::string& replacement) {
  std::string text = kSample;
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), replacement);
}

}  // namespace

TEST_CASE("a topology file is read element by element") {
  const NcclSystem system = read_nccl_xml(kSample, "a.xml");
  REQUIRE(system.version == 1);
  REQUIRE(system.cpus.size() == 2);
  REQUIRE(system.cpus[0].numaid == 3);
  REQUIRE(system.cpus[1].vendor == "  Shanghai  ");
  REQUIRE(!system.cpus[1].familyid);
  const NcclPci& bridge = system.cpus[0].pcis.at(0);
  REQUIRE(bridge.place.line == 3);
  REQUIRE(bridge.place.column == 6);
  REQUIRE(bridge.device_class == "0x060400");
  REQUIRE(bridge.pcilinks.at(0).target == "0000:81:00.0");
  const NcclGpu& gpu = bridge.pcis.at(0).gpus.at(0);
  REQUIRE(gpu.sm == 80);
  REQUIRE(gpu.nvlinks.at(1).count == 10);
  REQUIRE(gpu.c2cs.at(0).bw == 44'712);
  const NcclNet& net = bridge.pcis.at(1).nics.at(0).nets.at(0);
  REQUIRE(net.speed == 200'000);
  REQUIRE(net.latency == 0.5);
  REQUIRE(net.plane == -1);
  REQUIRE(system.cpus[1].pcis.at(0).gpus.at(0).xgmis.at(0).tclass == "0x120000");
}

TEST_CASE("what was read is written as it was") {
  const NcclSystem system = read_nccl_xml(kSample, "a.xml");
  REQUIRE(write_nccl_xml(system) == kSample);
  REQUIRE(read_nccl_xml(write_nccl_xml(system), "b.xml") == system);
}

TEST_CASE("elements are counted") {
  // system, 2 cpu, 4 pci, pcilink, 2 gpu, 2 nvlink, c2c, xgmi, 2 nic, 2 net.
  REQUIRE(element_count(read_nccl_xml(kSample, "a.xml")) == 18);
}

TEST_CASE("comments, entities and other quotes are XML too") {
  const NcclSystem system = read_nccl_xml(
      "<?xml version='1.0'?>\n<!-- written by hand -->\n<system version='1'>\n"
      "<cpu numaid='0' vendor='a&amp;b&lt;&quot;'><!-- none --></cpu></system>",
      "a.xml");
  REQUIRE(system.cpus.at(0).vendor == "a&b<\"");
  REQUIRE(write_nccl_xml(system).find("vendor=\"a&amp;b&lt;&quot;\"") != std::string::npos);
}

TEST_CASE("mistakes in a topology file are one line with their place") {
  REQUIRE(error_of_xml(with("<nic>", "<nix>")) ==
          "a.xml:14:11: expected XML, found a mistake: start-end tags mismatch");
  REQUIRE(error_of_xml("") ==
          "a.xml:1:1: expected XML, found a mistake: no document element found");
  REQUIRE(error_of_xml("<graphs version=\"1\"/>") ==
          "a.xml:1:2: expected the element \"system\", found \"graphs\"");
  REQUIRE(error_of_xml("<system version=\"1\"/><system/>") ==
          "a.xml:1:23: expected one element \"system\", found something beside it");
  REQUIRE(error_of_xml("<system version=\"3\"/>") ==
          "a.xml:1:9: system.version: expected a whole number from 1 to 2, found \"3\"");
  REQUIRE(error_of_xml("<system/>") == "a.xml:1:2: system: missing attribute \"version\"");
  REQUIRE(error_of_xml("<system version=\"1\">text</system>") ==
          "a.xml:1:21: system: expected elements only, found \"text\"");
  REQUIRE(error_of_xml(with("<gpu dev=\"1\"", "<gpus dev=\"1\"")).find("mismatch") !=
          std::string::npos);
  REQUIRE(error_of_xml("<system version=\"1\">\n <cpus/></system>") ==
          "a.xml:2:3: system: unknown element \"cpus\"; did you mean \"cpu\"?");
  REQUIRE(error_of_xml(with("numaid=\"-1\"", "numid=\"-1\"")) ==
          "a.xml:22:8: system.cpu[1]: unknown attribute \"numid\"; did you mean \"numaid\"?");
  REQUIRE(
      error_of_xml("<system version=\"1\"><cpu numaid=\"0\"><nic size=\"1\"/></cpu></system>") ==
      "a.xml:1:42: system.cpu[0].nic[0]: unknown attribute \"size\"");
  REQUIRE(error_of_xml(with("dev=\"0\" sm", "dev=\"0\" dev=\"0\" sm")) ==
          "a.xml:5:22: system.cpu[0].pci[0].pci[0].gpu[0]: the attribute \"dev\" is given twice");
  REQUIRE(error_of_xml(with("sm=\"80\"", "sm=\"8.0\"")) ==
          "a.xml:5:22: system.cpu[0].pci[0].pci[0].gpu[0].sm: expected a whole number from 10 to "
          "999, found \"8.0\"");
  REQUIRE(error_of_xml(with("class=\"0x120000\"", "class=\"120000\"")) ==
          "a.xml:23:31: system.cpu[1].pci[0].class: expected a hexadecimal number such as "
          "0x068000, found \"120000\"");
  REQUIRE(error_of_xml(with("busid=\"0001:00:00.0\"", "busid=\"GPU1\"")) ==
          "a.xml:23:10: system.cpu[1].pci[0].busid: expected a bus id such as 0000:07:00.0, found "
          "\"GPU1\"");
  REQUIRE(error_of_xml(with("latency=\"0.500000\"", "latency=\"nan\""))
              .find("net[0].latency: expected a number of at least 0, found \"nan\"") !=
          std::string::npos);
  REQUIRE(error_of_xml(with("mlx5_0", "\xc3\xa9")).find("expected printable ASCII, found") !=
          std::string::npos);
  REQUIRE(error_of_xml(with("mlx5_0", std::string(256, 'x')))
              .find("expected at most 255 characters, as NCCL reads them, found 256") !=
          std::string::npos);
  REQUIRE(error_of_xml(std::string("<system version=\"1\"/>\0<", 23)) ==
          "a.xml:1:22: expected text, found the byte \"\\x00\"");
}

TEST_CASE("a topology file has at most 256 elements, as NCCL reads it") {
  const auto file = [](int cpus) {
    std::string text = "<system version=\"1\">";
    for (int cpu = 0; cpu < cpus; ++cpu) {
      text += "<cpu numaid=\"0\"/>";
    }
    return text + "</system>";
  };
  REQUIRE(error_of_xml(file(255)) == "no error");
  REQUIRE(error_of_xml(file(256)).find("system.cpu[255]: expected at most 256 elements") !=
          std::string::npos);
}

TEST_CASE("a damaged topology file is read or refused in one line") {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 engine(seed);
    const std::string text = damaged(kSample, "<>/=\"'& \n\t0x:.-!?[]\\\xff", engine);
    INFO("seed=" << seed << '\n' << text);
    const std::string error = error_of_xml(text);
    REQUIRE(error.find('\n') == std::string::npos);
    if (error == "no error") {
      const NcclSystem system = read_nccl_xml(text, "a.xml");
      REQUIRE(read_nccl_xml(write_nccl_xml(system), "b.xml") == system);
    } else {
      REQUIRE(error.rfind("a.xml:", 0) == 0);
      ++refused;
    }
  }
  REQUIRE(refused > 200);
}

TEST_CASE("a topology file cut off anywhere is refused in one line") {
  const std::string text = kSample;
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    INFO("length " << length);
    const std::string error = error_of_xml(text.substr(0, length));
    REQUIRE(error.rfind("a.xml:", 0) == 0);
    REQUIRE(error.find('\n') == std::string::npos);
  }
}

}  // namespace trainyard
