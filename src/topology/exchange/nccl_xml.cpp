// SPDX-License-Identifier: Apache-2.0
// The tables of nccl_xml_schema.h decide what is accepted, suggested for a misspelt name and
// written.
#include "topology/exchange/nccl_xml.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <pugixml.hpp>

#include "sim/config.h"
#include "sim/printable.h"
#include "topology/exchange/nccl_xml_schema.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxXmlBytes = std::size_t{2} << 20;

// --- Reading -----------------------------------------------------------------------------------

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";

bool fits(std::string_view text, XmlForm form) {
  switch (form) {
    case XmlForm::Text:
      return true;
    case XmlForm::Hex:
      return text.starts_with("0x") && text.size() > 2 &&
             text.find_first_not_of(kHexDigits, 2) == std::string_view::npos;
    case XmlForm::Number:
      return fits(text, XmlForm::Hex) ||
             (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos);
    case XmlForm::BusId:
      // The separators too may be missing or elsewhere: "fffffff:ffff:ff" is what some hypervisors
      // show.
      return !text.empty() &&
             text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  }
  return false;
}

std::string_view expectation(XmlForm form) {
  switch (form) {
    case XmlForm::Text:
      return "text";
    case XmlForm::Hex:
      return "a hexadecimal number such as 0x068000";
    case XmlForm::Number:
      return "a number such as 0x1c34da or 12";
    case XmlForm::BusId:
      return "a bus id such as 0000:07:00.0";
  }
  return "";
}

struct Names {
  std::vector<std::string> attributes = {};
  std::vector<std::string> children = {};
};

template <typename Element>
Names names_of(const Element& element) {
  Names names;
  XmlSchema<Element>::attributes(element, [&](std::string_view name, const auto&, const auto&) {
    names.attributes.emplace_back(name);
  });
  XmlSchema<Element>::children(
      element, [&](std::string_view name, const auto&) { names.children.emplace_back(name); });
  return names;
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string hint(std::string_view word, const std::vector<std::string>& known) {
  return did_you_mean(word, known,
                      known.empty() ? "" : fmt::format("; known: {}", fmt::join(known, ", ")));
}

// An attribute of the file.
struct Found {
  std::string_view name;
  std::string_view text;
  std::string path;
  std::size_t offset = 0;
};

class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& name)
      : file_(text, name, kMaxXmlBytes, "system") {}

  NcclSystem read() {
    NcclSystem system;
    read_element(file_.root(), "system", system);
    return system;
  }

 private:
  template <typename Element>
  void read_element(const pugi::xml_node& node, const std::string& path, Element& element) {
    if (++elements_ > kMaxXmlElements) {
      file_.fail(node, path,
                 fmt::format("expected at most {} elements, as NCCL reads them, found more",
                             kMaxXmlElements));
    }
    element.place = file_.place_of(node);
    const Names names = names_of(element);
    const std::vector<Found> found = find_attributes(node, path, names.attributes);
    XmlSchema<Element>::attributes(
        element, [&](std::string_view name, auto& value, const auto& limits) {
          const auto entry = std::find_if(found.begin(), found.end(),
                                          [&](const Found& each) { return each.name == name; });
          if (entry != found.end()) {
            read_value(*entry, limits, value);
          } else if (!requires { value.has_value(); }) {  // It may be absent if it is an optional.
            file_.fail(node, path, fmt::format("missing attribute \"{}\"", name));
          }
        });
    read_children(node, path, names.children, element);
  }

  template <typename Element>
  void read_children(const pugi::xml_node& node, const std::string& path,
                     const std::vector<std::string>& known, Element& element) {
    for (const pugi::xml_node child : node.children()) {
      const std::string_view child_name = child.name();
      if (child.type() != pugi::node_element) {
        file_.fail(child, path,
                   fmt::format("expected elements only, found {}", in_quotes(child.value())));
      }
      if (!contains(known, child_name)) {
        file_.fail(
            child, path,
            fmt::format("unknown element {}{}", in_quotes(child_name), hint(child_name, known)));
      }
      XmlSchema<Element>::children(element, [&](std::string_view name, auto& list) {
        if (name == child_name) {
          const std::string child_path = fmt::format("{}.{}[{}]", path, name, list.size());
          read_element(child, child_path, list.emplace_back());
        }
      });
    }
  }

  // The attributes of an element, all of them known and each there once.
  [[nodiscard]] std::vector<Found> find_attributes(const pugi::xml_node& node,
                                                   const std::string& path,
                                                   const std::vector<std::string>& known) const {
    std::vector<Found> found;
    for (const pugi::xml_attribute attribute : node.attributes()) {
      const Found entry = {.name = attribute.name(),
                           .text = attribute.value(),
                           .path = path + '.' + attribute.name(),
                           .offset = file_.offset_of(node, found.size())};
      if (!contains(known, entry.name)) {
        file_.fail(
            entry.offset, path,
            fmt::format("unknown attribute {}{}", in_quotes(entry.name), hint(entry.name, known)));
      }
      if (std::any_of(found.begin(), found.end(),
                      [&](const Found& other) { return other.name == entry.name; })) {
        file_.fail(entry.offset, path,
                   fmt::format("the attribute {} is given twice", in_quotes(entry.name)));
      }
      check_text(entry);
      found.push_back(entry);
    }
    return found;
  }

  void check_text(const Found& found) const {
    if (found.text.size() > kMaxXmlCharacters) {
      file_.fail(found.offset, found.path,
                 fmt::format("expected at most {} characters, as NCCL reads them, found {}",
                             kMaxXmlCharacters, found.text.size()));
    }
    const auto is_odd = [](char letter) { return letter < ' ' || letter > '~'; };
    if (std::any_of(found.text.begin(), found.text.end(), is_odd)) {
      fail_value(found, "printable ASCII");
    }
  }

  template <typename Limits, typename Value>
  void read_value(const Found& found, const Limits& limits, std::optional<Value>& value) const {
    read_value(found, limits, value.emplace());
  }

  void read_value(const Found& found, XmlForm form, std::string& value) const {
    if (!fits(found.text, form)) {
      fail_value(found, expectation(form));
    }
    value = found.text;
  }

  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void read_value(const Found& found, XmlRange range, Number& value) const {
    const std::string_view noun = std::is_integral_v<Number> ? "whole number" : "number";
    const char* end = found.text.data() + found.text.size();
    const auto result = std::from_chars(found.text.data(), end, value);
    const bool is_number = result.ec == std::errc() && result.ptr == end;
    if (!is_number || !(value >= range.min && value <= range.max)) {  // NaN is refused too.
      fail_value(found, range.max == kXmlUnbounded
                            ? fmt::format("a {} of at least {}", noun, range.min)
                            : fmt::format("a {} from {} to {}", noun, range.min, range.max));
    }
  }

  [[noreturn]] void fail_value(const Found& found, std::string_view expected) const {
    file_.fail_value(found.offset, found.path, expected, found.text);
  }

  XmlFile file_;
  std::size_t elements_ = 0;
};

