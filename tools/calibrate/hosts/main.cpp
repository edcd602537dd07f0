// SPDX-License-Identifier: Apache-2.0
// trainyard-calibrate-hosts: measures what hosts themselves cost collectives, with nothing but Open
// MPI, and writes one file for `trainyard calibrate` (docs/accuracy/hosts.md).
//
// Called by a person it starts itself below mpirun, once for each part, and reads the rows that
// those print; `--part` is what it gives to these.
#include <mpi.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/hosts/tests.h"

namespace trainyard::hosts {
namespace {

constexpr const char* kUsage =
    "usage: trainyard-calibrate-hosts -o FILE [--ranks N] [--passes N] [--note TEXT] [--quick]\n"
    "\n"
    "Measures copies, sums, messages of MPI through shared memory and TCP, sockets, and\n"
    "collectives on this host, for trainyard calibrate FILE --mpi-profile-out PROFILE.\n"
    "  -o FILE      where the measurements go, whole or not at all\n"
    "  --ranks N    collectives of 2, 4, ... up to N ranks (default: 2)\n"
    "  --passes N   all of it so often, and the least counts (default: 1)\n"
    "  --note TEXT  what else is to be known of the machine\n"
    "  --quick      few sizes and repeats, to try it out\n";

struct Options {
  std::string output;
  std::string note;
  int ranks = 2;
  int passes = 1;
  bool quick = false;
  std::string part;  // Given by ourselves, below mpirun.
  std::string path;
};

int count_of(const std::string& option, const std::string& value, int least) {
  int count = 0;
  const char* const last = value.data() + value.size();
  const auto read = std::from_chars(value.data(), last, count);
  if (read.ec != std::errc() || read.ptr != last || count < least) {
    throw std::invalid_argument(option + ": expected " + std::to_string(least) +
                                " or more, found " + value);
  }
  return count;
}

Options read_options(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--quick") {
      options.quick = true;
      continue;
    }
    if (i + 1 == words.size()) {
      throw std::invalid_argument("expected a known option with its value, found " + words[i]);
    }
    const std::string& value = words[i + 1];
    if (words[i] == "-o") {
      options.output = value;
    } else if (words[i] == "--note") {
      options.note = value;
    } else if (words[i] == "--part") {
      options.part = value;
    } else if (words[i] == "--path") {
      options.path = value;
    } else if (words[i] == "--passes") {
      options.passes = count_of(words[i], value, 1);
    } else if (words[i] == "--ranks") {
      options.ranks = count_of(words[i], value, 2);
    } else {
      throw std::invalid_argument("expected one of -o, --ranks, --passes, --note, --quick, found " +
                                  words[i]);
    }
    ++i;
  }
  if (options.output.empty() && options.part.empty()) {
    throw std::invalid_argument("expected -o FILE, found none");
  }
  return options;
}

