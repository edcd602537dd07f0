// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/serve/page_server.h"

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/config_error.h"
#include "support/http_client.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

using nlohmann::json;

// A server that answers as long as this lives.
class RunningServer {
 public:
  explicit RunningServer(PageServerOptions options = {})
      : server_(with_program(std::move(options))), thread_([this] { server_.serve(); }) {}
  ~RunningServer() { server_.stop(); }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  [[nodiscard]] int port() const { return server_.port(); }
  [[nodiscard]] HttpAnswer run(const json& request, const std::string& more = "") const {
    return http_post(port(), "/api/run", request.dump(), more);
  }

 private:
  static PageServerOptions with_program(PageServerOptions options) {
    options.program = program_path();
    return options;
  }

  PageServer server_;
  std::jthread thread_;
};

json last_line(const std::string& body) {
  const std::size_t end = body.rfind('\n', body.size() - 2);
  return json::parse(body.substr(end == std::string::npos ? 0 : end + 1));
}

std::string error_of(const HttpAnswer& answer) {
  return json::parse(answer.body).at("error").get<std::string>();
}

const json kCost{{"words", {"cost", "--cluster", "dgx-h100", "--nodes", "2"}}};
// Minutes, and the flow engine says nothing for seconds.
const json kLong{{"words",
                  {"collective", "alltoall", "--cluster", "fat-tree-k16-100g", "--runtime", "plain",
                   "--fidelity", "packet", "-b", "64M", "-e", "64M"}}};

}  // namespace

TEST_CASE("a run that is asked for has the bytes of its command line", "[serve]") {
  const RunningServer server;
  const ScratchFolder folder;
  for (const auto& [words, line] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"cost", "--cluster", "dgx-h100", "--nodes", "2"}, "cost --cluster dgx-h100 --nodes 2"},
           {{"step", "--cluster", "dgx-h100", "--nodes", "2", "--workload", "llama-3-8b", "--set",
             "server.nics=4"},
            "step --cluster dgx-h100 --nodes 2 --workload llama-3-8b --set server.nics=4"}}) {
    for (const std::string form : {"json", "csv"}) {
      const HttpAnswer answer = server.run({{"words", words}, {"form", form}});
      INFO(answer.body);
      REQUIRE(answer.status == 200);
      const ProgramResult program =
          run_shell("trainyard " + line + " --format " + form, folder.path());
      REQUIRE(program.status == 0);
      REQUIRE(last_line(answer.body).at("output") == program.output);
    }
  }
  const HttpAnswer wrong = server.run({{"words", {"cost", "--cluster", "dgx-h101"}}});
  const std::string error = last_line(wrong.body).at("error");
  REQUIRE(error.find("expected a file or one of the") == 0);
}

TEST_CASE("the page, its style and its script come with a policy that lets nothing else in",
          "[serve]") {
  const RunningServer server;
  for (const auto& [path, type] :
       std::vector<std::pair<std::string, std::string>>{{"/", "text/html"},
                                                        {"/serve.css", "text/css"},
                                                        {"/serve.js", "text/javascript"},
                                                        {"/api/options", "application/json"}}) {
    const HttpAnswer answer = http_get(server.port(), path);
    INFO(path << ": " << answer.head);
    REQUIRE(answer.status == 200);
    REQUIRE(answer.head.find("Content-Type: " + type) != std::string::npos);
    REQUIRE(answer.head.find("default-src 'none'; script-src 'self'") != std::string::npos);
    REQUIRE(answer.body.size() > 1000);
    REQUIRE(answer.body.find("https://") == std::string::npos);
  }
  REQUIRE(http_get(server.port(), "/../etc/passwd").status == 404);
  REQUIRE(http_get(server.port(), "/serve.jsx").status == 404);
}

TEST_CASE("requests of other origins and names are refused", "[serve]") {
  const RunningServer server;
  const std::string own = "http://127.0.0.1:" + std::to_string(server.port());
  const std::string body = kCost.dump();
  REQUIRE(server.run(kCost, "Origin: " + own + "\r\nSec-Fetch-Site: same-origin\r\n").status ==
          200);
  for (const std::string origin : {"http://evil.example", "null", "https://127.0.0.1"}) {
    REQUIRE(server.run(kCost, "Origin: " + origin + "\r\n").status == 403);
  }
  REQUIRE(server.run(kCost, "Sec-Fetch-Site: cross-site\r\n").status == 403);
  REQUIRE(http_get(server.port(), "/api/options", "Sec-Fetch-Site: same-site\r\n").status == 403);
  // A link to the page from elsewhere is one of those that people share.
  REQUIRE(http_get(server.port(), "/", "Sec-Fetch-Site: cross-site\r\n").status == 200);
  for (const std::string host : {"evil.example", "127.0.0.1", "127.0.0.1:1", ""}) {
    HttpConnection connection(server.port());
    connection.send("POST /api/run HTTP/1.1\r\nHost: " + host +
                    "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
                    "\r\n\r\n" + body);
    INFO(host);
    REQUIRE(connection.answer().status == 403);
  }
}

