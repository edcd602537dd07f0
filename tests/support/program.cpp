// SPDX-License-Identifier: Apache-2.0
#include "support/program.h"
#include "support/paths.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace trainyard {
namespace {

void require_zero(int error, const char* what) {
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), what);
  }
}

// Runs arguments[0] with its output in files of `scratch`.
int spawn_and_wait(std::vector<std::string> arguments, const std::filesystem::path& folder,
                   const std::filesystem::path& scratch) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  require_zero(::posix_spawn_file_actions_init(&actions), "posix_spawn_file_actions_init");
  constexpr int kCreate = O_WRONLY | O_CREAT | O_TRUNC;
  const std::string output = scratch / "output";
  const std::string error = scratch / "error";
  require_zero(::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0), "stdin");
  require_zero(::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), kCreate, 0600),
               "stdout");
  require_zero(::posix_spawn_file_actions_addopen(&actions, 2, error.c_str(), kCreate, 0600),
               "stderr");
  require_zero(::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str()), "chdir");
  pid_t process = 0;
  const int failure =
      ::posix_spawn(&process, pointers[0], &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  require_zero(failure, "posix_spawn");
  int status = 0;
  if (::waitpid(process, &status, 0) != process) {
    require_zero(errno, "waitpid");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ProgramResult run(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  const ScratchFolder scratch;
  ProgramResult result;
  result.status = spawn_and_wait(arguments, folder, scratch.path());
  result.output = read_text_file(scratch.path() / "output");
  result.error = read_text_file(scratch.path() / "error");
  return result;
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string name = std::filesystem::temp_directory_path() / "trainyard-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp");
  }
  path_ = std::filesystem::canonical(name);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path ScratchFolder::write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = path_ / name;
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::filesystem::path& folder) {
  std::vector<std::string> all{program_path()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run(all, folder);
}

ProgramResult run_shell(const std::string& command, const std::filesystem::path& folder) {
  // After `set -e` a failing command ends the shell with its status.
  // Scripts that it calls find the programs by their path, what it says itself the one under test.
  const std::string programs = std::filesystem::path(program_path()).parent_path();
  return run({"/bin/sh", "-ec",
              "PATH='" + programs + "':\"$PATH\"\ntrainyard() { '" + program_path() +
                  "' \"$@\"; }\n" + command},
             folder);
}

std::string read_text_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw std::runtime_error(file.string() + ": cannot be read");
  }
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace trainyard
