// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it: what it says of itself, and of each mistake in one line with exit
// status 2, nothing on standard output.
#include "support/catch.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kRight = R"(name: Mine
source: a test
nodes: 2
server:
  template: nvswitch
  gpu: H100-SXM
  gpus: 8
  nic: ConnectX-7
  nics: 8
  pcie_switches: 8
fabric:
  template: single-switch
  leaf: Quantum2-QM9700
  cable: 10 m
  routing: static
)";

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), by);
}

// "LINE:COLUMN" of the first `part`.
std::string place_of(const std::string& text, const std::string& part) {
  const std::string before = text.substr(0, text.find(part));
  const std::size_t column = before.size() - before.rfind('\n');
  return std::to_string(1 + std::count(before.begin(), before.end(), '\n')) + ":" +
         std::to_string(column);
}

std::string words(const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& argument : arguments) {
    text += " " + argument;
  }
  return text;
}

void require_mistake(const std::vector<std::string>& arguments, const std::string& line,
                     const std::filesystem::path& folder) {
  INFO("trainyard" << words(arguments));
  const ProgramResult result = run_program(arguments, folder);
  REQUIRE(result.error == "trainyard: " + line + "\n");
  REQUIRE(result.output.empty());
  REQUIRE(result.status == 2);
}

// The folder of the clusters in their own messages.
std::string shipped(const std::string& name) {
  return source_dir().string() + "/configs/clusters/" + name + ".yaml";
}

// `topology` over `text` as a file.
void require_file_mistake(const std::string& text, const std::string& line) {
  const ScratchFolder folder;
  folder.write("mine.yaml", text);
  require_mistake({"topology", "--cluster", "mine.yaml"}, line, folder.path());
}

// `all_reduce` on DGX H100 with more arguments.
void require_collective_mistake(const std::vector<std::string>& more, const std::string& line) {
  std::vector<std::string> arguments{"collective", "all_reduce", "--cluster",
                                     "dgx-h100",   "--runtime",  "plain"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  require_mistake(arguments, line, source_dir());
}

ProgramResult run(const std::vector<std::string>& arguments) {
  return run_program(arguments, source_dir());
}

}  // namespace

TEST_CASE("the program alone explains itself and names what to try first") {
  const ProgramResult alone = run({});
  REQUIRE(alone.status == 0);
  REQUIRE(alone.error.empty());
  REQUIRE(alone.output.rfind("Trainyard predicts ", 0) == 0);
  // On one screen of a terminal.
  REQUIRE(std::count(alone.output.begin(), alone.output.end(), '\n') <= 24);
  REQUIRE(run({"--help"}).output == alone.output);
  REQUIRE(run({"help"}).output == alone.output);
  REQUIRE(run({"--version"}).output == "trainyard " TRAINYARD_VERSION "\n");
}

TEST_CASE("the commands that the program proposes run") {
  const std::string text = run({}).output;
  int examples = 0;
  for (std::size_t at = text.find("\n  trainyard ", text.find("Try first"));
       at != std::string::npos; at = text.find("\n  trainyard ", at + 1)) {
    const std::string command = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    INFO(command);
    const ProgramResult result = run_shell(command, source_dir());
    REQUIRE(result.status == 0);
    REQUIRE(!result.output.empty());
    ++examples;
  }
  REQUIRE(examples == 2);
}

TEST_CASE("an unknown command is answered by the nearest one") {
  const std::string here = source_dir().string();
  const std::string expected =
      "expected a command (calibrate, check, collective, compare, cost, doctor, explain, import, "
      "jobs, parts, plan, search, serve, step, sweep, topology, traffic, transfer, validate), "
      "found ";
  require_mistake({"colective", "all_reduce"},
                  expected + "\"colective\"; did you mean \"collective\"?", here);
  require_mistake({"--nodes"}, expected + "\"--nodes\"; see trainyard --help", here);
  require_mistake({""}, expected + "\"\"; see trainyard --help", here);
}

