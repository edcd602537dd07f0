// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/smi_matrix.h"

#include <random>
#include <string>

#include "sim/config_error.h"
#include "support/damage.h"

namespace trainyard {
namespace {

// The form of a capture from a terminal: prompt, underlined header, tabs, trailing tabs.
const std::string kCapture =
    "user@host:~$ nvidia-smi topo -m\n"
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tSYS\tPIX\tNODE\t0-23,48-71\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\tPXB\tNODE\t0-23,48-71\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tSYS\tPHB\t24-47,72-95\t1\t\tN/A\n"
    "NIC0\tPIX\tPXB\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tNODE\tNODE\tPHB\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n"
    "  SYS  = far\n"
    "  NV#  = # links\n"
    "\n"
    "NIC Legend:\n"
    "\n"
    "  NIC0: mlx5_0\n"
    "  NIC1: mlx5_1\n\n";

// An older driver, pasted with blanks for tabs.
const std::string kOld =
    "        GPU0    GPU1    mlx5_0  CPU Affinity\n"
    "GPU0     X      NV1     SOC     0-15\n"
    "GPU1    NV1      X      PHB\n"
    "mlx5_0  SOC     PHB      X\n";

std::string error_of_matrix(const std::string& text) {
  try {
    (void)read_smi_matrix(text, "topo.txt");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string with_matrix(std::string text, const std::string& old, const std::string& replacement) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), replacement);
}

}  // namespace

TEST_CASE("a capture of nvidia-smi topo -m is read") {
  const SmiMatrix matrix = read_smi_matrix(kCapture, "topo.txt");
  REQUIRE(matrix.devices.size() == 5);
  REQUIRE(matrix.devices[2].is_gpu);
  REQUIRE(matrix.devices[2].cpu_affinity == "24-47,72-95");
  REQUIRE(matrix.devices[2].numa_affinity == "1");
  REQUIRE(matrix.devices[2].gpu_numa_id == "N/A");
  REQUIRE(!matrix.devices[3].is_gpu);
  REQUIRE(matrix.devices[4].nic_name == "mlx5_1");
  REQUIRE(matrix.cells[0][1] == SmiCell{SmiDistance::NvLink, 18});
  REQUIRE(matrix.cells[3][0] == SmiCell{SmiDistance::Pix});
  REQUIRE(matrix.cells[3][1] == SmiCell{SmiDistance::Pxb});
  REQUIRE(matrix.cells[4][2] == SmiCell{SmiDistance::Phb});
}

TEST_CASE("a matrix of an older driver is read") {
  const SmiMatrix matrix = read_smi_matrix(kOld, "topo.txt");
  REQUIRE(matrix.devices.size() == 3);
  REQUIRE(matrix.devices[2].name == "mlx5_0");
  REQUIRE(matrix.devices[0].cpu_affinity == "0-15");
  REQUIRE(matrix.devices[1].cpu_affinity.empty());
  REQUIRE(matrix.cells[0][2] == SmiCell{SmiDistance::Sys});
}

TEST_CASE("a matrix that was read is written with nothing lost, and then stays as it is") {
  for (const std::string& text : {kCapture, kOld}) {
    const SmiMatrix matrix = read_smi_matrix(text, "topo.txt");
    const std::string written = write_smi_matrix(matrix);
    REQUIRE(read_smi_matrix(written, "again.txt") == matrix);
    REQUIRE(write_smi_matrix(read_smi_matrix(written, "again.txt")) == written);
  }
}

TEST_CASE("a matrix is read out of what it was pasted into") {
  const SmiMatrix matrix = read_smi_matrix(kCapture, "topo.txt");
  const std::string fenced =
      "Voici ma machine \xc3\xa0 moi:\n\n| GPU0 | GPU1 | fast |\n\n```bash\n" + kCapture +
      "```\n\nWhat is wrong with it?\n";
  REQUIRE(looks_like_smi_matrix(fenced));
  REQUIRE(read_smi_matrix(fenced, "a.md") == matrix);
  std::string quoted = "> ";
  for (const char letter : fenced) {
    quoted += letter == '\n' ? "\n> " : std::string(1, letter);
  }
  REQUIRE(read_smi_matrix(quoted, "a.md") == matrix);
  REQUIRE(read_smi_matrix("\xef\xbb\xbf" + with_matrix(kOld, "    GPU1", "\xc2\xa0   GPU1"), "a") ==
          read_smi_matrix(kOld, "a"));
  const std::string table =
      "|        | GPU0 | GPU1 | mlx5_0 | CPU Affinity |\n"
      "|--------|:----:|:----:|--------|--------------|\n"
      "| GPU0   | X    | NV1  | SOC    | 0-15         |\n"
      "| GPU1   | NV1  | X    | PHB    |              |\n"
      "| mlx5_0 | SOC  | PHB  | X      |              |\n";
  REQUIRE(read_smi_matrix(table, "a.md") == read_smi_matrix(kOld, "topo.txt"));
  // With affinities to the left, as a comment, in the text of a program, or with a label above.
  const std::string left =
      "| CPU Affinity |        | GPU0 | GPU1 | mlx5_0 |\n"
      "|--------------|--------|------|------|--------|\n"
      "| 0-15         | GPU0   | X    | NV1  | SOC    |\n"
      "|              | GPU1   | NV1  | X    | PHB    |\n"
      "|              | mlx5_0 | SOC  | PHB  | X      |\n";
  REQUIRE(read_smi_matrix(left, "a.md") ==
          read_smi_matrix(with_matrix(with_matrix(kOld, "CPU Affinity", ""), "0-15", ""), "a"));
  std::string comment = "// ";
  for (const char letter : kOld) {
    comment += letter == '\n' ? "\n// " : std::string(1, letter);
  }
  REQUIRE(looks_like_smi_matrix(comment));
  REQUIRE(read_smi_matrix(comment, "a.h") == read_smi_matrix(kOld, "a"));
  REQUIRE(read_smi_matrix("topo = ''' " + kOld + "Legend:\n\n  X    = Self\'\'\'\n  rows = topo\n",
                          "a.py") == read_smi_matrix(kOld, "a"));
  REQUIRE(read_smi_matrix(with_matrix(table, "|        |", "| GPU    |"), "a.md") ==
          read_smi_matrix(kOld, "topo.txt"));
  const SmiMatrix shortened =
      read_smi_matrix(with_matrix(kOld, "CPU Affinity", "NUMA"), "topo.txt");
  REQUIRE(shortened.devices[0].numa_affinity == "0-15");
  const SmiMatrix added =
      read_smi_matrix(with_matrix(with_matrix(kOld, "CPU Affinity", ""), "0-15", "NUMA 1"), "a");
  REQUIRE(added.devices[0].numa_affinity == "1");
}

