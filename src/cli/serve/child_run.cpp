// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/child_run.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "sim/config_error.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetweenLooks{50};

[[noreturn]] void fail_system(std::string_view what) {
  throw ConfigError(
      fmt::format("a run: expected the system to give {}, found: {}", what, std::strerror(errno)));
}

// A descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }
  void close() {
    if (number_ >= 0) {
      ::close(std::exchange(number_, -1));
    }
  }

 private:
  int number_;
};

struct Pipe {
  Pipe() : Pipe(made()) {}
  Descriptor reader;
  Descriptor writer;

 private:
  explicit Pipe(const std::array<int, 2>& ends) : reader(ends[0]), writer(ends[1]) {}
  static std::array<int, 2> made() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      fail_system("a pipe");
    }
    return ends;
  }
};

// Between fork() and exec() of a program with threads nothing may allocate or lock.
struct ChildStart {
  const char* program;
  char* const* arguments;
  const char* folder;
  int input;
  int output;
  int error;
  rlim_t file_bytes;
  pid_t parent;
};

[[noreturn]] void become_child(const ChildStart& start) {
  const auto limit = [](__rlimit_resource resource, rlim_t most) {
    const rlimit both{.rlim_cur = most, .rlim_max = most};
    return ::setrlimit(resource, &both) == 0;
  };
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) {
    static_cast<void>(::signal(signal, SIG_DFL));
  }
  sigset_t none;
  sigemptyset(&none);
  // A group of its own is what ends with it; the parent may be gone before it is named.
  const bool is_ready =
      ::setpgid(0, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
      ::getppid() == start.parent && ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0 &&
      limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, start.file_bytes) &&
      ::dup2(start.input, STDIN_FILENO) >= 0 && ::dup2(start.output, STDOUT_FILENO) >= 0 &&
      ::dup2(start.error, STDERR_FILENO) >= 0 && ::chdir(start.folder) == 0;
  if (is_ready) {
    // Connections of other requests, where the system can; they are of no use to the run.
    static_cast<void>(::close_range(STDERR_FILENO + 1, ~0U, 0));
    ::execv(start.program, start.arguments);
  }
  ::_exit(127);
}

// The resident memory of a process; nothing once it is gone.
std::optional<Bytes> resident(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  std::int64_t all = 0;
  std::int64_t pages = 0;
  if (!(file >> all >> pages)) {
    return std::nullopt;
  }
  return Bytes(pages * ::sysconf(_SC_PAGESIZE));
}

// Reads what there is. Returns false at the end of the stream.
bool read_some(int descriptor, std::string& text) {
  std::array<char, 65536> buffer;  // NOLINT(*-member-init): read() fills what is used.
  const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
  if (count > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return count > 0 || (count < 0 && errno == EINTR);
}

// Both streams of a child, and when to end it.
class Watcher {
 public:
  Watcher(pid_t process, const ChildLimits& limits, const ChildWatch& watch)
      : process_(process), limits_(limits), watch_(watch) {}

  void read(int output, int error) {
    std::array<pollfd, 2> streams{{{output, POLLIN, 0}, {error, POLLIN, 0}}};
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
      ::poll(streams.data(), streams.size(), static_cast<int>(kBetweenLooks.count()));
      if (streams[0].revents != 0 && !read_some(streams[0].fd, result_.output)) {
        streams[0].fd = -1;  // poll() passes over it.
      }
      if (streams[1].revents != 0 && !read_some(streams[1].fd, lines_)) {
        streams[1].fd = -1;
      }
      hand_on_lines();
      if (result_.stopped.empty() && !(result_.stopped = reason_to_stop()).empty()) {
        ::kill(-process_, SIGKILL);
      }
    }
  }

  ChildResult ended() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    result_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return std::move(result_);
  }

 private:
  void hand_on_lines() {
    for (std::size_t end = lines_.find('\n'); end != std::string::npos; end = lines_.find('\n')) {
      result_.last_line = lines_.substr(0, end);
      lines_.erase(0, end + 1);
      watch_.on_line(result_.last_line);
    }
  }

  std::string reason_to_stop() {
    const Clock::time_point now = Clock::now();
    const bool is_long =
        result_.output.size() + lines_.size() > static_cast<std::size_t>(limits_.output.count());
    if (is_long) {
      return fmt::format("the result has more than {}", to_string(limits_.output));
    }
    if (now - last_look_ < kBetweenLooks) {
      return "";
    }
    last_look_ = now;
    if (!watch_.is_wanted()) {
      return "cancelled";
    }
    if (now - start_ > limits_.time) {
      return fmt::format("the run took more than {} s", limits_.time.count());
    }
    return resident(process_).value_or(Bytes(0)) > limits_.memory
               ? fmt::format("the run took more than {} of memory", to_string(limits_.memory))
               : "";
  }

  pid_t process_;
  const ChildLimits& limits_;
  const ChildWatch& watch_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_look_ = start_;
  std::string lines_;
  ChildResult result_;
};

}  // namespace

ChildResult run_child(const std::string& program, const std::vector<std::string>& arguments,
                      const std::filesystem::path& folder, const ChildLimits& limits,
                      const ChildWatch& watch) {
  std::vector<std::string> words{"trainyard"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  const Descriptor input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Pipe output;
  Pipe error;
  const ChildStart start{
      .program = program.c_str(),
      .arguments = pointers.data(),
      .folder = folder.c_str(),
      .input = input.number(),
      .output = output.writer.number(),
      .error = error.writer.number(),
      .file_bytes = limits.has_files ? static_cast<rlim_t>(limits.output.count()) : 0,
      .parent = ::getpid()};
  const pid_t process = ::fork();
  if (process < 0) {
    fail_system("a process");
  }
  if (process == 0) {
    become_child(start);
  }
  static_cast<void>(::setpgid(process, process));  // Whoever comes first, before any kill().
  output.writer.close();
  error.writer.close();
  Watcher watcher(process, limits, watch);
  watcher.read(output.reader.number(), error.reader.number());
  return watcher.ended();
}

}  // namespace trainyard
