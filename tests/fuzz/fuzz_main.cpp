// SPDX-License-Identifier: Apache-2.0
// The program that tools/ci/fuzz.sh runs: libFuzzer over one reader.
//
//   trainyard_fuzz --list                                names, runs and seeds of all readers
//   trainyard_fuzz --reader=NAME [libFuzzer's] FOLDER    one reader, from a folder of seeds
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "fuzz/readers.h"
#include "sim/config_error.h"
#include "support/paths.h"

namespace {

// The reader that the command line names.
const trainyard::FuzzedReader*& chosen() {
  static const trainyard::FuzzedReader* reader = nullptr;
  return reader;
}

void list_readers() {
  for (const trainyard::FuzzedReader& reader : trainyard::fuzzed_readers()) {
    std::cout << reader.name << ' ' << reader.runs;
    for (const std::filesystem::path& seed : seeds_of(reader, trainyard::source_dir())) {
      std::cout << ' ' << seed.string();
    }
    std::cout << '\n';
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view kReader = "--reader=";
  for (int index = 1; index < *count; ++index) {
    const std::string_view argument = (*arguments)[index];
    if (argument == "--list") {
      list_readers();
      std::exit(0);
    }
    for (const trainyard::FuzzedReader& reader : trainyard::fuzzed_readers()) {
      if (argument.starts_with(kReader) && argument.substr(kReader.size()) == reader.name) {
        chosen() = &reader;
      }
    }
  }
  if (chosen() == nullptr) {
    std::cerr << "expected --reader=NAME with one of --list\n";
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    chosen()->read(std::string(bytes, bytes + size));
  } catch (const trainyard::ConfigError&) {
    // The answer that wrong input must get.
  }
  return 0;
}