TEST_CASE("a matrix is told from other formats") {
  REQUIRE(looks_like_smi_matrix(kCapture));
  REQUIRE(looks_like_smi_matrix(kOld));
  REQUIRE(!looks_like_smi_matrix("<system version=\"1\"/>"));
  REQUIRE(!looks_like_smi_matrix("name: GPU0\n"));
  REQUIRE(!looks_like_smi_matrix(""));
}

TEST_CASE("mistakes in a matrix are one line with their place") {
  REQUIRE(error_of_matrix("") ==
          "topo.txt:1:1: expected the matrix of nvidia-smi topo -m, found nothing");
  REQUIRE(error_of_matrix("hello\n") ==
          "topo.txt:1:1: header: expected the columns GPU0, GPU1, ... of nvidia-smi topo -m, found "
          "\"hello\"");
  REQUIRE(error_of_matrix(with_matrix(kOld, "GPU0    GPU1", "GPU0    GPU0")) ==
          "topo.txt:1:17: header: \"GPU0\" is there twice");
  REQUIRE(error_of_matrix(with_matrix(kOld, "CPU Affinity", "CPU Affection")) ==
          "topo.txt:1:33: header: expected the column CPU Affinity, NUMA Affinity, GPU NUMA ID or "
          "the end, found \"CPU\"");
  REQUIRE(error_of_matrix(with_matrix(kOld, "SOC     0-15", "FAR     0-15")) ==
          "topo.txt:2:25: GPU0.mlx5_0: expected NV#, PIX, PXB, PHB, NODE or SYS, found \"FAR\"");
  REQUIRE(error_of_matrix(with_matrix(kOld, " X      NV1 ", "NV1     NV1 ")) ==
          "topo.txt:2:9: GPU0.GPU0: expected X, found \"NV1\"");
  REQUIRE(error_of_matrix(with_matrix(kOld, "NV1      X      PHB", "NV2      X      PHB")) ==
          "topo.txt:3:9: GPU1.GPU0: expected NV1 as in the other direction, found NV2");
  REQUIRE(error_of_matrix(with_matrix(kOld, "NV1      X      PHB", "NV1      X")) ==
          "topo.txt:3:18: GPU1: expected 3 cells, found 2");
  REQUIRE(error_of_matrix(with_matrix(kOld, "0-15", "0-15 16")) ==
          "topo.txt:2:38: GPU0: expected the end of the row, found \"16\"");
  REQUIRE(error_of_matrix(with_matrix(kOld, "\nGPU1", "\nGPU2")) ==
          "topo.txt:3:1: expected the row \"GPU1\", as the columns say, found \"GPU2\"");
  REQUIRE(error_of_matrix(kOld.substr(0, kOld.find("mlx5_0  SOC"))) ==
          "topo.txt:3:1: expected the row \"mlx5_0\", found the end");
  REQUIRE(error_of_matrix(kOld + "mlx5_1  SOC     PHB      X  X\n") ==
          "topo.txt:5:1: expected a legend or the end, found \"mlx5_1\"");
  REQUIRE(error_of_matrix(with_matrix(kCapture, "  SYS  =", "  SYZ  =")) ==
          "topo.txt:12:3: legend: expected X, NV#, PIX, PXB, PHB, NODE or SYS and \"=\", found "
          "\"SYZ\"");
  REQUIRE(error_of_matrix(with_matrix(kCapture, "NIC1: ", "NIC0: ")) ==
          "topo.txt:18:3: NIC legend: expected a NIC of the matrix, once, and its name, found "
          "\"NIC0:\"");
  REQUIRE(error_of_matrix(with_matrix(kOld, "PHB",
                                      "P\x01"
                                      "B"))
              .find("topo.txt:3:26: expected printable ASCII, found \"\\x01\"") == 0);
}

TEST_CASE("a damaged matrix is read or refused in one line") {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937_64 engine(seed);
    const std::string text = damaged(kCapture, "\t\n X0NVPIBHSY:=\x1b[m", engine);
    INFO("seed=" << seed << '\n' << text);
    const std::string error = error_of_matrix(text);
    REQUIRE(error.find('\n') == std::string::npos);
    REQUIRE((error == "no error" || error.rfind("topo.txt:", 0) == 0));
    refused += error != "no error" ? 1 : 0;
  }
  REQUIRE(refused > 100);
}

TEST_CASE("a matrix cut off anywhere is read or refused in one line") {
  for (std::size_t length = 0; length < kCapture.size(); ++length) {
    INFO("length " << length);
    REQUIRE(error_of_matrix(kCapture.substr(0, length)).find('\n') == std::string::npos);
  }
}

}  // namespace trainyard
