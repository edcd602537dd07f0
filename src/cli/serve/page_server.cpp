// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/page_server.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/common/common.h"
#include "cli/serve/run_queue.h"
#include "cli/serve/run_request.h"
#include "cli/serve/serve_page.h"
#include "cli/serve/served_options.h"
#include "cli/serve/setup_file.h"
#include "cli/serve/work_folder.h"
#include "report/formats/json.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

using httplib::DataSink;
using httplib::Request;
using httplib::Response;
using Clock = std::chrono::steady_clock;
using Handled = httplib::Server::HandlerResponse;

constexpr std::size_t kMostWaiting = 32;
// Threads beside those of runs and of runs that wait: the page and refusals are answered at once.
constexpr std::size_t kOtherThreads = 4;
constexpr std::size_t kMostBodyBytes = std::size_t{64} << 10U;
constexpr std::chrono::milliseconds kBetweenWords{200};

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void refuse(Response& response, int status, std::string_view error) {
  response.status = status;
  response.set_content(dumped({{"error", error}}) + "\n", "application/json");
}

// Takes as long for every word of one length.
bool is_equal(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0U : 1U;
  for (std::size_t index = 0; index < std::min(a.size(), b.size()); ++index) {
    difference |= static_cast<unsigned char>(a[index]) ^ static_cast<unsigned char>(b[index]);
  }
  return difference == 0;
}

// IPv6 addresses stand in brackets before a port.
std::string bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : fmt::format("[{}]", address);
}

// LineWriter of JSON to whoever asked.
class LineWriter {
 public:
  explicit LineWriter(DataSink& sink) : sink_(sink) {}
  void write(const Json& json) {
    const std::string line = dumped(json) + "\n";
    is_open_ = is_open_ && sink_.write(line.data(), line.size());
  }
  [[nodiscard]] bool is_open() {
    is_open_ = is_open_ && sink_.is_writable();
    return is_open_;
  }

 private:
  DataSink& sink_;
  bool is_open_ = true;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The HTTP library refuses some requests by itself, without a text.
std::string reason_of(int status) {
  constexpr int kNotFound = 404;
  constexpr int kTooLarge = 413;
  return status == kNotFound   ? "expected a page of this server"
         : status == kTooLarge ? fmt::format("expected at most {} bytes", kMostBodyBytes)
                               : "expected a request that can be read";
}

// "trainyard: step: expected ..." without the name of the program.
std::string without_name(const std::string& line) {
  constexpr std::string_view kName = "trainyard: ";
  return line.starts_with(kName) ? line.substr(kName.size()) : line;
}

}  // namespace

bool is_loopback(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  constexpr std::uint32_t kLoopbackNet = 127;  // RFC 1122, section 3.2.1.3: 127.0.0.0/8.
  return (::inet_pton(AF_INET, address.c_str(), &four) == 1 &&
          ntohl(four.s_addr) >> 24U == kLoopbackNet) ||
         (::inet_pton(AF_INET6, address.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six));
}

struct PageServer::State {
  // A folder that is removed with everything in it.
  class OwnFolder {
   public:
    OwnFolder() {
      std::string name = std::filesystem::temp_directory_path() / "trainyard-serve-XXXXXX";
      if (::mkdtemp(name.data()) == nullptr) {
        throw ConfigError(fmt::format("{}: expected a folder that can be made there", name));
      }
      path_ = name;
    }
    ~OwnFolder() {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    }
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

   private:
    std::filesystem::path path_;
  };

  explicit State(const PageServerOptions& given)
      : options(given), queue(given.at_once, kMostWaiting) {}

  PageServerOptions options;
  RunQueue queue;
  OwnFolder own = {};  // Where reports are made, and where runs are if there is no work folder.
  httplib::Server server = {};
  int port = 0;
  std::atomic<bool> is_serving{false};
  std::atomic<bool> has_ended{false};
  std::atomic<std::uint64_t> reports{0};