// --- Writing -----------------------------------------------------------------------------------

struct XmlEntity {
  char letter;
  std::string_view text;
};
constexpr std::array kEntities = {XmlEntity{'&', "&amp;"}, XmlEntity{'<', "&lt;"},
                                  XmlEntity{'>', "&gt;"}, XmlEntity{'"', "&quot;"}};

std::string xml_text(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    const auto entity = std::ranges::find(kEntities, letter, &XmlEntity::letter);
    if (entity == kEntities.end()) {
      result += letter;
    } else {
      result += entity->text;
    }
  }
  return result;
}

std::string xml_text(int number) {
  return std::to_string(number);
}

std::string xml_text(double number) {
  return fmt::format("{:f}", number);
}

class XmlWriter {
 public:
  template <typename Element>
  void write(std::string_view name, const Element& element, std::size_t level) {
    const std::string indent(2 * level, ' ');
    text_ += fmt::format("{}<{}", indent, name);
    XmlSchema<Element>::attributes(element, [&](std::string_view key, const auto& value,
                                                const auto&) { write_attribute(key, value); });
    text_ += '>';
    const std::size_t end = text_.size();
    XmlSchema<Element>::children(element, [&](std::string_view child_name, const auto& list) {
      for (const auto& child : list) {
        text_ += end == text_.size() ? "\n" : "";
        write(child_name, child, level + 1);
      }
    });
    if (text_.size() == end) {
      text_.replace(end - 1, 1, "/>\n");
    } else {
      text_ += fmt::format("{}</{}>\n", indent, name);
    }
  }

  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  template <typename Value>
  void write_attribute(std::string_view key, const std::optional<Value>& value) {
    if (value) {
      write_attribute(key, *value);
    }
  }
  template <typename Value>
  void write_attribute(std::string_view key, const Value& value) {
    text_ += fmt::format(" {}=\"{}\"", key, xml_text(value));
  }

  std::string text_;
};

template <typename Element>
std::size_t count_elements(const Element& element) {
  std::size_t count = 1;
  XmlSchema<Element>::children(element, [&](std::string_view, const auto& list) {
    for (const auto& child : list) {
      count += count_elements(child);
    }
  });
  return count;
}

}  // namespace

NcclSystem read_nccl_xml(std::string_view text, const std::string& name) {
  return XmlReader(text, name).read();
}

std::string write_nccl_xml(const NcclSystem& system) {
  XmlWriter writer;
  writer.write("system", system, 0);
  return std::move(writer).text();
}

std::size_t element_count(const NcclSystem& system) {
  return count_elements(system);
}

}  // namespace trainyard
