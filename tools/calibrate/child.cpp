// SPDX-License-Identifier: Apache-2.0
#include "calibrate/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>

namespace trainyard::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxError = 4096;
// A measurement writes some hundred KiB.
constexpr std::size_t kMaxOutput = std::size_t{64} << 20;

void require_zero(int error, const char* what) {
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), what);
  }
}

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe2");
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  [[nodiscard]] int reader() const { return ends_[0]; }
  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_end(std::size_t end) {
    if (ends_.at(end) >= 0) {
      (void)::close(ends_.at(end));
      ends_.at(end) = -1;
    }
  }
  // Appends what is there; closes the reader at the end.
  void read_into(std::string& text) {
    std::array<char, 65'536> part{};
    const ssize_t count = ::read(reader(), part.data(), part.size());
    if (count > 0) {
      text.append(part.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      close_end(0);
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

pid_t spawn(const std::string& program, std::vector<std::string> arguments, const Pipe& output,
            const Pipe& error) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  require_zero(::posix_spawn_file_actions_init(&actions), "posix_spawn_file_actions_init");
  require_zero(::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0), "stdin");
  require_zero(::posix_spawn_file_actions_adddup2(&actions, output.writer(), 1), "stdout");
  require_zero(::posix_spawn_file_actions_adddup2(&actions, error.writer(), 2), "stderr");
  posix_spawnattr_t attributes;
  require_zero(::posix_spawnattr_init(&attributes), "posix_spawnattr_init");
  require_zero(::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP), "setflags");
  pid_t process = 0;
  const int failure =
      ::posix_spawn(&process, program.c_str(), &actions, &attributes, pointers.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  require_zero(failure, "posix_spawn");
  return process;
}

// Whether it has ended by itself; then what it left behind is killed, since it holds the pipes.
bool has_ended(pid_t process, int& status) {
  if (::waitpid(process, &status, WNOHANG) != process) {
    return false;
  }
  (void)::kill(-process, SIGKILL);
  return true;
}

// Takes what is there, for at most so long.
void read_some(Pipe& output, Pipe& error, int milliseconds, ChildEnd& end) {
  std::array<pollfd, 2> waits{pollfd{output.reader(), POLLIN, 0},
                              pollfd{error.reader(), POLLIN, 0}};
  // poll() passes over descriptors below 0.
  (void)::poll(waits.data(), waits.size(), milliseconds);
  if (waits[0].revents != 0) {
    output.read_into(end.output);
  }
  if (waits[1].revents != 0) {
    error.read_into(end.error);
    if (end.error.size() > kMaxError) {
      end.error.erase(0, end.error.size() - kMaxError);
    }
  }
}

// Until it has ended and both pipes are closed, or the time is over. Returns whether it has ended.
bool collect(pid_t process, Pipe& output, Pipe& error, Clock::time_point deadline, ChildEnd& end,
             int& status) {
  bool ended = false;
  while (!ended || output.reader() >= 0 || error.reader() >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || end.output.size() > kMaxOutput) {
      break;
    }
    // Without a pipe to wake it up it looks more often.
    const int slice = output.reader() >= 0 ? 50 : 2;
    read_some(output, error, static_cast<int>(std::min<std::int64_t>(left, slice)), end);
    ended = ended || has_ended(process, status);
  }
  return ended;
}

}  // namespace

ChildEnd run_child(const std::string& program, const std::vector<std::string>& arguments,
                   std::chrono::milliseconds patience) {
  const Clock::time_point start = Clock::now();
  const Clock::time_point deadline = start + patience;
  Pipe output;
  Pipe error;
  const pid_t process = spawn(program, arguments, output, error);
  output.close_end(1);
  error.close_end(1);
  ChildEnd end;
  int status = 0;
  end.timed_out = !collect(process, output, error, deadline, end, status);
  if (end.timed_out) {
    (void)::kill(-process, SIGKILL);
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
  }
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return end;
}

void end_with_parent() {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before that call; then another program is the parent.
  std::error_code error;
  const auto parent =
      std::filesystem::read_symlink("/proc/" + std::to_string(::getppid()) + "/exe", error);
  if (error || parent.string() != own_program()) {
    ::_exit(1);
  }
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace trainyard::calibrate