  // Empty: it may be answered.
  [[nodiscard]] std::string reason_to_refuse(const Request& request) const;
  void answer_run(const Request& request, Response& response);
  void run(const RunRequest& request, std::uint64_t ticket, DataSink& sink);
  void finish(const ChildResult& result, const std::filesystem::path& report, double seconds,
              LineWriter& lines) const;
  void add_handlers();
  [[nodiscard]] std::vector<std::string> files() const {
    return options.folder ? work_files(*options.folder) : std::vector<std::string>();
  }
};

std::string PageServer::State::reason_to_refuse(const Request& request) const {
  const std::string host = request.get_header_value("Host");
  const std::array<std::string, 4> names{bracketed(options.address), "127.0.0.1", "localhost",
                                         "[::1]"};
  const bool is_ours = std::ranges::any_of(names, [&](const std::string& name) {
    return host == fmt::format("{}:{}", name, port) || (port == 80 && host == name);
  });
  // From another machine the server may have any name; what keeps others out is the token.
  if (!is_ours && options.token.empty()) {
    return "Host: expected the address of this server";
  }
  if (request.has_header("Origin") && request.get_header_value("Origin") != "http://" + host) {
    return "Origin: expected this server's own page";
  }
  // Links and images elsewhere come without Origin; of them browsers say this.
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  const bool is_foreign = !site.empty() && site != "same-origin" && site != "none";
  if (is_foreign && request.path.starts_with("/api/")) {
    return "Sec-Fetch-Site: expected this server's own page";
  }
  return "";
}

void PageServer::State::answer_run(const Request& request, Response& response) {
  RunRequest asked;
  try {
    asked = read_run_request(request.body);
    static_cast<void>(files());  // Refuses a link out of the folder.
    if (asked.form == RunForm::Cluster || asked.form == RunForm::Workload) {
      const std::string text = setup_file(asked, options.folder.value_or(""));
      response.set_content(dumped({{"output", text}}) + "\n", "application/json");
      return;
    }
  } catch (const ConfigError& error) {
    refuse(response, 400, error.what());
    return;
  }
  const std::optional<std::uint64_t> ticket = queue.join();
  if (!ticket) {
    response.set_header("Retry-After", "5");
    refuse(response, 503, fmt::format("expected at most {} runs that wait", kMostWaiting));
    return;
  }
  response.set_chunked_content_provider(
      "application/x-ndjson",
      [this, asked, ticket](std::size_t /*offset*/, DataSink& sink) {
        run(asked, *ticket, sink);
        sink.done();
        return true;
      },
      [this, ticket](bool /*success*/) { queue.leave(*ticket); });
}

void PageServer::State::run(const RunRequest& request, std::uint64_t ticket, DataSink& sink) {
  LineWriter lines(sink);
  std::size_t told = 0;
  while (const std::size_t waiting = queue.wait(ticket, kBetweenWords)) {
    if (has_ended || !lines.is_open()) {
      return;
    }
    if (waiting != std::exchange(told, waiting)) {
      lines.write({{"waiting", waiting}});
    }
  }
  const Clock::time_point start = Clock::now();
  double said = 0.0;
  const ChildWatch watch{.on_line =
                             [&](std::string_view line) {
                               lines.write({{"line", without_name(std::string(line))}});
                             },
                         .is_wanted =
                             [&] {
                               if (seconds_since(start) - said > 1.0) {
                                 said = seconds_since(start);
                                 lines.write({{"seconds", said}});
                               }
                               return !has_ended && lines.is_open();
                             }};
  const std::filesystem::path report = own.path() / fmt::format("report-{}.html", reports++);
  try {
    ChildLimits limits = options.limits;
    limits.has_files = request.form == RunForm::Report;
    const ChildResult result = run_child(options.program, request.arguments(report),
                                         options.folder.value_or(own.path()), limits, watch);
    finish(result, limits.has_files ? report : "", seconds_since(start), lines);
  } catch (const ConfigError& error) {
    lines.write({{"error", error.what()}});
  }
  std::error_code ignored;
  std::filesystem::remove(report, ignored);
}

