// SPDX-License-Identifier: Apache-2.0
#include "support/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* kProgram = "/usr/bin/chromium";
constexpr std::chrono::seconds kPatience{60};

// Codes of keys, which the browser acts on: https://www.w3.org/TR/uievents/#legacy-key-models.
const std::map<std::string, int>& key_codes() {
  static const std::map<std::string, int> codes{
      {"Tab", 9},      {"Enter", 13},      {" ", 32},         {"Home", 36},     {"ArrowLeft", 37},
      {"ArrowUp", 38}, {"ArrowRight", 39}, {"ArrowDown", 40}, {"Backspace", 8}, {"End", 35}};
  return codes;
}

std::string decoded(const std::string& base64) {
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char letter : base64) {
    const std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t value = letters.find(letter);
    if (value == std::string_view::npos) {
      break;
    }
    bits = (bits << 6U) | static_cast<unsigned>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xFFU);
    }
  }
  return bytes;
}

}  // namespace

bool Browser::exists() {
  return std::filesystem::exists(kProgram);
}

Browser::Browser() {
  std::array<int, 2> there{};
  std::array<int, 2> back{};
  if (::pipe2(there.data(), O_CLOEXEC) != 0 || ::pipe2(back.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe2");
  }
  // The browser reads from 3 and writes to 4. The copies first, as one of ours may be 3 or 4.
  constexpr int kAbove = 10;
  const int reads = ::fcntl(there[0], F_DUPFD_CLOEXEC, kAbove);
  const int writes = ::fcntl(back[1], F_DUPFD_CLOEXEC, kAbove);
  ::close(there[0]);
  ::close(back[1]);
  to_browser_ = there[1];
  from_browser_ = back[0];
  std::vector<std::string> arguments{kProgram,
                                     "--headless",
                                     "--no-sandbox",
                                     "--disable-gpu",
                                     "--no-first-run",
                                     "--remote-debugging-pipe",
                                     "--disable-dev-shm-usage",
                                     "--user-data-dir=" + profile_.path().string(),
                                     "about:blank"};
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, reads, 3);
  posix_spawn_file_actions_adddup2(&actions, writes, 4);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const int failure =
      ::posix_spawn(&process_, kProgram, &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(reads);
  ::close(writes);
  if (failure != 0) {
    throw std::runtime_error("chromium cannot be started");
  }
  const json target = call("Target.createTarget", {{"url", "about:blank"}});
  session_ = call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}})
                 .at("sessionId");
  for (const char* const domain : {"Page.enable", "Runtime.enable", "Log.enable"}) {
    call(domain);
  }
}

Browser::~Browser() {
  ::close(to_browser_);
  ::close(from_browser_);
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

json Browser::next_message() {
  const Clock::time_point end = Clock::now() + kPatience;
  std::size_t length = 0;
  while ((length = received_.find('\0')) == std::string::npos) {
    pollfd ready{from_browser_, POLLIN, 0};
    std::array<char, 65536> buffer{};
    ssize_t count = 0;
    if (::poll(&ready, 1, 1000) > 0) {
      count = ::read(from_browser_, buffer.data(), buffer.size());
      if (count <= 0) {
        throw std::runtime_error("the browser has ended");
      }
    }
    received_.append(buffer.data(), static_cast<std::size_t>(count));
    if (Clock::now() > end) {
      throw std::runtime_error("the browser does not answer");
    }
  }
  json message = json::parse(received_.substr(0, length));
  received_.erase(0, length + 1);
  return message;
}

json Browser::call(const std::string& method, json parameters) {
  json message{{"id", ++last_id_}, {"method", method}, {"params", std::move(parameters)}};
  if (!session_.empty()) {
    message["sessionId"] = session_;
  }
  const std::string text = message.dump() + '\0';
  if (::write(to_browser_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("the browser does not listen");
  }
  while (true) {
    json answer = next_message();
    if (answer.value("id", 0) == last_id_) {
      if (answer.contains("error")) {
        throw std::runtime_error(method + ": " + answer["error"].dump());
      }
      return answer["result"];
    }
    const std::string event = answer.value("method", "");
    if (event == "Runtime.exceptionThrown" || event == "Log.entryAdded") {
      complaints_ += answer["params"].dump() + "\n";
    }
  }
}

void Browser::open(const std::string& url) {
  call("Page.navigate", {{"url", url}});
  wait_for("document.readyState === 'complete'");
}

json Browser::value(const std::string& expression) {
  const json result =
      call("Runtime.evaluate",
           {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (result.contains("exceptionDetails")) {
    throw std::runtime_error(expression + ": " + result["exceptionDetails"].dump());
  }
  return result["result"].value("value", json());
}

void Browser::wait_for(const std::string& expression) {
  const Clock::time_point end = Clock::now() + kPatience;
  while (value("Boolean(" + expression + ")") != true) {
    if (Clock::now() > end) {
      throw std::runtime_error("never true: " + expression);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
}

void Browser::press(const std::string& key, bool with_shift) {
  const auto code = key_codes().find(key);
  json event{{"type", "rawKeyDown"}, {"key", key}, {"modifiers", with_shift ? 8 : 0}};
  if (code != key_codes().end()) {
    event["windowsVirtualKeyCode"] = code->second;
    event["code"] = key == " " ? "Space" : key;
  }
  const bool is_text = key.size() == 1 || key == "Enter";
  if (is_text) {
    event["type"] = "keyDown";
    event["text"] = key == "Enter" ? "\r" : key;
  }
  call("Input.dispatchKeyEvent", event);
  event["type"] = "keyUp";
  event.erase("text");
  call("Input.dispatchKeyEvent", event);
}

void Browser::type(const std::string& text) {
  for (const char letter : text) {
    press(std::string(1, letter));
  }
}

void Browser::resize(int width, int height) {
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}});
}

void Browser::prefer(const std::string& colour_scheme) {
  call("Emulation.setEmulatedMedia",
       {{"features", json::array({{{"name", "prefers-color-scheme"}, {"value", colour_scheme}}})}});
}

void Browser::take_picture(const std::string& file) {
  const json picture = call("Page.captureScreenshot", {{"format", "png"}});
  std::ofstream(file, std::ios::binary) << decoded(picture.at("data"));
}

std::string Browser::complaints() {
  return std::exchange(complaints_, "");
}

}  // namespace trainyard