void print(const Row& row) {
  std::printf(
      "  - {test: %s, path: %s, ranks: %d, bytes: %zu, least_us: %.4f, median_us: %.4f, "
      "repeats: %d",
      row.test.c_str(), row.path.c_str(), row.ranks, row.bytes, row.least_us, row.median_us,
      row.repeats);
  if (row.cpu_us > 0.0) {
    std::printf(", cpu_us: %.4f", row.cpu_us);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

int run_part(const Options& options) {
  MPI_Init(nullptr, nullptr);
  if (options.part == "memory") {
    measure_memory(options.quick, print);
  } else if (options.part == "messages") {
    measure_messages(options.path, options.quick, print);
  } else if (options.part == "sockets") {
    measure_sockets(options.quick, print);
  } else {
    measure_collectives(options.path, options.quick, print);
  }
  MPI_Finalize();
  return 0;
}

// A word of the shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char letter : text) {
    word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return word + "'";
}

std::string own_program() {
  std::array<char, 4096> name{};
  const ssize_t length = readlink("/proc/self/exe", name.data(), name.size() - 1);
  if (length <= 0) {
    throw std::runtime_error("expected /proc/self/exe, found none");
  }
  return {name.data(), static_cast<std::size_t>(length)};
}

// The rows that ranks print, and nothing else of what they do.
std::string rows_of(const Options& options, const std::string& part, const std::string& path,
                    int ranks) {
  std::string command = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n " +
                        std::to_string(ranks) + " --oversubscribe --mca pml ob1 --mca btl self," +
                        (path == "tcp" ? "tcp --mca btl_tcp_if_include lo " : "vader ") +
                        "--mca coll tuned,basic,libnbc,inter,self,sync " + quoted(own_program()) +
                        " --part " + part + " --path " + path + (options.quick ? " --quick" : "");
  std::fprintf(stderr, "%s over %s, %d ranks\n", part.c_str(), path.c_str(), ranks);
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("expected a shell that starts mpirun, found none");
  }
  std::string text;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    if (std::string(line.data()).starts_with("  - {")) {
      text += line.data();
    }
  }
  if (pclose(pipe) != 0 || text.empty()) {
    throw std::runtime_error("expected mpirun to run " + part + " over " + path +
                             ", found that it failed");
  }
  return text;
}

std::string cpu_of_machine() {
  std::ifstream stream("/proc/cpuinfo");
  std::string name = "unknown";
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      name = line.substr(colon + 2);
    }
  }
  return name;
}

// A scalar of YAML in double quotes.
std::string scalar(const std::string& text) {
  std::string made = "\"";
  for (const char letter : text) {
    const bool is_plain = letter >= ' ' && letter != '"' && letter != '\\';
    made += is_plain ? letter : ' ';
  }
  return made + "\"";
}

std::string head(const Options& options) {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  std::string mpi(version.data(), static_cast<std::size_t>(length));
  mpi.resize(std::min(mpi.size(), mpi.find(',')));
  utsname system{};
  uname(&system);
  std::array<char, 16> date{};
  const std::time_t now = std::time(nullptr);
  std::strftime(date.data(), date.size(), "%Y-%m-%d", std::gmtime(&now));
  return "format: trainyard-hosts-1\n"
         "source: {program: trainyard-calibrate-hosts, date: " +
         std::string(date.data()) + ", note: " + scalar(options.note) + "}\n" +
         "system:\n  cpu: " + scalar(cpu_of_machine()) +
         "\n  cores: " + std::to_string(std::thread::hardware_concurrency()) +
         "\n  kernel: " + scalar(std::string(system.sysname) + " " + system.release) +
         "\n  mpi: " + scalar(mpi) + "\nrows:\n";
}

int measure(const Options& options) {
  std::string text = head(options);
  for (int pass = 0; pass < options.passes; ++pass) {
    text += rows_of(options, "memory", "memory", 2);
    text += rows_of(options, "messages", "shared", 2);
    text += rows_of(options, "messages", "tcp", 2);
    text += rows_of(options, "sockets", "tcp", 2);
    for (int ranks = 2; ranks <= options.ranks; ranks *= 2) {
      text += rows_of(options, "collectives", "shared", ranks);
    }
  }
  const std::string draft = options.output + ".part";
  std::ofstream stream(draft);
  stream << text;
  stream.close();
  if (!stream || std::rename(draft.c_str(), options.output.c_str()) != 0) {
    throw std::runtime_error("-o: expected a file that can be written, found " + options.output);
  }
  return 0;
}

}  // namespace
}  // namespace trainyard::hosts

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "--help") {
    std::cout << trainyard::hosts::kUsage;
    return 0;
  }
  try {
    const trainyard::hosts::Options options = trainyard::hosts::read_options(words);
    return options.part.empty() ? trainyard::hosts::measure(options)
                                : trainyard::hosts::run_part(options);
  } catch (const std::exception& error) {
    std::cerr << "trainyard-calibrate-hosts: " << error.what() << '\n';
    return 2;
  }
}
