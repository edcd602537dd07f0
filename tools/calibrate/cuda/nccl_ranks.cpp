// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cuda/nccl_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "calibrate/child.h"
#include "calibrate/text.h"

namespace trainyard::calibrate {
namespace {

// Runs the program with its output and errors in these files ("" for ours); it ends when we do.
pid_t start(std::vector<std::string> command, const std::string& output, const std::string& error) {
  std::vector<char*> pointers;
  for (std::string& part : command) {
    pointers.push_back(part.data());
  }
  pointers.push_back(nullptr);
  const pid_t process = ::fork();
  if (process < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (process > 0) {
    return process;
  }
  // Only calls that are safe after a fork of a program with threads.
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr int kCreate = O_WRONLY | O_CREAT | O_TRUNC;
  if (!output.empty()) {
    (void)::dup2(::open(output.c_str(), kCreate, 0600), 1);
  }
  if (!error.empty()) {
    (void)::dup2(::open(error.c_str(), kCreate, 0600), 2);
  }
  (void)::execvp(pointers[0], pointers.data());
  ::_exit(127);
}

std::string last_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) {
      last = line;
    }
  }
  return one_line(last);
}

std::string end_text(int status) {
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                             : fmt::format("status {}", WEXITSTATUS(status));
}

// Waits so long, then kills.
void end_within(pid_t process, int milliseconds) {
  for (int i = 0; i < milliseconds; i += 10) {
    if (::waitpid(process, nullptr, WNOHANG) != 0) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  (void)::kill(process, SIGKILL);
  (void)::waitpid(process, nullptr, 0);
}

void kill_all(const std::vector<pid_t>& processes) {
  for (const pid_t process : processes) {
    if (process > 0) {
      (void)::kill(process, SIGKILL);
      (void)::waitpid(process, nullptr, 0);
    }
  }
}

}  // namespace

MeetingFolder::MeetingFolder() {
  std::string name = std::filesystem::temp_directory_path() / "trainyard-calibrate-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp");
  }
  path_ = name;
}

MeetingFolder::~MeetingFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

MultiProcessService::MultiProcessService(const std::filesystem::path& folder) {
  const char* const pipes = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  std::error_code ignored;
  if (std::filesystem::exists(
          std::filesystem::path(pipes != nullptr ? pipes : "/tmp/nvidia-mps") / "control",
          ignored)) {
    runs_ = true;
    return;
  }
  std::filesystem::create_directory(folder / "pipes");
  std::filesystem::create_directory(folder / "logs");
  (void)::setenv("CUDA_MPS_PIPE_DIRECTORY", (folder / "pipes").c_str(), 1);
  (void)::setenv("CUDA_MPS_LOG_DIRECTORY", (folder / "logs").c_str(), 1);
  // In the foreground, so that it can be ended and ends with us.
  process_ = start({"nvidia-cuda-mps-control", "-f"}, "/dev/null", "/dev/null");
  for (int i = 0; i < 300 && !runs_; ++i) {
    if (::waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = 0;
      break;
    }
    runs_ = std::filesystem::exists(folder / "pipes" / "control", ignored);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (!runs_) {
    stop();
  }
}

MultiProcessService::~MultiProcessService() {
  stop();
}

void MultiProcessService::stop() {
  if (process_ > 0) {
    // Asked, it ends its server, too.
    const pid_t asking =
        start({"/bin/sh", "-c", "echo quit | nvidia-cuda-mps-control"}, "/dev/null", "/dev/null");
    end_within(asking, 2000);
    end_within(process_, 2000);
    process_ = 0;
  }
  if (!runs_) {
    (void)::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    (void)::unsetenv("CUDA_MPS_LOG_DIRECTORY");
  }
  runs_ = false;
}

void run_ranks(const Options& options, const std::string& id, int ranks,
               const std::filesystem::path& folder) {
  std::vector<pid_t> processes;
  const auto error_file = [&folder](std::size_t rank) {
    return (folder / fmt::format("error.{}", rank)).string();
  };
  for (int rank = 0; rank < ranks; ++rank) {
    Options own = options;
    own.rank = rank;
    own.ranks = ranks;
    own.rendezvous = folder.string();
    std::vector<std::string> command = child_arguments(own, id, "0");
    command.insert(command.begin(), own_program());
    processes.push_back(
        start(command, rank == 0 ? "" : "/dev/null", error_file(static_cast<std::size_t>(rank))));
  }
  std::size_t left = processes.size();
  while (left > 0) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "waitpid");
    }
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      if (processes[rank] != ended) {
        continue;
      }
      processes[rank] = 0;
      --left;
      if (status != 0) {
        kill_all(processes);
        throw std::runtime_error(
            fmt::format("rank {}: {}: {}", rank, end_text(status), last_line(error_file(rank))));
      }
    }
  }
}

}  // namespace trainyard::calibrate
