// SPDX-License-Identifier: Apache-2.0
// Atomic file writing with POSIX calls: the standard library can neither flush to the disk nor
// create a file exclusively.
#include "report/formats/output.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "sim/config_error.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// Names tried for the temporary file before giving up.
constexpr int kNameAttempts = 100;

[[noreturn]] void fail(const fs::path& file, std::string_view reason) {
  throw ConfigError(fmt::format("{}: cannot be written: {}", file.string(), reason));
}

[[noreturn]] void fail_with_errno(const fs::path& file, int error) {
  fail(file, std::generic_category().message(error));
}

// An open file that is removed again unless kept.
class NewFile {
 public:
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  // A new file beside `target`; `shown` is its name in errors.
  NewFile(const fs::path& target, const fs::path& shown) {
    for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
      path_ = target;
      path_ += fmt::format(".{}.{}.tmp", ::getpid(), attempt);
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ >= 0) {
        return;
      }
      if (errno != EEXIST) {
        break;
      }
    }
    fail_with_errno(shown, errno);
  }
  ~NewFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
    if (!kept_) {
      ::unlink(path_.c_str());
    }
  }

  [[nodiscard]] int descriptor() const { return descriptor_; }
  // Closes the file and renames it to `target`; false, with errno set, if that fails.
  [[nodiscard]] bool keep_as(const fs::path& target) {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    kept_ = ::close(descriptor) == 0 && ::rename(path_.c_str(), target.c_str()) == 0;
    return kept_;
  }

 private:
  fs::path path_;
  int descriptor_ = -1;
  bool kept_ = false;
};

// False, with errno set, if not everything could be written.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void write_directly(const fs::path& file, std::string_view text) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) {
    fail_with_errno(file, errno);
  }
  const bool written = write_all(descriptor, text);
  const int error = errno;
  ::close(descriptor);
  if (!written) {
    fail_with_errno(file, error);
  }
}

// Flushes the folder so that the new name itself survives a power failure. Not every file system
// can; no error.
void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    (void)::fsync(descriptor);
    ::close(descriptor);
  }
}

void replace_file(const fs::path& target, const fs::path& shown, std::string_view text) {
  NewFile file(target, shown);
  struct stat old {};
  if (::stat(target.c_str(), &old) == 0) {
    (void)::fchmod(file.descriptor(), old.st_mode & 07777);  // Keeps who may read the file.
  }
  if (!write_all(file.descriptor(), text) || ::fsync(file.descriptor()) != 0 ||
      !file.keep_as(target)) {
    fail_with_errno(shown, errno);
  }
}

// Through symbolic links.
fs::path target_of(const fs::path& file, const fs::file_status& status, std::error_code& error) {
  return fs::exists(status) ? fs::canonical(file, error) : file;
}

}  // namespace

void write_file(const fs::path& file, const std::string& text) {
  if (file.empty()) {
    throw ConfigError("expected the name of an output file, found nothing");
  }
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (!fs::status_known(status)) {  // A name that is too long, links in a circle.
    fail(file, error.message());
  }
  if (fs::is_directory(status)) {
    fail(file, "it is a directory");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    write_directly(file, text);
    return;
  }
  const fs::path target = target_of(file, status, error);
  if (error && fs::exists(status)) {
    fail(file, error.message());
  }
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::is_directory(fs::status(folder, error))) {
    fail(file, fmt::format("the folder {} does not exist", folder.string()));
  }
  replace_file(target, file, text);
  flush_folder(folder);
}

std::optional<std::string> unwritable_reason(const fs::path& file) {
  constexpr std::size_t kBlock = 4096;
  const auto words = [](int error) { return std::generic_category().message(error); };
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (!fs::status_known(status)) {
    return error.message();
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // Opening a pipe would wait for its reader.
    return ::access(file.c_str(), W_OK) == 0 ? std::nullopt : std::optional(words(errno));
  }
  const fs::path target = target_of(file, status, error);
  try {
    const NewFile probe(target, file);
    if (write_all(probe.descriptor(), std::string(kBlock, '\0'))) {
      return std::nullopt;
    }
    return words(errno);
  } catch (const ConfigError& problem) {
    const std::string text = problem.what();
    return text.substr(text.rfind(": ") + 2);
  }
}

}  // namespace trainyard