TEST_CASE("a mistake in the form of the options is one line") {
  require_collective_mistake({"--clusters", "x"},
                             "collective: unknown option \"--clusters\"; did you mean "
                             "\"--cluster\"?");
  require_collective_mistake({"-x"},
                             "collective: unknown option \"-x\"; see trainyard collective --help");
  require_collective_mistake({"--node", "2"},
                             "collective: unknown option \"--node\"; did you mean \"--nodes\"?");
  require_collective_mistake({"--nodes"}, "--nodes: expected a value, found none");
  require_collective_mistake({"--nodes", "--ranks", "8"},
                             "--nodes: expected a value, found \"--ranks\"");
  require_collective_mistake({"-b"}, "--minbytes: expected a value, found none");
  require_collective_mistake({"--nodes="}, "--nodes: expected a value, found none");
  require_collective_mistake({"--fingerprint=yes"}, "--fingerprint: expected no value, found one");
  require_collective_mistake({"--cluster", "dgx-1"}, "--cluster: expected once, found again");
  require_collective_mistake({"-b", "8", "--minbytes", "8"},
                             "--minbytes: expected once, found again");
  require_collective_mistake({"more"},
                             "collective: expected options and one operation, found \"more\"");
  const std::string here = source_dir().string();
  require_mistake({"topology", "dgx-1"}, "topology: expected options alone, found \"dgx-1\"", here);
  require_mistake({"topology"},
                  "topology: expected --cluster, found none; see trainyard topology --help", here);
  require_mistake({"collective", "all_reduce"},
                  "collective: expected --cluster, found none; see trainyard collective --help",
                  here);
}

TEST_CASE("an argument with a line break is answered in one line") {
  require_collective_mistake({"--set", "a\nb"}, "--set: expected key.path=value, found \"a\\nb\"");
  require_mistake({"topology", "--cluster", "no\nsuch.yaml"},
                  "no\\nsuch.yaml: cannot be read: No such file or directory", source_dir());
}

TEST_CASE("a group larger than the cluster is refused") {
  require_collective_mistake(
      {"--ranks", "33"},
      "--ranks: expected at most 32 (4 nodes of 8 GPUs; --nodes gives more), found \"33\"");
  require_collective_mistake({"--gpus-per-node", "9"},
                             source_dir().string() +
                                 "/configs/servers/hgx-h100.yaml:8:7: server.gpus: "
                                 "--gpus-per-node: expected 1 to 8, the GPUs "
                                 "of a server, found 9");
  require_collective_mistake(
      {"--nodes", "257"},
      "--nodes 257: nodes: at most 256 servers of 8 NICs fit two tiers of Quantum2-QM9700 "
      "below Quantum2-QM9700 of 64 ports, found 257: lower nodes, take switches with more "
      "ports or give a core");
}

TEST_CASE("an algorithm that is unknown or cannot do the operation is refused") {
  require_collective_mistake(
      {"--algo", "ring,rign"},
      "--algo: expected auto alone, or some of ring, tree, "
      "halving-doubling, halving-doubling-far, pairwise, direct, nvls, sharp, recursive-doubling, "
      "bruck, hierarchical, multi-ring, pat, nvls-tree, two-hop, "
      "dissemination, swing, found \"rign\"; did "
      "you mean \"ring\"?");
  require_collective_mistake({"--algo", "ring,pairwise"},
                             "--algo: expected an algorithm that can do all_reduce (ring, tree, "
                             "halving-doubling, halving-doubling-far, nvls, sharp, "
                             "recursive-doubling, hierarchical, multi-ring, "
                             "nvls-tree, swing), found \"pairwise\"");
  require_collective_mistake({"--algo", "ring,ring"},
                             "--algo: expected every algorithm once, found \"ring,ring\"");
}

TEST_CASE("an algorithm that the cluster cannot run is refused where it is named") {
  require_collective_mistake({"--algo", "ring,nvls"},
                             "--algo: expected an algorithm that the cluster can run, found "
                             "\"nvls\": the ranks are not all on one NVSwitch");
  require_collective_mistake({"--algo", "sharp", "--nodes", "1"},
                             "--algo: expected an algorithm that the cluster can run, found "
                             "\"sharp\": one server does not use the switches of the fabric");
  require_collective_mistake(
      {"--algo", "sharp", "--set", "fabric.leaf=Spectrum4-SN5400"},
      "--algo: expected an algorithm that the cluster can run, found \"sharp\": the switch "
      "Spectrum4-SN5400 cannot add up in the network");
}

TEST_CASE("what this version does not have is refused by name") {
  require_mistake({"collective", "all_reduce", "--cluster", "dgx-h100", "--runtime", "rcll"},
                  "--runtime: expected nccl or plain for NVIDIA H100 SXM5 80 GB, found \"rcll\"",
                  source_dir());
  require_collective_mistake(
      {"--fidelity", "exact"},
      "--fidelity: expected flow, analytical, packet or mixed, found \"exact\"");
}

TEST_CASE("ranks that cannot reach each other are refused") {
  require_collective_mistake(
      {"--set", "server.nics=0"},
      shipped("dgx-h100") + ":5:8: nodes: 4 servers cannot reach each other: server.nics is 0");
  require_mistake({"collective", "all_reduce", "--cluster", "rtx4090-pcie", "--nodes", "2"},
                  "--nodes 2: nodes: 2 servers cannot reach each other: server.nics is 0",
                  source_dir());
}

