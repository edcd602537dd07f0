// SPDX-License-Identifier: Apache-2.0
#include "calibrate/rendezvous.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

#include "calibrate/text.h"
#include "sim/config_error.h"

namespace trainyard::calibrate {

void Rendezvous::open_as_leader() const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (!std::filesystem::is_directory(folder_, error) ||
      !std::filesystem::is_empty(folder_, error) || error) {
    throw ConfigError(fmt::format("--rendezvous: expected a new or empty folder, found {}",
                                  in_quotes(folder_.string())));
  }
}

void Rendezvous::publish(const std::string& name, const std::string& text) const {
  const std::filesystem::path temporary = folder_ / fmt::format("{}.{}.partial", name, ::getpid());
  std::ofstream stream(temporary, std::ios::binary);
  stream << text;
  stream.close();
  std::error_code error;
  if (stream) {
    std::filesystem::rename(temporary, folder_ / name, error);
  }
  if (!stream || error) {
    throw ConfigError(
        fmt::format("--rendezvous: {} cannot be written", one_line((folder_ / name).string())));
  }
}

std::optional<std::string> Rendezvous::await(const std::string& name,
                                             std::chrono::milliseconds patience) const {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  do {
    std::ifstream stream(folder_ / name, std::ios::binary);
    if (stream) {
      return std::string(std::istreambuf_iterator<char>(stream), {});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } while (std::chrono::steady_clock::now() < deadline);
  return std::nullopt;
}

}  // namespace trainyard::calibrate
