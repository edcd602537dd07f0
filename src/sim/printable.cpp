// SPDX-License-Identifier: Apache-2.0
#include "sim/printable.h"

#include <cstddef>

namespace trainyard {

namespace {

constexpr std::size_t kMaxShown = 60;

void append_hex(std::string& result, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  result += "\\x";
  result += kDigits[byte >> 4];
  result += kDigits[byte & 0xF];
}

// C0 controls, DEL, and the C1 controls, which UTF-8 writes as C2 80 to C2 9F.
bool is_control(std::string_view text, std::size_t index) {
  const auto byte = static_cast<unsigned char>(text[index]);
  if (byte < 0x20 || byte == 0x7F) {
    return true;
  }
  const bool follows_c2 = index > 0 && static_cast<unsigned char>(text[index - 1]) == 0xC2;
  const bool starts_c1 =
      byte == 0xC2 && index + 1 < text.size() && static_cast<unsigned char>(text[index + 1]) < 0xA0;
  return starts_c1 || (follows_c2 && byte >= 0x80 && byte < 0xA0);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      result += "\\n";
    } else if (text[i] == '\t') {
      result += "\\t";
    } else if (is_control(text, i)) {
      append_hex(result, static_cast<unsigned char>(text[i]));
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string shortened(std::string_view text) {
  if (text.size() <= kMaxShown) {
    return escaped(text);
  }
  std::size_t length = kMaxShown;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) {
    --length;
  }
  return escaped(text.substr(0, length)) + "...";
}

std::string in_quotes(std::string_view text) {
  return '"' + shortened(text) + '"';
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return result;
}

}  // namespace trainyard
