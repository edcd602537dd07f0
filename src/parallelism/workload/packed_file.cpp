// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/packed_file.h"

#include <spdlog/fmt/fmt.h>
#include <zlib.h>
#include <zstd.h>

#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>

#include "sim/config_error.h"
#include "sim/text_file.h"

namespace trainyard {
namespace {

// RFC 1952 and RFC 8878: how files of each begin.
constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";
constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

[[noreturn]] void fail_packed(const std::filesystem::path& path, std::string_view expected,
                              std::string_view found) {
  throw ConfigError(fmt::format("{}: expected {}, found {}", path.string(), expected, found));
}

// Adds what is unpacked to a text, as long as it is not too much.
class UnpackedText {
 public:
  UnpackedText(const std::filesystem::path& path, std::uintmax_t max_bytes)
      : path_(path), max_bytes_(max_bytes) {}

  void add(const std::string& piece, std::size_t size) {
    if (text_.size() + size > max_bytes_) {
      fail_packed(path_, fmt::format("at most {} GiB when it is unpacked", max_bytes_ >> 30U),
                  "more");
    }
    text_.append(piece, 0, size);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  const std::filesystem::path& path_;
  std::uintmax_t max_bytes_;
  std::string text_;
};

std::string text_of_gzip(const std::filesystem::path& path, std::uintmax_t max_bytes) {
  UnpackedText text(path, max_bytes);
  const auto close = [](gzFile_s* open) { gzclose(open); };
  std::unique_ptr<gzFile_s, decltype(close)> file(gzopen(path.c_str(), "rb"), close);
  std::string piece(kPieceBytes, '\0');
  int count = -1;
  while (file &&
         (count = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()))) > 0) {
    text.add(piece, static_cast<std::size_t>(count));
  }
  // A file that ends too early is said only when it is closed.
  const int status = file ? gzclose(file.release()) : Z_ERRNO;
  if (count < 0 || status != Z_OK) {
    fail_packed(path, "a whole file packed by gzip", "a damaged one, or one that is cut off");
  }
  return text.take();
}

std::string text_of_zstd(const std::filesystem::path& path, std::string_view packed,
                         std::uintmax_t max_bytes) {
  UnpackedText text(path, max_bytes);
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  std::string piece(kPieceBytes, '\0');
  ZSTD_inBuffer in{.src = packed.data(), .size = packed.size(), .pos = 0};
  std::size_t expected = 1;  // Zero after the end of a frame.
  bool may_have_more = true;
  while (in.pos < in.size || may_have_more) {
    ZSTD_outBuffer out{.dst = piece.data(), .size = piece.size(), .pos = 0};
    expected = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(expected) != 0) {
      fail_packed(path, "a file packed by zstd", ZSTD_getErrorName(expected));
    }
    text.add(piece, out.pos);
    may_have_more = expected != 0 && out.pos == out.size;
  }
  if (expected != 0) {
    fail_packed(path, "a whole file packed by zstd", "one that is cut off");
  }
  return text.take();
}

}  // namespace

std::filesystem::path unpacked_name(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".gz" || extension == ".zst" ? path.parent_path() / path.stem() : path;
}

std::uintmax_t readable_size(const std::filesystem::path& path, std::uintmax_t max_bytes) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    fail_packed(path, "a file",
                std::filesystem::exists(path, error) ? "something else" : "nothing");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > max_bytes) {
    fail_packed(path, fmt::format("a file of at most {} GiB", max_bytes >> 30U),
                error ? error.message() : "more");
  }
  return size;
}

bool is_packed(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string start(kZstd.size(), '\0');
  stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start.starts_with(kGzip) || start.starts_with(kZstd);
}

std::string read_packed_file(const std::filesystem::path& path, std::uintmax_t max_bytes) {
  static_cast<void>(readable_size(path, max_bytes));
  std::string text = read_whole_file(path, path.string(), max_bytes);
  if (text.starts_with(kGzip)) {
    return text_of_gzip(path, max_bytes);
  }
  if (text.starts_with(kZstd)) {
    return text_of_zstd(path, text, max_bytes);
  }
  return text;
}

}  // namespace trainyard
