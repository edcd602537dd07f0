// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/import_parts.h"

#include <string>

#include "sim/config_error.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

std::string question_of(const OpenParts& open) {
  try {
    open.check();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no question";
}

std::string gpu_of(const GpuEvidence& evidence, const ImportOptions& options = {}) {
  OpenParts open;
  const GpuModel* gpu = choose_gpu(evidence, options, shipped_catalogue(), "a.xml", open);
  return gpu != nullptr ? gpu->name : question_of(open);
}

std::string cpu_of(const NcclCpu& cpu, std::size_t sockets, const ImportOptions& options = {}) {
  OpenParts open;
  const std::string name = choose_cpu(cpu, sockets, options, shipped_catalogue(), "a.xml", open);
  return name.empty() && sockets > 1 ? question_of(open) : name;
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

TEST_CASE("an AMD GPU is known by its architecture and number of compute units") {
  REQUIRE(gpu_of({.sm = 120, .gcn = "908", .links = 6}) == "MI100");
  REQUIRE(gpu_of({.sm = 64, .gcn = "gfx906"}) == "MI60");
  REQUIRE(gpu_of({.sm = 110, .gcn = "gfx90a:sramecc+:xnack-"}) == "MI250X");
  REQUIRE(gpu_of({.sm = 104, .gcn = "910"}) ==
          "a.xml: a GPU of gcn 910 with 104 compute units may be MI210 or MI250; expected --gpu "
          "PART, found none");
  REQUIRE(gpu_of({.sm = 228, .gcn = "940"}) == "MI300A");
  REQUIRE(gpu_of({.pci_id = "1002:74b5", .sm = 304, .gcn = "gfx942"}) == "MI300X");
  REQUIRE(gpu_of({.sm = 1, .gcn = "gfx1"}) ==
          "a.xml: a GPU of gcn gfx1 with 1 compute units fits no part of the catalogue; expected "
          "--gpu PART, found none");
}

TEST_CASE("a CPU is known by its identity, and only needed to join sockets") {
  NcclCpu cpu;
  cpu.arch = "x86_64";
  cpu.vendor = "AuthenticAMD";
  cpu.familyid = 143;
  cpu.modelid = 49;
  REQUIRE(cpu_of(cpu, 2) == "EPYC-Rome");
  REQUIRE(cpu_of(cpu, 2, {.cpu = "Grace"}) == "Grace");
  // CPUID's base and extended family added up, as templates have it.
  cpu.familyid = 23;
  REQUIRE(cpu_of(cpu, 2) == "EPYC-Rome");
  cpu.familyid = 25;
  cpu.modelid = 17;
  REQUIRE(cpu_of(cpu, 2) == "EPYC-Genoa");
  cpu.modelid = 1000;
  REQUIRE(cpu_of(cpu, 1).empty());
  REQUIRE(cpu_of(cpu, 2) ==
          "a.xml: the CPU, whose link between sockets is needed, fits no part of the catalogue; "
          "expected --cpu PART, found none");
  // A fact that a file leaves to the machine may be anything.
  cpu.modelid.reset();
  REQUIRE(cpu_of(cpu, 2) ==
          "a.xml: the CPU, whose link between sockets is needed, may be EPYC-Genoa or EPYC-Milan; "
          "expected --cpu PART, found none");
  REQUIRE(cpu_of({}, 2).find("may be any of ") != std::string::npos);
}

TEST_CASE("all that a file leaves open is asked for at once") {
  OpenParts open;
  open.check();
  open.ask("a.xml:1:2", "a GPU", "--gpu PART", {});
  open.ask("a.xml:5:2", "an adapter of 3Gb/s", "--nic PART", {"A", "B"});
  open.ask("a.xml:9:2", "the CPU is open", "--cpu PART");
  REQUIRE(question_of(open) ==
          "a.xml:1:2: a GPU fits no part of the catalogue; an adapter of 3Gb/s may be A or B; the "
          "CPU is open; expected --gpu PART, --nic PART and --cpu PART, found none");
}

TEST_CASE(
    "the NICs that an adapter may be are those of its speed, of its vendor if there are any") {
  REQUIRE(possible_nics({.pci_id = "17db:9999", .speed = 200'000}, shipped_catalogue()) ==
          std::vector<std::string>{"Cassini"});
  for (const std::string& name :
       possible_nics({.pci_id = "ffff:0001", .speed = 400'000}, shipped_catalogue())) {
    const NicModel& nic = shipped_catalogue().nics().at(name);
    REQUIRE(nic.speed.value.bits_per_second() * nic.ports.value == 400'000'000'000);
  }
  REQUIRE(possible_nics({}, shipped_catalogue()).size() == shipped_catalogue().nics().size());
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
