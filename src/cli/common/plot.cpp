// SPDX-License-Identifier: Apache-2.0
#include "cli/common/plot.h"

#include <fcntl.h>
#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/common/common.h"
#include "cli/common/options.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

struct Closer {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, Closer>;

TemporaryFile temporary_file() {
  TemporaryFile file(std::tmpfile());
  if (!file) {
    throw ConfigError(fmt::format("--plot: no temporary file: {}", std::strerror(errno)));
  }
  return file;
}

// In the source tree, or where it is installed beside the configs.
std::filesystem::path plot_program() {
  std::filesystem::path program = configs_folder().parent_path() / "tools" / "plot";
  if (!std::filesystem::exists(program)) {
    throw ConfigError(fmt::format("--plot: expected {}, found no such file", program.string()));
  }
  return program;
}

std::string last_line(std::FILE* file) {
  std::rewind(file);
  std::array<char, 4096> part{};
  std::string line;
  while (std::fgets(part.data(), static_cast<int>(part.size()), file) != nullptr) {
    const std::string_view text(part.data());
    const std::size_t end = text.find_last_not_of("\r\n");
    line = end == std::string_view::npos ? line : text.substr(0, end + 1);
  }
  return escaped(line);
}

// Runs tools/plot with this argument and `input` as its standard input.
void run_plot(const std::string& argument, const std::string& input) {
  const TemporaryFile in = temporary_file();
  const TemporaryFile errors = temporary_file();
  if (std::fwrite(input.data(), 1, input.size(), in.get()) != input.size()) {
    throw ConfigError(fmt::format("--plot: cannot be written: {}", std::strerror(errno)));
  }
  std::rewind(in.get());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(errors.get()), STDERR_FILENO);
  std::string program = plot_program().string();
  std::string text = argument;
  const std::array<char*, 3> arguments{program.data(), text.data(), nullptr};
  pid_t child = 0;
  const int error =
      posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || ::waitpid(child, &status, 0) < 0) {
    throw ConfigError(fmt::format("--plot: {} cannot be run: {}", program, std::strerror(error)));
  }
  if (status != 0) {
    throw ConfigError(fmt::format("--plot: {} failed: {}", program, last_line(errors.get())));
  }
}

}  // namespace

void check_plot(const std::string& file) {
  const std::string form = std::filesystem::path(file).extension().string();
  if (form != ".svg" && form != ".png" && form != ".pdf") {
    fail_option("plot", "a file that ends in .svg, .png or .pdf", file);
  }
  run_plot("--check", "");
}

void write_plot(const std::string& file, const std::string& json) {
  run_plot(std::filesystem::absolute(file).string(), json);
}

}  // namespace trainyard