TEST_CASE("a mistake in a cluster file is one line with its place") {
  require_file_mistake(replaced(kRight, "  gpus: 8\n", "  gpus: 8\n  pcie_swiches: 8\n"),
                       "mine.yaml:8:3: server: unknown key \"pcie_swiches\"; did you mean "
                       "\"pcie_switches\"?");
  require_file_mistake(replaced(kRight, "10 m", "10"),
                       "mine.yaml:14:10: fabric.cable: expected a length such as \"10 m\", at most "
                       "100 km, found \"10\"");
  require_file_mistake(replaced(kRight, "gpus: 8", "gpus: 0"),
                       "mine.yaml:7:9: server.gpus: expected a whole number from 1 to 4096, found "
                       "\"0\"");
  require_file_mistake(replaced(kRight, "H100-SXM", "H100-SXN"),
                       "mine.yaml:6:8: server.gpu: expected the name of a GPU in the "
                       "catalogue, found \"H100-SXN\"; did you mean \"H100-SXM\"?");
  require_file_mistake("", "mine.yaml: expected a mapping, found nothing");
  require_file_mistake("name: \xff\n", "mine.yaml:1:7: expected UTF-8 text, found the byte 0xFF");
}

TEST_CASE("a cluster that is no file of a sane size is refused at once") {
  const ScratchFolder folder;
  folder.write("brackets.yaml", std::string(100'000'000, '['));
  require_mistake({"topology", "--cluster", "brackets.yaml"},
                  "brackets.yaml: expected at most 16 MiB, found more", folder.path());
  folder.write("nested.yaml", std::string(10'000'000, '['));
  require_mistake({"topology", "--cluster", "nested.yaml"},
                  "nested.yaml:1:1001: expected at most 64 levels of nesting, found more",
                  folder.path());
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 20; ++level) {
    const std::string below = "*a" + std::to_string(level - 1);
    const std::string name = "a" + std::to_string(level);
    bomb += name + ": &" + name + " [" + below;
    for (int copy = 1; copy < 10; ++copy) {
      bomb += ", " + below;
    }
    bomb += "]\n";
  }
  folder.write("bomb.yaml", bomb);
  require_mistake({"topology", "--cluster", "bomb.yaml"},
                  "bomb.yaml:6:45: expected at most 1000000 values, found more", folder.path());
  std::filesystem::create_directory(folder.path() / "folder.yaml");
  require_mistake({"topology", "--cluster", "folder.yaml"},
                  "folder.yaml: expected a file, found a directory", folder.path());
  require_mistake({"topology", "--cluster", "missing.yaml"},
                  "missing.yaml: cannot be read: No such file or directory", folder.path());
}

TEST_CASE("the name of a cluster that is not there is answered by the nearest one") {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "configs/clusters")) {
    files.insert(entry.path().stem().string());
  }
  require_mistake({"topology", "--cluster", "dgx-h10"},
                  "expected a file or one of the " + std::to_string(files.size()) +
                      " names in configs/clusters, found \"dgx-h10\"; did you mean \"dgx-h100\"?",
                  source_dir());
}

TEST_CASE("a cluster of absurd size is refused or shown, never built without end") {
  const auto topology = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"topology", "--cluster", "rtx4090-pcie"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const std::string here = source_dir().string();
  require_mistake(topology({"--set", "server.pcie_switches=100000"}),
                  "--set server.pcie_switches=100000: server.pcie_switches: expected a whole "
                  "number from 0 to 4096, found \"100000\"",
                  here);
  require_mistake(topology({"--set", "server.sockets=4096"}),
                  "--set server.sockets=4096: server.sockets: expected a whole number from 1 to "
                  "64, found \"4096\"",
                  here);
  require_mistake(topology({"--nodes", "1000000"}),
                  "--nodes 1000000: nodes: at most 2000000 devices, found 1000000 servers of "
                  "12 (GPUs, NICs, PCIe switches, CPUs and their memories)",
                  here);
  REQUIRE(run(topology({"--set", "server.gpus=4096", "--set", "server.sockets=64"})).status == 0);
  REQUIRE(run({"topology", "--cluster", "dgx-h100", "--nodes", "256"}).status == 0);
}

