// SPDX-License-Identifier: Apache-2.0
// Requests of HTTP as bytes, so that tests can send what no client library sends.
#pragma once

#include <string>

namespace trainyard {

struct HttpAnswer {
  int status = 0;  // 0: the connection ended without an answer.
  std::string head;
  std::string body;  // Without the lengths of chunks.
};

// A connection to a port of 127.0.0.1. Throws std::system_error where there is none.
class HttpConnection {
 public:
  explicit HttpConnection(int port);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void send(const std::string& bytes);
  // Reads until the answer has that text, or to its end where it never does.
  [[nodiscard]] std::string read_until(const std::string& text);
  [[nodiscard]] HttpAnswer answer();

 private:
  int socket_;
  std::string text_;
};

// Head and body of a request with the header Host of that port; `more` are lines that end with
// "\r\n".
[[nodiscard]] std::string http_request(int port, const std::string& what, const std::string& body,
                                       const std::string& more = "");
[[nodiscard]] HttpAnswer http_get(int port, const std::string& path, const std::string& more = "");
[[nodiscard]] HttpAnswer http_post(int port, const std::string& path, const std::string& body,
                                   const std::string& more = "");

}  // namespace trainyard