TEST_CASE("bad requests get one line, and the server goes on", "[serve]") {
  const RunningServer server;
  const HttpAnswer malformed = http_post(server.port(), "/api/run", "{\"words\": [");
  REQUIRE(malformed.status == 400);
  REQUIRE(error_of(malformed) == "expected an object of JSON, found something else");
  REQUIRE(server.run({{"words", {"step", "--output", "x"}}}).status == 400);
  REQUIRE(server.run({{"words", {"cost", "--cluster", "/etc/passwd"}}}).status == 400);
  const HttpAnswer large =
      http_post(server.port(), "/api/run", "{\"words\": [\"" + std::string(1 << 20, 'x') + "\"]}");
  REQUIRE(large.status == 413);
  REQUIRE(error_of(large) == "expected at most 65536 bytes");
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02"), std::string("GET\r\n\r\n"),
        "GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\n\r\n", std::string("\r\n\r\n"),
        "POST /api/run HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
            "\r\nContent-Length: 99999999999999999999\r\n\r\n"}) {
    HttpConnection connection(server.port());
    connection.send(bytes);
    const int status = connection.answer().status;
    INFO(bytes.substr(0, 40) << ": " << status);
    REQUIRE(status != 200);
  }
  REQUIRE(server.run(kCost).status == 200);
}

TEST_CASE("files are those of the work folder, and a link out of it is refused", "[serve]") {
  const ScratchFolder folder;
  std::filesystem::copy_file(source_dir() / "configs/clusters/dgx-h100.yaml",
                             folder.path() / "mine.yaml");
  PageServerOptions options;
  options.folder = folder.path();
  const RunningServer server(options);
  const HttpAnswer tables = http_get(server.port(), "/api/options");
  REQUIRE(json::parse(tables.body).at("files") == json{"mine.yaml"});
  const json request{{"words", {"cost", "--cluster", "mine.yaml"}}};
  REQUIRE(last_line(server.run(request).body).contains("output"));
  REQUIRE(server.run({{"words", {"cost", "--cluster", "../mine.yaml"}}}).status == 400);
  std::filesystem::create_symlink("/etc/passwd", folder.path() / "out.yaml");
  const HttpAnswer link = server.run(request);
  REQUIRE(link.status == 400);
  REQUIRE(error_of(link) == "--folder: expected no symbolic link out of it, found \"out.yaml\"");
  REQUIRE_THROWS_AS(PageServer(options), ConfigError);
}

TEST_CASE("without the token nothing but the page is given", "[serve]") {
  PageServerOptions options;
  options.token = "0123456789abcdef";
  const RunningServer server(options);
  REQUIRE(http_get(server.port(), "/").status == 200);
  REQUIRE(http_get(server.port(), "/api/options").status == 401);
  REQUIRE(server.run(kCost).status == 401);
  REQUIRE(server.run(kCost, "Authorization: Bearer 0123456789abcdeg\r\n").status == 401);
  REQUIRE(server.run(kCost, "Authorization: Bearer 0123456789abcde\r\n").status == 401);
  REQUIRE(server.run(kCost, "Authorization: Bearer 0123456789abcdef\r\n").status == 200);
}

TEST_CASE("a hundred requests at once are run, wait or are turned away, and the server goes on",
          "[serve]") {
  PageServerOptions options;
  options.at_once = 2;
  const RunningServer server(options);
  std::vector<HttpAnswer> answers(100);
  {
    std::vector<std::jthread> threads;
    for (HttpAnswer& answer : answers) {
      threads.emplace_back([&] { answer = server.run(kCost); });
    }
  }
  int done = 0;
  int refused = 0;
  for (const HttpAnswer& answer : answers) {
    done += answer.status == 200 && last_line(answer.body).contains("output") ? 1 : 0;
    refused += answer.status == 503 ? 1 : 0;
  }
  INFO(done << " done, " << refused << " refused");
  REQUIRE(done + refused == 100);
  REQUIRE(done >= 34);
  REQUIRE(last_line(server.run(kCost).body).contains("output"));
}

TEST_CASE("a run ends when whoever asked leaves, and the next one has its place", "[serve]") {
  PageServerOptions options;
  options.at_once = 1;
  const RunningServer server(options);
  {
    HttpConnection first(server.port());
    first.send(http_request(server.port(), "POST /api/run", kLong.dump()));
    REQUIRE(first.read_until("\"seconds\"").find("\"seconds\"") != std::string::npos);
    HttpConnection second(server.port());
    second.send(http_request(server.port(), "POST /api/run", kLong.dump()));
    REQUIRE(second.read_until("waiting").find("{\"waiting\":1}") != std::string::npos);
  }
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(last_line(server.run(kCost).body).contains("output"));
  REQUIRE(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("a run that takes too long is ended and says so", "[serve]") {
  PageServerOptions options;
  options.limits.time = std::chrono::seconds(1);
  const RunningServer server(options);
  REQUIRE(last_line(server.run(kLong).body).at("error") == "the run took more than 1 s");
}

TEST_CASE("a port that another server has is refused", "[serve]") {
  const RunningServer server;
  PageServerOptions options;
  options.port = server.port();
  REQUIRE_THROWS_WITH(PageServer(options),
                      Catch::Contains("--port: expected a port of 127.0.0.1 that can be had"));
}

TEST_CASE("addresses that only this machine reaches are told from others", "[serve]") {
  for (const char* const address : {"127.0.0.1", "127.8.9.10", "::1"}) {
    REQUIRE(is_loopback(address));
  }
  for (const char* const address : {"0.0.0.0", "10.0.0.1", "::", "fe80::1", "localhost", ""}) {
    REQUIRE_FALSE(is_loopback(address));
  }
}

}  // namespace trainyard