void PageServer::State::finish(const ChildResult& result, const std::filesystem::path& report,
                               double seconds, LineWriter& lines) const {
  // `collective` ends with 1 where an algorithm could not run at one size: there are rows.
  constexpr int kInputIsWrong = 2;
  if (!result.stopped.empty()) {
    lines.write({{"error", result.stopped}});
  } else if (result.status > 128) {
    lines.write({{"error", fmt::format("the run crashed with signal {}", result.status - 128)}});
  } else if (result.status >= kInputIsWrong) {
    lines.write({{"error", without_name(result.last_line)}});
  } else {
    const std::size_t most = static_cast<std::size_t>(options.limits.output.count());
    lines.write({{"output", report.empty() ? result.output : read_file(report.string(), most)},
                 {"seconds", seconds}});
  }
}

void PageServer::State::add_handlers() {
  server.set_payload_max_length(kMostBodyBytes);
  // The default would let two servers share a port.
  server.set_socket_options([](int socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_keep_alive_max_count(1);  // No connection keeps a thread that it does not use.
  server.new_task_queue = [this] {
    // The server takes it as its own.
    return new httplib::ThreadPool(options.at_once + kMostWaiting + kOtherThreads);
  };
  server.set_default_headers(
      {{"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
       {"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"Cache-Control", "no-store"}});
  server.set_pre_routing_handler([this](const Request& request, Response& response) {
    if (const std::string reason = reason_to_refuse(request); !reason.empty()) {
      refuse(response, 403, reason);
      return Handled::Handled;
    }
    const bool is_open = options.token.empty() || !request.path.starts_with("/api/");
    if (!is_open &&
        !is_equal(request.get_header_value("Authorization"), "Bearer " + options.token)) {
      refuse(response, 401, "Authorization: expected the token");
      return Handled::Handled;
    }
    return Handled::Unhandled;
  });
  const auto add_text = [this](const char* path, std::string_view text, const char* type) {
    server.Get(path, [text, type](const Request& /*request*/, Response& response) {
      response.set_content(text.data(), text.size(), type);
    });
  };
  add_text("/", serve_page().body, "text/html; charset=utf-8");
  add_text("/serve\\.css", serve_page().style, "text/css; charset=utf-8");
  add_text("/serve\\.js", serve_page().script, "text/javascript; charset=utf-8");
  server.Get("/api/options", [this](const Request& /*request*/, Response& response) {
    try {
      response.set_content(served_options(files()), "application/json");
    } catch (const ConfigError& error) {
      refuse(response, 400, error.what());
    }
  });
  server.Post("/api/run", [this](const Request& request, Response& response) {
    answer_run(request, response);
  });
  server.set_error_handler([](const Request& /*request*/, Response& response) {
    if (response.body.empty()) {
      refuse(response, response.status, reason_of(response.status));
    }
  });
}

PageServer::PageServer(const PageServerOptions& options)
    : state_(std::make_unique<State>(options)) {
  static_cast<void>(state_->files());
  state_->add_handlers();
  const bool is_any = options.port == 0;
  const int port = is_any ? state_->server.bind_to_any_port(options.address)
                   : state_->server.bind_to_port(options.address, options.port) ? options.port
                                                                                : -1;
  if (port < 0) {
    throw ConfigError(fmt::format("--port: expected a port of {} that can be had, found {}",
                                  options.address, options.port));
  }
  state_->port = port;
}

PageServer::~PageServer() = default;

int PageServer::port() const {
  return state_->port;
}

void PageServer::serve() {
  state_->is_serving = true;
  const bool is_stopped = state_->has_ended || state_->server.listen_after_bind();
  state_->is_serving = false;
  if (!is_stopped) {
    throw ConfigError("--port: expected a port that can be listened at, found one that ended");
  }
}

void PageServer::stop() {
  // Either serve() sees the first line, or this waits until there is something to stop.
  state_->has_ended = true;
  while (state_->is_serving && !state_->server.is_running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  state_->server.stop();
}

}  // namespace trainyard
