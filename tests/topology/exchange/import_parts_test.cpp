// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/import_parts.h"

#include <string>

#include "sim/config_error.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

std::string gpu_of(const GpuEvidence& evidence, const ImportOptions& options = {}) {
  try {
    return choose_gpu(evidence, options, shipped_catalogue(), "a.xml").name;
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a GPU is known by what the user says, its PCI id, or capability and links") {
  REQUIRE(gpu_of({.pci_id = "10de:20b0", .sm = 80, .links = 12}) == "A100-SXM-40GB");
  REQUIRE(gpu_of({.sm = 70, .links = 6}) ==
          "a.xml: a GPU of sm 70 with 6 links may be V100-SXM2-16GB or V100-SXM2-32GB; expected "
          "--gpu PART, found none");
  REQUIRE(gpu_of({.sm = 90, .links = 8}) == "H800-SXM");
  REQUIRE(gpu_of({.sm = 90, .links = 8}, {.gpu = "H20"}) == "H20");
  REQUIRE(gpu_of({.sm = 37}) ==
          "a.xml: a GPU of sm 37 fits no part of the catalogue; expected --gpu PART, found none");
}

TEST_CASE("PCI ids lead to one part each") {
  for (const auto& [name, gpu] : shipped_catalogue().gpus()) {
    if (gpu.pci_ids) {
      for (const std::string& id : gpu.pci_ids->value) {
        REQUIRE(gpu_of({.pci_id = id}) == name);
      }
    }
  }
  for (const auto& [name, nic] : shipped_catalogue().nics()) {
    if (nic.pci_ids) {
      for (const std::string& id : nic.pci_ids->value) {
        const NicEvidence evidence{.pci_id = id, .ports = nic.ports.value};
        REQUIRE(recognise_nic(evidence, shipped_catalogue())->name == name);
      }
    }
  }
}

TEST_CASE("a NIC of an unknown id is known by its speed if one part without an id has it") {
  REQUIRE(recognise_nic({.pci_id = "ffff:0001", .speed = 10'000}, shipped_catalogue())->name ==
          "Ethernet-10G");
  REQUIRE(recognise_nic({.pci_id = "ffff:0001", .speed = 200'000}, shipped_catalogue()) == nullptr);
  REQUIRE(recognise_nic({.speed = 10'000}, shipped_catalogue())->name == "Ethernet-10G");
  REQUIRE(recognise_nic({.speed = 1}, shipped_catalogue()) == nullptr);
  REQUIRE(speed_text(200'000) == "200Gb/s");
}

TEST_CASE("a CPU is known by its identity, and only needed to join sockets") {
  NcclCpu cpu;
  cpu.arch = "x86_64";
  cpu.vendor = "AuthenticAMD";
  cpu.familyid = 143;
  cpu.modelid = 49;
  REQUIRE(choose_cpu(cpu, 2, {}, shipped_catalogue(), "a.xml") == "EPYC-Rome");
  REQUIRE(choose_cpu(cpu, 2, {.cpu = "Grace"}, shipped_catalogue(), "a.xml") == "Grace");
  cpu.modelid = 1000;
  REQUIRE(choose_cpu(cpu, 1, {}, shipped_catalogue(), "a.xml").empty());
  REQUIRE_THROWS_WITH(choose_cpu(cpu, 2, {}, shipped_catalogue(), "a.xml"),
                      "a.xml: the CPU, whose link between sockets is needed, fits no part of the "
                      "catalogue; expected --cpu PART, found none");
}

TEST_CASE("a name that is no part of the catalogue is an error with the nearest") {
  REQUIRE_THROWS_WITH(check_names({.gpu = "H100-SMX"}, shipped_catalogue()),
                      "--gpu: expected a part of the catalogue, found \"H100-SMX\"; did you mean "
                      "\"H100-SXM\"?");
  REQUIRE_THROWS_WITH(check_names({.nic = "X"}, shipped_catalogue()),
                      Catch::StartsWith("--nic: expected a part of the catalogue, found \"X\"; "
                                        "known: BCM57414, "));
  check_names({.gpu = "B200", .nic = "Thor2", .cpu = "Grace"}, shipped_catalogue());
}

TEST_CASE("an import says where devices got other numbers") {
  ImportedServer server;
  server.tree = empty_server(3, 0);
  const auto gpu = [](int index) { return OutlineBranch{.index = index}; };
  server.tree.sockets = {{gpu(0), gpu(2)}, {gpu(1)}};
  finish_import(server);
  REQUIRE(server.remarks ==
          std::vector<std::string>{
              "GPU0, GPU1, ... are GPU 0, 2, 1 of the file: here they count in the order of the "
              "tree."});
}

}  // namespace trainyard
