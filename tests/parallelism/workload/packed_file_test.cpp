// SPDX-License-Identifier: Apache-2.0
// Files are packed here by the libraries that define the formats.
#include "support/catch.h"

#include "parallelism/workload/packed_file.h"

#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <string>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

constexpr std::uintmax_t kMax = std::uintmax_t{1} << 30U;

std::string gzip(const ScratchFolder& folder, const std::string& text) {
  const std::filesystem::path path = folder.path() / "packing";
  gzFile_s* file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return read_text_file(path);
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

// More than one piece that is unpacked at once, and not all the same.
std::string long_text() {
  std::string text;
  for (std::uint64_t line = 0; text.size() < std::size_t{3} << 20U; ++line) {
    text += std::to_string(line * 7919) + "\n";
  }
  return text;
}

std::string packed_error(const std::filesystem::path& path, std::uintmax_t max = kMax) {
  try {
    (void)read_packed_file(path, max);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("packed files are unpacked, whatever their names are", "[imported]") {
  const ScratchFolder folder;
  const std::string text = long_text();
  const auto read = [&](const std::string& bytes) {
    return read_packed_file(folder.write("trace.json", bytes), kMax);
  };
  REQUIRE(read(text) == text);
  REQUIRE(read("").empty());
  REQUIRE(read(gzip(folder, text)) == text);
  REQUIRE(read(zstd(text)) == text);
  REQUIRE(read(gzip(folder, "")).empty());
  REQUIRE(read(zstd("")).empty());
  // Packed files may be put one after the other.
  REQUIRE(read(gzip(folder, text) + gzip(folder, "more")) == text + "more");
  REQUIRE(read(zstd(text) + zstd("more")) == text + "more");
}

TEST_CASE("packed files that are cut off, damaged or too long are refused", "[imported]") {
  const ScratchFolder folder;
  const std::string text = long_text();
  const std::string name = (folder.path() / "a").string();
  const std::string by_zstd = zstd(text);
  const std::string by_gzip = gzip(folder, text);
  for (const std::size_t size : {by_gzip.size() - 1, by_gzip.size() / 2, std::size_t{11}}) {
    REQUIRE(packed_error(folder.write("a", by_gzip.substr(0, size))) ==
            name +
                ": expected a whole file packed by gzip, found a damaged one, or one that is cut "
                "off");
  }
  for (const std::size_t size : {by_zstd.size() - 1, by_zstd.size() / 2, std::size_t{11}}) {
    REQUIRE(packed_error(folder.write("a", by_zstd.substr(0, size))) ==
            name + ": expected a whole file packed by zstd, found one that is cut off");
  }
  REQUIRE(packed_error(folder.write("a", by_zstd + "more")) ==
          name + ": expected a file packed by zstd, found Unknown frame descriptor");
  REQUIRE(packed_error(folder.write("a", by_zstd), text.size() - 1) ==
          name + ": expected at most 0 GiB when it is unpacked, found more");
  REQUIRE(packed_error(folder.write("a", by_gzip), text.size() - 1) ==
          name + ": expected at most 0 GiB when it is unpacked, found more");
  REQUIRE(packed_error(folder.path()) ==
          folder.path().string() + ": expected a file, found something else");
}

TEST_CASE("files are known as packed by how they begin", "[imported]") {
  const ScratchFolder folder;
  REQUIRE(is_packed(folder.write("a", "\x1f\x8b and more")));
  REQUIRE(is_packed(folder.write("b", "\x28\xb5\x2f\xfd")));
  const std::filesystem::path plain = folder.write("c", "four");
  REQUIRE(!is_packed(plain));
  REQUIRE(!is_packed(folder.path() / "gone"));
  REQUIRE(readable_size(plain, 4) == 4);
}

TEST_CASE("names of packed files end with how they are packed", "[imported]") {
  REQUIRE(unpacked_name("a/b.json.gz") == "a/b.json");
  REQUIRE(unpacked_name("b.et.zst") == "b.et");
  REQUIRE(unpacked_name("a/b.json") == "a/b.json");
}

}  // namespace trainyard
