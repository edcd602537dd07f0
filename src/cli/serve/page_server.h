// SPDX-License-Identifier: Apache-2.0
// The server of the page answers these requests and refuses all others.
//
//   GET  /, /serve.css, /serve.js   the page
//   GET  /api/options               what its controls are made of (served_options.h)
//   POST /api/run                   a run (run_request.h), answered by one object of JSON a line:
//                                   {"waiting": N}, {"seconds": S}, {"line": TEXT}, and at the end
//                                   {"output": TEXT, "seconds": S} or {"error": TEXT}
//
// A page of another origin could send requests from the browser of the user, or have its name lead
// here (DNS rebinding). So the header Host must be an address of this server, and a request of
// another origin is refused; where a token is wanted, all of /api wants it in the header
// Authorization. The run of a request that its sender left is ended.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/serve/child_run.h"

namespace trainyard {

struct PageServerOptions {
  std::string program = "/proc/self/exe";  // Whose runs they are.
  std::string address = "127.0.0.1";
  int port = 0;            // 0: any that is free.
  std::string token = {};  // Empty: none is wanted.
  std::optional<std::filesystem::path> folder = {};
  std::size_t at_once = 2;
  ChildLimits limits = {};
};

// An address of this machine that no other can reach.
[[nodiscard]] bool is_loopback(const std::string& address);

class PageServer {
 public:
  // Binds. Throws ConfigError where the port cannot be had.
  explicit PageServer(const PageServerOptions& options);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  [[nodiscard]] int port() const;
  // Answers until stop(), which any thread may call once and which ends the runs. Throws
  // ConfigError where the system ends it.
  void serve();
  void stop();

 private:
  struct State;  // Its types are those of the HTTP library.
  std::unique_ptr<State> state_;
};

}  // namespace trainyard
