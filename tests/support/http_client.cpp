// SPDX-License-Identifier: Apache-2.0
#include "support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <system_error>

namespace trainyard {
namespace {

// "5\r\nhello\r\n0\r\n\r\n" without lengths.
std::string without_chunks(const std::string& body) {
  std::string text;
  std::size_t at = 0;
  while (at < body.size()) {
    const std::size_t end = body.find("\r\n", at);
    const std::size_t size = std::strtoul(body.c_str() + at, nullptr, 16);
    if (end == std::string::npos || size == 0) {
      break;
    }
    text += body.substr(end + 2, size);
    at = end + 2 + size + 2;
  }
  return text;
}

}  // namespace

HttpConnection::HttpConnection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (socket_ < 0 || ::connect(socket_, generic, sizeof(address)) != 0) {
    throw std::system_error(errno, std::generic_category(), "connect");
  }
}

HttpConnection::~HttpConnection() {
  ::close(socket_);
}

void HttpConnection::send(const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) {
      return;  // The other end has heard enough; its answer says why.
    }
    sent += static_cast<std::size_t>(count);
  }
}

std::string HttpConnection::read_until(const std::string& text) {
  std::array<char, 65536> buffer{};
  while (text.empty() || text_.find(text) == std::string::npos) {
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (count <= 0) {
      break;
    }
    text_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text_;
}

HttpAnswer HttpConnection::answer() {
  const std::string text = read_until("");
  HttpAnswer answer;
  const std::size_t end = text.find("\r\n\r\n");
  if (text.rfind("HTTP/1.1 ", 0) == 0 && end != std::string::npos) {
    answer.status = std::atoi(text.c_str() + 9);
    answer.head = text.substr(0, end);
    answer.body = text.substr(end + 4);
    if (answer.head.find("Transfer-Encoding: chunked") != std::string::npos) {
      answer.body = without_chunks(answer.body);
    }
  }
  return answer;
}

std::string http_request(int port, const std::string& what, const std::string& body,
                         const std::string& more) {
  return what + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
         "\r\nConnection: close\r\n" + more + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

HttpAnswer http_get(int port, const std::string& path, const std::string& more) {
  HttpConnection connection(port);
  connection.send(http_request(port, "GET " + path, "", more));
  return connection.answer();
}

HttpAnswer http_post(int port, const std::string& path, const std::string& body,
                     const std::string& more) {
  HttpConnection connection(port);
  connection.send(http_request(port, "POST " + path, body, more));
  return connection.answer();
}

}  // namespace trainyard
