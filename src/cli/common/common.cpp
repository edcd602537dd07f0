// SPDX-License-Identifier: Apache-2.0
#include "cli/common/common.h"

#include <dlfcn.h>
#include <link.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>

#include "cli/common/long_run_display.h"
#include "report/formats/output.h"
#include "sim/config.h"
#include "sim/host/run_host.h"
#include "sim/printable.h"
#include "sim/text_file.h"
#include "sim/yaml_names.h"

namespace trainyard {
namespace {

// The file that this function was loaded from: the shared library, or else the program.
std::filesystem::path own_file() {
  Dl_info info{};
  link_map* map = nullptr;
  static const char kOwn = '\0';
  // NOLINTNEXTLINE(*-reinterpret-cast): that is how dladdr1() hands it out.
  void** const found = reinterpret_cast<void**>(&map);
  // The name of the program is empty there, or how it was called.
  if (dladdr1(&kOwn, &info, found, RTLD_DL_LINKMAP) != 0 && map->l_name[0] != '\0') {
    return std::filesystem::canonical(map->l_name);
  }
  return std::filesystem::read_symlink("/proc/self/exe");
}

}  // namespace

// Beside the program or the library: PREFIX/share/trainyard/configs when installed in PREFIX/bin,
// PREFIX/lib or a folder of it, the source tree when built in build/PRESET/bin or lib, and the same
// folder in a Python package.
std::filesystem::path configs_folder() {
  const std::filesystem::path file = own_file();
  for (const char* relative : {"../share/trainyard/configs", "../../share/trainyard/configs",
                               "configs", "../../../configs"}) {
    const std::filesystem::path folder = file.parent_path() / relative;
    if (std::filesystem::is_directory(folder / "clusters")) {
      return folder.lexically_normal();
    }
  }
  throw ConfigError(
      fmt::format("{}: the configs folder is neither in ../share/trainyard nor in the source tree; "
                  "install with cmake --install",
                  file.string()));
}

std::filesystem::path find_config(std::string_view kind, std::string_view name_or_file) {
  std::filesystem::path file(name_or_file);
  if (name_or_file.empty()) {
    throw ConfigError(
        fmt::format("expected the name or file of one of the {}, found nothing", kind));
  }
  std::error_code error;  // Ignored: a folder that may not be entered holds no file to take.
  if (file.has_parent_path() || std::filesystem::exists(file, error)) {
    return file;
  }
  const std::filesystem::path folder = configs_folder() / kind;
  const std::vector<std::string> names = yaml_names_in(folder);
  if (std::ranges::find(names, name_or_file) != names.end()) {
    return folder / (std::string(name_or_file) + ".yaml");
  }
  if (file.has_extension()) {
    return file;
  }
  constexpr std::size_t kMostListed = 12;  // More are no line that anyone reads.
  const std::string known = names.size() > kMostListed
                                ? fmt::format("{} names in configs/{}", names.size(), kind)
                                : fmt::format("{} {}", kind, fmt::join(names, ", "));
  throw ConfigError(fmt::format("expected a file or one of the {}, found {}{}", known,
                                in_quotes(name_or_file), did_you_mean(name_or_file, names)));
}

std::filesystem::path intervals_file() {
  return configs_folder() / "nccl" / "intervals.yaml";
}

std::filesystem::path step_intervals_file() {
  return configs_folder() / "hardware" / "step-intervals.yaml";
}

const Catalogue& load_default_catalogue() {
  static const Catalogue kShipped = Catalogue::load(configs_folder() / "hardware");
  return kShipped;
}

std::string read_file(const std::string& name, std::size_t max_bytes) {
  return read_whole_file(name, name, max_bytes);
}

void write_output(const std::optional<std::string>& file, const std::string& text,
                  std::ostream& out) {
  if (file) {
    write_file(*file, text);
  } else {
    out << text << std::flush;
  }
}

std::string counted(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void append_once(const std::vector<std::string>& more, std::vector<std::string>& notes) {
  for (const std::string& note : more) {
    if (std::ranges::find(notes, note) == notes.end()) {
      notes.push_back(note);
    }
  }
}

void run_tasks(std::size_t count, unsigned threads, std::string_view what,
               const std::function<void(std::size_t)>& task) {
  if (threads == 0) {
    const bool is_alone = run_host() != nullptr && run_host()->wants_one_thread();
    threads = is_alone ? 1U : std::max(1U, std::thread::hardware_concurrency());
  }
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  std::optional<LongRunDisplay> display;
  if (!what.empty()) {
    display.emplace(
        [&](double seconds) { return std::optional(so_far(what, done.load(), count, seconds)); },
        nullptr);
  }
  const auto work = [&] {
    for (std::size_t index = next++; index < count; index = next++) {
      try {
        end_if_cancelled();
        task(index);
      } catch (...) {
        failures[index] = std::current_exception();
      }
      ++done;
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned helper = 1; helper < std::min<std::size_t>(threads, count); ++helper) {
      helpers.emplace_back([&, host = run_host()] {
        const HostScope scope(host);
        work();
      });
    }
    work();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
}

std::function<void(std::size_t, const std::function<void(std::size_t)>&)> task_runner(
    unsigned threads, std::string_view what) {
  return [=](std::size_t count, const std::function<void(std::size_t)>& task) {
    run_tasks(count, threads, what, task);
  };
}

}  // namespace trainyard
