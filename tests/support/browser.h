// SPDX-License-Identifier: Apache-2.0
// A headless browser (chromium) that is driven as its developer tools do, over two pipes: keys
// reach the page as those of a keyboard do. The protocol is described at
// https://chromedevtools.github.io/devtools-protocol, domains Page, Input, Emulation and Runtime.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/program.h"

namespace trainyard {

class Browser {
 public:
  // Whether there is one on this machine.
  [[nodiscard]] static bool exists();

  // All functions throw std::runtime_error where the browser does not answer within 60 s.
  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open(const std::string& url);
  // The value of an expression of JavaScript, which may be a promise.
  [[nodiscard]] nlohmann::json value(const std::string& expression);
  // Waits until the expression is true.
  void wait_for(const std::string& expression);
  // A key by its name, such as "Tab" or "ArrowDown", or a character.
  void press(const std::string& key, bool with_shift = false);
  void type(const std::string& text);
  void resize(int width, int height);
  void prefer(const std::string& colour_scheme);
  // As a PNG file.
  void take_picture(const std::string& file);
  // Errors and warnings that the page had since the last call, as text.
  [[nodiscard]] std::string complaints();

 private:
  nlohmann::json call(const std::string& method,
                      nlohmann::json parameters = nlohmann::json::object());
  nlohmann::json next_message();

  ScratchFolder profile_;
  pid_t process_ = -1;
  int to_browser_ = -1;
  int from_browser_ = -1;
  int last_id_ = 0;
  std::string session_;
  std::string received_;
  std::string complaints_;
};

}  // namespace trainyard
