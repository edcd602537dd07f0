// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <pthread.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <ctime>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include "cli/common/commands.h"
#include "cli/common/common.h"
#include "cli/common/options.h"
#include "cli/serve/page_server.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::string_view kServeExample = R"(
The page runs this program and shows the command line of each run. It needs no network, and only
this machine reaches it unless --bind says otherwise (docs/commands/serve.md). Ctrl-C ends it.

Examples:
  trainyard serve
  trainyard serve --port 8080 --folder my-clusters
)";

constexpr int kDefaultPort = 8790;  // Any that no other service is known for.
constexpr std::size_t kLeastTokenBytes = 16;

std::string read_address(const OptionReader& reader) {
  std::string address = reader.text("bind").value_or("127.0.0.1");
  std::array<unsigned char, sizeof(in6_addr)> unused{};
  if (::inet_pton(AF_INET, address.c_str(), unused.data()) != 1 &&
      ::inet_pton(AF_INET6, address.c_str(), unused.data()) != 1) {
    fail_option("bind", "an address such as 127.0.0.1 or ::1", address);
  }
  return address;
}

std::string read_token(const OptionReader& reader) {
  const std::optional<std::string> file = reader.text("token");
  if (!file) {
    return "";
  }
  constexpr std::size_t kMostBytes = std::size_t{1} << 20U;
  std::string token = read_file(*file, kMostBytes);
  token.erase(std::find(token.begin(), token.end(), '\n'), token.end());
  const auto is_graphic = [](unsigned char byte) { return std::isgraph(byte) != 0; };
  if (token.size() < kLeastTokenBytes || !std::ranges::all_of(token, is_graphic)) {
    throw ConfigError(fmt::format(
        "--token: expected a file whose first line has {} letters, digits and signs or more, found "
        "another in {}",
        kLeastTokenBytes, in_quotes(*file)));
  }
  return token;
}

PageServerOptions read_server_options(const OptionReader& reader) {
  constexpr int kMostPort = 65535;
  constexpr int kMostRuns = 64;
  constexpr int kMostSeconds = 86'400;
  PageServerOptions options{.address = read_address(reader),
                            .port = reader.integer("port", 0, kMostPort).value_or(kDefaultPort),
                            .token = read_token(reader)};
  if (options.token.empty() && !is_loopback(options.address)) {
    throw ConfigError(fmt::format(
        "--bind: expected --token FILE beside an address that other machines reach, found {} alone",
        options.address));
  }
  if (const std::optional<std::string> folder = reader.text("folder")) {
    options.folder = *folder;
  }
  options.at_once = static_cast<std::size_t>(
      reader.integer("runs", 1, kMostRuns).value_or(static_cast<int>(options.at_once)));
  if (const std::optional<int> seconds = reader.integer("run-seconds", 1, kMostSeconds)) {
    options.limits.time = std::chrono::seconds(*seconds);
  }
  options.limits.memory = reader.message_size("run-memory").value_or(options.limits.memory);
  return options;
}

// Ends the server when somebody ends the program, so that runs and folders of it end as well.
class EndBySignal {
 public:
  explicit EndBySignal(PageServer& server) : server_(server) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    // Before any other thread, which would take the signal.
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    waiter_ = std::jthread([this](const std::stop_token& stop) { wait(stop); });
  }

 private:
  void wait(const std::stop_token& stop) {
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 200'000'000};
    while (!stop.stop_requested()) {
      if (::sigtimedwait(&signals_, nullptr, &kPause) > 0) {
        server_.stop();
        return;
      }
    }
  }

  PageServer& server_;
  sigset_t signals_{};
  std::jthread waiter_;
};

int run_serve(const OptionReader& reader, std::ostream& out) {
  const PageServerOptions options = read_server_options(reader);
  PageServer server(options);
  const bool is_six = options.address.find(':') != std::string::npos;
  const EndBySignal end(server);
  out << fmt::format("Open http://{}{}{}:{}/ in a browser; Ctrl-C ends it.\n", is_six ? "[" : "",
                     options.address, is_six ? "]" : "", server.port())
      << std::flush;
  server.serve();
  return 0;
}

}  // namespace

Command serve_command() {
  return {
      .name = "serve",
      .form = "serve",
      .summary = "a page in the browser to explore with: controls, figures, two set-ups beside",
      .usage = "serve [options]",
      .options = {{"port", "N", "where the page is (default 8790); 0: any port that is free"},
                  {"bind", "ADDRESS",
                   "of which network (default 127.0.0.1, this machine alone); others need --token"},
                  {"token", "FILE", "its first line is a word that every request must have",
                   kInput},
                  {"folder", "DIR",
                   "files that the page may name: clusters, workloads, parts; read only", kInput},
                  {"runs", "N", "runs at once (default 2); 32 more wait"},
                  {"run-seconds", "N", "a run that takes longer is ended (default 600)"},
                  {"run-memory", "SIZE", "a run that takes more memory is ended (default 4G)"}},
      .example = kServeExample,
      .run = run_serve};
}

}  // namespace trainyard