TEST_CASE("an installed copy uses its own catalogue, and a wrong rate in it is one line") {
  const ScratchFolder folder;
  const std::filesystem::path configs = folder.path() / "share/trainyard/configs";
  std::filesystem::create_directories(folder.path() / "bin");
  std::filesystem::create_directories(configs);
  std::filesystem::copy(program_path(), folder.path() / "bin/trainyard");
  std::filesystem::copy(source_dir().string() + "/configs", configs,
                        std::filesystem::copy_options::recursive);
  const std::string command = "./bin/trainyard topology --cluster dgx-h100";
  REQUIRE(run_shell(command, folder.path()).status == 0);

  const std::string file = configs / "hardware/links.yaml";
  const std::string right = read_text_file(file);
  const std::string rate = "20 GB/s";  // The first of the file.
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"-25 GB/s", "positive rate such as \"400 Gb/s\""},
      {"0 GB/s", "positive rate such as \"400 Gb/s\""},
      {"25", "rate such as \"400 Gb/s\""}};
  for (const auto& [wrong, expected] : mistakes) {
    folder.write("share/trainyard/configs/hardware/links.yaml", replaced(right, rate, wrong));
    const ProgramResult result = run_shell(command, folder.path());
    REQUIRE(result.error == "trainyard: " + file + ":" + place_of(right, rate) +
                                ": links.NVLink1.bandwidth.value: expected a " + expected +
                                ", found \"" + wrong + "\"\n");
    REQUIRE(result.status == 2);
  }
}

TEST_CASE("a result that cannot be written is an error") {
  const std::string command =
      "trainyard collective all_reduce --cluster dgx-h100 -b 8 -e 8 > /dev/full";
  const ProgramResult full = run_shell(command, source_dir());
  REQUIRE(full.error == "trainyard: standard output: cannot be written\n");
  REQUIRE(full.status == 2);
  require_collective_mistake(
      {"--output", "no/such/folder.csv"},
      "--output: expected a file in a folder that exists, found \"no/such/folder.csv\"");
  require_collective_mistake({"--trace", "docs"},
                             "--trace: expected a file in a folder that exists, found \"docs\"");
  require_collective_mistake({"--trace", "same", "--output", "same"},
                             "--trace: expected another file than that of --output, found "
                             "\"same\"");
}

TEST_CASE("a run over packets that loses some for good is no result, and says so") {
  const ScratchFolder folder;
  std::string transport = read_text_file(source_dir() / "configs/transport/default.yaml");
  transport = replaced(transport, "value: [3]", "value: []");
  transport = replaced(transport, "value: 32 MB", "value: 20 KB");
  transport = replaced(transport, "control: dcqcn-nic", "control: none");
  (void)folder.write("again.yaml", transport);
  (void)folder.write("lossy.yaml", replaced(transport, "value: go-back-n", "value: none"));
  const auto require_loss = [&](std::vector<std::string> arguments, const std::string& line) {
    arguments.insert(arguments.end(), {"--fidelity", "packet", "--transport", "lossy.yaml",
                                       "--cluster", "h100-1gpu-400g", "--nodes", "8"});
    const ProgramResult result = run_program(arguments, folder.path());
    INFO(result.output << result.error);
    REQUIRE(result.status == 1);
    REQUIRE(result.error.find(line) != std::string::npos);
    REQUIRE(result.error.find(" packets were lost\n") != std::string::npos);
    REQUIRE(result.output.find("# Simulated by Trainyard: ") != std::string::npos);
  };
  require_loss(
      {"collective", "gather", "--runtime", "plain", "--algo", "direct", "-b", "8M", "-e", "8M"},
      "trainyard: error: gather direct of 8MiB: ");
  REQUIRE(run_program({"transfer", "--matrix", "p2p", "--all-at-once", "--size", "64K",
                       "--fidelity", "packet", "--transport", "again.yaml", "--cluster",
                       "h100-1gpu-400g", "--nodes", "4"},
                      folder.path())
              .status == 0);
  require_loss({"transfer", "--matrix", "p2p", "--all-at-once", "--size", "8M"},
               "trainyard: error: ");
}

TEST_CASE("log lines go to standard error and change no result") {
  const std::vector<std::string> arguments{
      "collective", "all_reduce", "--cluster", "dgx-h100", "--runtime", "plain",  "--nodes",
      "1",          "-b",         "1M",        "-e",       "1M",        "--algo", "ring"};
  std::vector<std::string> loud = arguments;
  loud.insert(loud.end(), {"--log-level", "debug"});
  const ProgramResult quiet = run(arguments);
  const ProgramResult debug = run(loud);
  REQUIRE(quiet.error.empty());
  REQUIRE(quiet.status == 0);
  REQUIRE(debug.output == quiet.output);
  REQUIRE(debug.error.rfind("trainyard: debug: all_reduce ring of 1MiB: ", 0) == 0);
  REQUIRE(std::count(debug.error.begin(), debug.error.end(), '\n') == 1);
}

}  // namespace trainyard
