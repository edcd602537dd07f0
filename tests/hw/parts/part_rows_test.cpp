// SPDX-License-Identifier: Apache-2.0
// A value of a part carries its source; a broken file says where and why.
#include "support/catch.h"

#include "hw/parts/catalogue.h"
#include "hw/parts/part_rows.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/config.h"

namespace trainyard {
namespace {

// A catalogue with one part of each kind.
using Files = std::map<std::string, std::string>;

Files small_catalogue() {
  return {{"cpus.yaml",
           "sources:\n"
           "  list: A list of processors\n"
           "cpus:\n"
           "  Xeon:\n"
           "    title: Intel Xeon\n"
           "    arch: x86_64\n"
           "    vendor: GenuineIntel\n"
           "    family: {value: 6, evidence: shipped, source: list}\n"
           "    model: {value: 143, evidence: shipped, source: list}\n"
           "    pcie: PCIe5\n"
           "    memory_bandwidth: {value: 307.2 GB/s, evidence: datasheet, source: list}\n"
           "    memory_latency: {value: 150 ns, evidence: estimate, source: list}\n"
           "    root_bandwidth: {value: 73 GB/s, evidence: measured, source: list}\n"},
          {"links.yaml",
           "sources:\n"
           "  book: A book about links\n"
           "links:\n"
           "  NVLink4:\n"
           "    family: nvlink\n"
           "    bandwidth: {value: 25 GB/s, evidence: datasheet, source: book}\n"
           "    efficiency: {value: 0.82, evidence: measured, source: book}\n"
           "    latency: {value: 350 ns, evidence: estimate, source: book}\n"
           "  PCIe5:\n"
           "    family: pcie\n"
           "    bandwidth: {value: 31.5 Gb/s, evidence: datasheet, source: book}\n"
           "    max_payload: {value: 256 B, evidence: measured, source: book}\n"
           "    latency: {value: 5 ns, evidence: estimate, source: book}\n"},
          {"gpus.yaml",
           "sources:\n"
           "  sheet: A data sheet\n"
           "gpus:\n"
           "  H100-SXM:\n"
           "    title: NVIDIA H100 SXM5 80 GB\n"
           "    architecture: hopper\n"
           "    peak:\n"
           "      fp32: {value: 67 TFLOP/s, evidence: datasheet, source: sheet}\n"
           "    memory: {value: 80 GB, evidence: datasheet, source: sheet, note: five stacks}\n"
           "    memory_bandwidth: {value: 3350 GB/s, evidence: datasheet, source: sheet}\n"
           "    scale_up_link: NVLink4\n"
           "    scale_up_links: {value: 18, evidence: datasheet, source: sheet}\n"
           "    pcie: PCIe5\n"
           "    pcie_lanes: {value: 16, evidence: datasheet, source: sheet}\n"},
          {"nics.yaml",
           "sources:\n"
           "  manual: A manual\n"
           "nics:\n"
           "  ConnectX-7:\n"
           "    title: NVIDIA ConnectX-7\n"
           "    speed: {value: 400 Gb/s, evidence: datasheet, source: manual}\n"
           "    ports: {value: 1, evidence: datasheet, source: manual}\n"
           "    pcie: PCIe5\n"
           "    pcie_lanes: {value: 16, evidence: datasheet, source: manual}\n"
           "    efficiency: {value: 0.96, evidence: measured, source: manual}\n"
           "    latency: {value: 500 ns, evidence: estimate, source: manual}\n"},
          {"nvswitches.yaml",
           "sources:\n"
           "  manual: A manual\n"
           "nvswitches:\n"
           "  NVSwitch3:\n"
           "    title: NVIDIA NVSwitch\n"
           "    link: NVLink4\n"
           "    ports: {value: 64, evidence: secondary, source: manual}\n"
           "    in_network_reduction: {value: true, evidence: secondary, source: manual}\n"},
          {"switches.yaml",
           "sources:\n"
           "  manual: A manual\n"
           "switches:\n"
           "  Rosetta:\n"
           "    title: HPE Rosetta\n"
           "    ports: {value: 64, evidence: secondary, source: manual}\n"
           "    speed: {value: 200 Gb/s, evidence: secondary, source: manual}\n"
           "    latency: {value: 350 ns, evidence: secondary, source: manual}\n"}};
}

// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "catalogue-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  void write(const Files& files) const {
    for (const auto& [name, text] : files) {
      std::ofstream(path_ / name) << text;
    }
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Returns what loading says, without the folder, when `from` in `file` of the small catalogue
// becomes `to`.
std::string load_error(const std::string& file, const std::string& from, const std::string& to) {
  Files files = small_catalogue();
  std::string& text = files[file];
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  text.replace(place, from.size(), to);
  const TemporaryFolder folder;
  folder.write(files);
  try {
    static_cast<void>(Catalogue::load(folder.path()));
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    const std::string prefix = folder.path().string() + "/";
    REQUIRE(message.starts_with(prefix));
    return message.substr(prefix.size());
  }
  return "no error";
}

}  // namespace

TEST_CASE("a value carries its evidence, its citation and its note") {
  const TemporaryFolder folder;
  folder.write(small_catalogue());
  const Catalogue catalogue = Catalogue::load(folder.path());
  const GpuModel& gpu = catalogue.gpus().at("H100-SXM");
  REQUIRE(gpu.memory.evidence == Evidence::Datasheet);
  REQUIRE(gpu.memory.source == "A data sheet; five stacks");
  REQUIRE(gpu.memory_bandwidth.source == "A data sheet");
  REQUIRE(catalogue.link("PCIe5").efficiency.evidence == Evidence::Measured);
}

TEST_CASE("a broken catalogue says where and why") {
  SECTION("a link that no file defines") {
    REQUIRE(load_error("gpus.yaml", "scale_up_link: NVLink4", "scale_up_link: NVLnk4") ==
            "gpus.yaml:11:20: gpus.H100-SXM.scale_up_link: expected the name of a link in the "
            "catalogue, found \"NVLnk4\"; did you mean \"NVLink4\"?");
  }
  SECTION("a CPU of an unknown architecture") {
    REQUIRE(load_error("cpus.yaml", "arch: x86_64", "arch: x86") ==
            "cpus.yaml:6:11: cpus.Xeon.arch: expected one of x86_64, arm64, found \"x86\"");
  }
  SECTION("a CPU that prints a vendor and has none") {
    REQUIRE(load_error("cpus.yaml", "    vendor: GenuineIntel\n", "") ==
            "cpus.yaml:5:5: cpus.Xeon: missing key \"vendor\"");
    REQUIRE_THAT(load_error("cpus.yaml", "arch: x86_64", "arch: arm64"),
                 Catch::StartsWith("cpus.yaml:7:5: cpus.Xeon: unknown key \"vendor\""));
  }
  SECTION("a link between sockets that is none") {
    REQUIRE(load_error("cpus.yaml", "    root_bandwidth",
                       "    socket_link: PCIe5\n    root_bandwidth") ==
            "cpus.yaml:13:18: cpus.Xeon.socket_link: expected a link of family socket, found "
            "\"PCIe5\"");
  }
  SECTION("an NVSwitch with ports of PCIe") {
    REQUIRE(
        load_error("nvswitches.yaml", "link: NVLink4", "link: PCIe5") ==
        "nvswitches.yaml:6:11: nvswitches.NVSwitch3.link: expected a link of family nvlink, found "
        "\"PCIe5\"");
  }
  SECTION("a link of the wrong family") {
    REQUIRE(load_error("gpus.yaml", "scale_up_link: NVLink4", "scale_up_link: PCIe5") ==
            "gpus.yaml:11:20: gpus.H100-SXM.scale_up_link: expected a link of family nvlink or "
            "xgmi or hccs, found \"PCIe5\"");
  }
  SECTION("a source that the file does not list") {
    REQUIRE(load_error("nics.yaml", "source: manual}", "source: manul}") ==
            "nics.yaml:6:59: nics.ConnectX-7.speed.source: expected a key of \"sources\", found "
            "\"manul\"; did you mean \"manual\"?");
  }
  SECTION("a value without its source") {
    REQUIRE_THAT(load_error("nics.yaml", ", source: manual}", "}"),
                 Catch::StartsWith("nics.yaml:6:12: nics.ConnectX-7.speed"));
  }
  SECTION("an unknown kind of evidence") {
    REQUIRE_THAT(load_error("switches.yaml", "evidence: secondary", "evidence: hearsay"),
                 Catch::StartsWith("switches.yaml:6:34: switches.Rosetta.ports.evidence: "));
  }
  SECTION("an efficiency above one") {
    REQUIRE_THAT(load_error("links.yaml", "value: 0.82", "value: 82"),
                 Catch::StartsWith("links.yaml:7:25: links.NVLink4.efficiency.value: "));
  }
  SECTION("too many links") {
    REQUIRE_THAT(load_error("gpus.yaml", "value: 18", "value: 180"),
                 Catch::StartsWith("gpus.yaml:12:29: gpus.H100-SXM.scale_up_links.value: "));
  }
  SECTION("links without the name of the link") {
    REQUIRE_THAT(load_error("gpus.yaml", "    scale_up_link: NVLink4\n", ""),
                 Catch::Contains("scale_up_link"));
  }
  SECTION("a rate without its unit") {
    REQUIRE_THAT(load_error("switches.yaml", "200 Gb/s", "200"),
                 Catch::StartsWith("switches.yaml:7:20: switches.Rosetta.speed.value: "));
  }
  SECTION("a number of lanes that no slot has") {
    REQUIRE(load_error("nics.yaml", "value: 16", "value: 12") ==
            "nics.yaml:9:25: nics.ConnectX-7.pcie_lanes.value: expected 1, 2, 4, 8, 16 or 32 "
            "lanes, found \"12\"");
  }
  SECTION("a payload size that PCIe does not have") {
    REQUIRE(load_error("links.yaml", "256 B", "300 B") ==
            "links.yaml:12:26: links.PCIe5.max_payload.value: expected a power of two from 128 B "
            "to 4096 B, found \"300 B\"");
  }
  SECTION("a payload size and an efficiency") {
    REQUIRE(load_error("links.yaml", "    max_payload",
                       "    efficiency: {value: 0.9, evidence: measured, source: book}\n"
                       "    max_payload") ==
            "links.yaml:12:17: links.PCIe5.efficiency: give either this or max_payload, from which "
            "it follows");
  }
  SECTION("reduction in the network of a link that has no NVSwitch") {
    REQUIRE(load_error("links.yaml", "    max_payload",
                       "    in_network_reduction: {value: true, evidence: datasheet, source: "
                       "book}\n"
                       "    max_payload") ==
            "links.yaml:12:27: links.PCIe5.in_network_reduction: only a link of family nvlink has "
            "an NVSwitch");
  }
  SECTION("a data type that nobody knows") {
    REQUIRE_THAT(
        load_error("gpus.yaml", "fp32", "fp23"),
        Catch::Equals(
            "gpus.yaml:8:7: gpus.H100-SXM.peak: unknown key \"fp23\"; did you mean \"fp32\"?"));
  }
  SECTION("a key that nobody reads") {
    REQUIRE_THAT(
        load_error("switches.yaml", "    title", "    colour: red\n    title"),
        Catch::StartsWith("switches.yaml:5:5: switches.Rosetta: unknown key \"colour\"; "));
  }
  SECTION("a PCI id in another form") {
    for (const std::string id : {"10DE:2330", "10de:233", "10de-2330", "0x10de"}) {
      REQUIRE_THAT(
          load_error("gpus.yaml", "    peak:",
                     "    pci_ids: {value: [\"" + id +
                         "\"], evidence: secondary, source: sheet}\n"
                         "    peak:"),
          Catch::EndsWith("gpus.H100-SXM.pci_ids.value[0]: expected vendor and device such as "
                          "\"10de:2330\", found \"" +
                          id + "\""));
    }
  }
  SECTION("a missing file") {
    const TemporaryFolder folder;
    REQUIRE_THROWS_AS(Catalogue::load(folder.path()), ConfigError);
  }
}

}  // namespace trainyard
