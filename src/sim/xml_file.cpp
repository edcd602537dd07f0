// SPDX-License-Identifier: Apache-2.0
#include "sim/xml_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

std::string lower_first(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

}  // namespace

XmlFile::XmlFile(std::string_view text, const std::string& name, std::size_t max_bytes,
                 std::string_view root)
    : text_(text), name_(name) {
  check_bytes(max_bytes);
  const pugi::xml_parse_result result =
      document_.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    fail(static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0)), "",
         fmt::format("expected XML, found a mistake: {}", lower_first(result.description())));
  }
  const pugi::xml_node element = document_.document_element();
  for (const pugi::xml_node node : document_.children()) {
    if (node != element) {
      fail(offset_of(node), "",
           fmt::format("expected one element \"{}\", found something beside it", root));
    }
  }
  if (element.name() != root) {
    fail(offset_of(element), "",
         fmt::format("expected the element \"{}\", found {}", root, in_quotes(element.name())));
  }
}

// pugixml ends a text at a zero byte, and reads UTF-16 as something else than it is.
void XmlFile::check_bytes(std::size_t max) const {
  if (text_.size() > max) {
    fail(0, "", fmt::format("expected at most {} MiB, found more", max >> 20U));
  }
  const auto is_control = [](unsigned char byte) {
    return byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
  };
  const auto* const control = std::find_if(text_.begin(), text_.end(), is_control);
  if (control != text_.end()) {
    fail(static_cast<std::size_t>(control - text_.begin()), "",
         fmt::format("expected text, found the byte {}", in_quotes({control, 1})));
  }
}

std::size_t XmlFile::offset_of(const pugi::xml_node& node) {
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(node.offset_debug(), 0));
}

// pugixml keeps no place for attributes, but the text between here and there is well formed.
std::size_t XmlFile::offset_of(const pugi::xml_node& node, std::size_t attribute) const {
  constexpr std::string_view kBlank = " \t\r\n";
  std::size_t at = text_.find_first_of(kBlank, offset_of(node));
  for (std::size_t index = 0;; ++index) {
    at = text_.find_first_not_of(kBlank, at);
    if (index == attribute || at == std::string_view::npos) {
      return std::min(at, text_.size());
    }
    const std::size_t open = text_.find_first_of("\"'", at);
    at = open == std::string_view::npos ? open : text_.find(text_[open], open + 1);
    at = at == std::string_view::npos ? at : at + 1;
  }
}

FilePlace XmlFile::place_of(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  if (offset < counted_) {
    counted_ = 0;
    line_ = 1;
  }
  const std::string_view passed = text_.substr(counted_, offset - counted_);
  line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
  counted_ = offset;
  const std::size_t line_start = text_.substr(0, offset).rfind('\n') + 1;  // npos + 1 is 0.
  return {.line = line_, .column = static_cast<int>(offset - line_start + 1)};
}

void XmlFile::fail(std::size_t offset, std::string_view path, std::string_view message) const {
  const FilePlace place = place_of(offset);
  throw ConfigError(fmt::format("{}:{}:{}: {}{}{}", name_, place.line, place.column, path,
                                path.empty() ? "" : ": ", message));
}

void XmlFile::fail_value(std::size_t offset, std::string_view path, std::string_view expected,
                         std::string_view found) const {
  fail(offset, path, fmt::format("expected {}, found {}", expected, in_quotes(found)));
}

}  // namespace trainyard
