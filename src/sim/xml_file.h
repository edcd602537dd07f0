// SPDX-License-Identifier: Apache-2.0
// XML files of other programs. pugixml parses them, but forgives much (a second root, UTF-16, zero
// bytes) and keeps no lines: what readers need to be strict and to name the place of a mistake.
#pragma once

#include <cstddef>
#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace trainyard {

// The place of an element, both from 1; zero for one that was not read. Two places are always
// equal, so that elements compare by what they say.
struct FilePlace {
  int line = 0;
  int column = 0;
  [[nodiscard]] bool operator==(const FilePlace&) const { return true; }
};

class XmlFile {
 public:
  // `name` is that of the file in messages; both texts must outlive this. Throws ConfigError for
  // more than `max_bytes`, bytes that are not text, what is not XML, and anything but one element
  // `root` with its contents.
  XmlFile(std::string_view text, const std::string& name, std::size_t max_bytes,
          std::string_view root);

  [[nodiscard]] pugi::xml_node root() const { return document_.document_element(); }

  // Bytes from the beginning of the file to the name of the element.
  [[nodiscard]] static std::size_t offset_of(const pugi::xml_node& node);
  // The same for its attribute with this index.
  [[nodiscard]] std::size_t offset_of(const pugi::xml_node& node, std::size_t attribute) const;

  // Fast for offsets that rise from call to call.
  [[nodiscard]] FilePlace place_of(std::size_t offset) const;
  [[nodiscard]] FilePlace place_of(const pugi::xml_node& node) const {
    return place_of(offset_of(node));
  }

  // Throws ConfigError "name:line:column: path: message"; an empty path is left out.
  [[noreturn]] void fail(std::size_t offset, std::string_view path, std::string_view message) const;
  [[noreturn]] void fail(const pugi::xml_node& node, std::string_view path,
                         std::string_view message) const {
    fail(offset_of(node), path, message);
  }
  // Throws with the message "expected ..., found "..."".
  [[noreturn]] void fail_value(std::size_t offset, std::string_view path, std::string_view expected,
                               std::string_view found) const;

 private:
  void check_bytes(std::size_t max) const;

  std::string_view text_;
  const std::string& name_;
  pugi::xml_document document_;
  mutable std::size_t counted_ = 0;  // Up to here, line_ is known.
  mutable int line_ = 1;
};

}  // namespace trainyard
