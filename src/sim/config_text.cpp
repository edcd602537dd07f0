// SPDX-License-Identifier: Apache-2.0
#include "sim/config_text.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string_view>

namespace trainyard {
namespace {

// Plain where no reader could take it for anything else than its text.
bool is_plain(const std::string& text) {
  constexpr std::string_view kOthers = "_./+-";
  const auto is_usual = [&](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           kOthers.find(letter) != std::string_view::npos;
  };
  return !text.empty() && std::isalnum(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), is_usual) && text != "null" && text != "Null" &&
         text != "NULL";
}

std::string quoted(const std::string& text) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  constexpr unsigned char kFirstPrintable = 0x20;
  std::string result = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (code < kFirstPrintable) {
      result += "\\x";
      result += kHexDigits[code >> 4U];
      result += kHexDigits[code & 0xFU];
    } else {
      result += letter;
    }
  }
  return result + '"';
}

std::string scalar_text(const std::string& text) {
  return is_plain(text) ? text : quoted(text);
}

bool is_leaf(const ConfigNode& node) {
  return node.is_null() || node.is_scalar();
}

// Writes a node in one line; returns nothing for what needs several.
std::optional<std::string> line_of(const ConfigNode& node) {
  if (node.is_null()) {
    return "null";
  }
  if (node.is_scalar()) {
    return scalar_text(node.as_string());
  }
  if (node.is_map()) {
    return node.entries().empty() ? std::optional<std::string>("{}") : std::nullopt;
  }
  std::string list;
  for (const ConfigNode& item : node.items()) {
    if (!is_leaf(item)) {
      return std::nullopt;
    }
    list += (list.empty() ? "" : ", ") + *line_of(item);
  }
  return "[" + list + "]";
}

void write_node(const ConfigNode& node, std::size_t indent, std::string& text);

// Writes what stands after "key:" or "-".
void write_below(const ConfigNode& node, std::size_t indent, std::string& text) {
  constexpr std::size_t kStep = 2;
  if (const std::optional<std::string> line = line_of(node)) {
    text += ' ' + *line + '\n';
  } else {
    text += '\n';
    write_node(node, indent + kStep, text);
  }
}

// Writes a node that needs several lines.
void write_node(const ConfigNode& node, std::size_t indent, std::string& text) {
  const std::string margin(indent, ' ');
  if (node.is_map()) {
    for (const auto& [key, value] : node.entries()) {
      text += margin + scalar_text(key) + ':';
      write_below(value, indent, text);
    }
    return;
  }
  for (const ConfigNode& item : node.items()) {
    text += margin + '-';
    write_below(item, indent, text);
  }
}

}  // namespace

std::string yaml_text(const ConfigNode& node) {
  std::string text;
  if (const std::optional<std::string> line = line_of(node)) {
    return *line + '\n';
  }
  write_node(node, 0, text);
  return text;
}

}  // namespace trainyard
