// SPDX-License-Identifier: Apache-2.0
#include "cli/common/program_end.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "sim/config_error.h"
#include "sim/crash_advice.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr int kInputIsWrong = 2;
constexpr int kMistakeOfOurs = 3;

// A sanitizer says more of a signal than we can.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasSanitizer = true;
#elif defined(__has_feature)
constexpr bool kHasSanitizer = __has_feature(address_sanitizer);
#else
constexpr bool kHasSanitizer = false;
#endif

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

constexpr std::string_view kNoMemory =
    "trainyard: memory: expected enough for this run, found no more; take fewer GPUs, less detail "
    "or "
    "fewer threads, or a machine with more\n";

// Does not allocate: memory may be what is broken. Where standard error cannot be written, nothing
// is left to do.
void write_error(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

// Ends with the signal's own status.
[[maybe_unused]] void end_by_signal(int signal) {
  write_error(crash_advice());
  static_cast<void>(std::signal(signal, SIG_DFL));
  static_cast<void>(std::raise(signal));
}

// An exception that leaves a thread comes here; only a lack of memory is no mistake of ours.
[[noreturn]] void end_by_terminate() {
  const std::exception_ptr thrown = std::current_exception();
  try {
    if (thrown) {
      std::rethrow_exception(thrown);
    }
    write_error(crash_advice());
  } catch (const std::bad_alloc&) {
    write_error(kNoMemory);
    std::_Exit(kInputIsWrong);
  } catch (const std::exception& error) {
    write_error(crash_advice());
    print_error(error.what());
  }
  std::abort();
}

}  // namespace

void keep_standard_streams() {
  // The lowest number that is free is the one that open() takes.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1) {
      // Writing to what is open for reading fails.
      static_cast<void>(::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
}

void explain_crashes() {
  std::set_terminate(end_by_terminate);
  if constexpr (!kHasSanitizer) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
      static_cast<void>(std::signal(signal, end_by_signal));
    }
  }
}

std::string one_line(std::string_view text) {
  constexpr std::size_t kMost = 399;
  constexpr std::string_view kGap = " ... ";
  constexpr std::size_t kEnd = 150;  // Names, what was found and a suggestion fit.
  std::string line = escaped(text);
  if (line.size() <= kMost) {
    return line;
  }
  std::size_t begin = kMost - kGap.size() - kEnd;
  std::size_t end = line.size() - kEnd;
  while (begin > 0 && continues_character(line[begin])) {
    --begin;
  }
  while (end < line.size() && continues_character(line[end])) {
    ++end;
  }
  return line.substr(0, begin).append(kGap).append(line, end);
}

void print_error(std::string_view text) {
  const std::string line = one_line(fmt::format("trainyard: {}", text)) + "\n";
  static_cast<void>(std::fputs(line.c_str(), stderr));
}

std::optional<std::string> user_mistake(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const std::filesystem::filesystem_error& error) {
    return fmt::format("{}: expected a path that can be used, found: {}",
                       in_quotes(error.path1().string()), error.code().message());
  } catch (const std::system_error& error) {
    return fmt::format("expected the system to do its part, found: {}", error.what());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

int end_with(std::exception_ptr thrown) {
  try {
    if (const std::optional<std::string> line = user_mistake(thrown)) {
      print_error(*line);
      return kInputIsWrong;
    }
    std::rethrow_exception(std::move(thrown));
  } catch (const std::bad_alloc&) {
    write_error(kNoMemory);
    return kInputIsWrong;
  } catch (const std::exception& error) {
    write_error(crash_advice());
    print_error(fmt::format("internal error: {}", error.what()));
    return kMistakeOfOurs;
  }
}

}  // namespace trainyard
