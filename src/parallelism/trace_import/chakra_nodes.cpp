// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/chakra_nodes.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "parallelism/trace_import/protobuf_reader.h"
#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

// Fields of Node.
enum NodeField : std::uint32_t {
  kId = 1,
  kName = 2,
  kType = 3,
  kControl = 4,
  kData = 5,
  kStart = 6,
  kDuration = 7,
  kInputs = 8,
  kOutputs = 9,
  kAttribute = 10,
  kStorage = 11,
};

std::vector<bool> bools_of(std::string_view text, const std::string& place) {
  ProtobufReader list(text, place);
  std::vector<bool> values;
  while (const std::optional<ProtobufField> field = list.next()) {
    if (field->wire == ProtobufWire::Bytes) {  // Packed.
      for (const char each : field->bytes) {
        values.push_back(each != '\0');
      }
    } else {
      values.push_back(field->value != 0);
    }
  }
  return values;
}

void check_wire(const ProtobufField& field, ProtobufWire wire, const std::string& place) {
  if (field.wire != wire) {
    fail_imported(place, fmt::format("field {}", field.number), "the wire type of the schema",
                  std::to_string(static_cast<int>(field.wire)));
  }
}

// A field of AttributeProto's oneof. Scalars have odd numbers, the list of each the next one.
ChakraValue value_of(const ProtobufField& field, const std::string& place) {
  const auto check = [&](ProtobufWire wire) { check_wire(field, wire, place); };
  switch (field.number) {
    case 3:
      check(ProtobufWire::Fixed64);
      return std::bit_cast<double>(field.value);
    case 5:
      check(ProtobufWire::Fixed32);
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(field.value)));
    case 7:  // int32, int64, uint32, uint64.
    case 9:
    case 11:
    case 13:
    case 27:  // bool.
      check(ProtobufWire::Varint);
      return static_cast<std::int64_t>(field.value);
    case 15:
    case 17:
      check(ProtobufWire::Varint);
      return protobuf_signed(field.value);
    case 19:
      check(ProtobufWire::Fixed32);
      return static_cast<std::int64_t>(field.value);
    case 23:
      check(ProtobufWire::Fixed32);
      return std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(field.value))};
    case 21:
    case 25:
      check(ProtobufWire::Fixed64);
      return static_cast<std::int64_t>(field.value);
    case 28:
      check(ProtobufWire::Bytes);
      return bools_of(field.bytes, place);
    case 29:
    case 31:
      check(ProtobufWire::Bytes);
      return std::string(field.bytes);
    default:
      if (field.number > 32) {
        fail_imported(place, "", "a field of the schema, 1 to 32", std::to_string(field.number));
      }
      check(ProtobufWire::Bytes);
      return std::monostate();
  }
}

void add_dependencies(const ProtobufField& field, const std::string& place,
                      std::vector<std::uint64_t>& list) {
  if (field.wire == ProtobufWire::Varint) {
    list.push_back(field.value);
    return;
  }
  if (field.wire != ProtobufWire::Bytes) {
    fail_imported(place, "dependencies", "numbers", "something else");
  }
  // Packed: numbers without a field number before them.
  ProtobufReader numbers(field.bytes, place);
  while (const std::optional<std::uint64_t> number = numbers.next_number()) {
    list.push_back(*number);
  }
}

// Field 1 of IOInfo.
std::string first_text(std::string_view message, const std::string& place) {
  ProtobufReader fields(message, place);
  std::string text;
  while (const std::optional<ProtobufField> field = fields.next()) {
    if (field->number == 1 && field->wire == ProtobufWire::Bytes) {
      text = std::string(field->bytes);
    }
  }
  return text;
}

void read_attribute(std::string_view message, const std::string& place, ChakraNode& node) {
  ProtobufReader fields(message, place);
  std::string name;
  ChakraValue value;
  while (const std::optional<ProtobufField> field = fields.next()) {
    if (field->number == 1) {
      name = std::string(field->bytes);
    } else if (field->number != 2) {
      value = value_of(*field, place + ": " + escaped(name));
    }
  }
  node.attributes.emplace_back(std::move(name), std::move(value));
}

void read_field(const ProtobufField& field, const std::string& place, ChakraPart part,
                ChakraNode& node) {
  const auto check = [&](ProtobufWire wire) { check_wire(field, wire, place); };
  switch (field.number) {
    case kName:
      check(ProtobufWire::Bytes);
      node.name = std::string(field.bytes);
      return;
    case kControl:
    case kData:
      add_dependencies(field, place, node.dependencies);
      return;
    case kInputs:
      check(ProtobufWire::Bytes);
      node.inputs = first_text(field.bytes, place);
      return;
    case kOutputs:
    case kStorage:
      check(ProtobufWire::Bytes);
      return;
    case kAttribute:
      check(ProtobufWire::Bytes);
      if (part == ChakraPart::Whole) {
        read_attribute(field.bytes, place, node);
      }
      return;
    default:
      break;
  }
  if (field.number > kStorage) {
    fail_imported(place, "", "a field of the schema, 1 to 11", std::to_string(field.number));
  }
  check(ProtobufWire::Varint);
  if (field.number == kId) {
    node.id = field.value;
  } else if (field.number == kType) {
    constexpr std::uint64_t kMaxType = 7;
    if (field.value > kMaxType) {
      fail_imported(place, "type", "a node of metadata, memory, computation or communication",
                    std::to_string(field.value));
    }
    node.type = static_cast<ChakraType>(field.value);
  } else {
    (field.number == kStart ? node.start_micros : node.duration_micros) = field.value;
  }
}

ChakraNode read_node(std::string_view message, std::string_view file, const std::string& place,
                     ChakraPart part) {
  ChakraNode node;
  node.file = file;
  ProtobufReader fields(message, place);
  while (const std::optional<ProtobufField> field = fields.next()) {
    read_field(*field, place, part, node);
  }
  return node;
}

void check_metadata(std::string_view message, const std::string& file) {
  const std::string place = file + ": GlobalMetadata";
  ProtobufReader fields(message, place);
  while (const std::optional<ProtobufField> field = fields.next()) {
    if (field->number > 2 || field->wire != ProtobufWire::Bytes) {
      fail_imported(file, "", "GlobalMetadata as the first message",
                    fmt::format("field {}", field->number));
    }
  }
}

}  // namespace

std::string ChakraNode::place() const {
  return fmt::format("{}: node {} ({})", file, id, shortened(name));
}

const ChakraValue* ChakraNode::attribute(std::string_view key) const {
  const auto found = std::find_if(attributes.rbegin(), attributes.rend(),
                                  [&](const auto& each) { return each.first == key; });
  return found == attributes.rend() ? nullptr : &found->second;
}

std::int64_t ChakraNode::number(std::string_view key, std::int64_t max) const {
  const ChakraValue* const found = attribute(key);
  const std::int64_t* const value = found == nullptr ? nullptr : std::get_if<std::int64_t>(found);
  if (value == nullptr || *value < 0 || *value > max) {
    const std::string text = value != nullptr   ? std::to_string(*value)
                             : found == nullptr ? "none"
                                                : "something else";
    fail_imported(place(), key, fmt::format("a whole number from 0 to {}", max), text);
  }
  return *value;
}

std::int64_t ChakraNode::number_or(std::string_view key, std::int64_t max,
                                   std::int64_t otherwise) const {
  return has(key) ? number(key, max) : otherwise;
}

std::string ChakraNode::text_or_none(std::string_view key) const {
  const ChakraValue* const found = attribute(key);
  if (found == nullptr) {
    return "";
  }
  const std::string* const text = std::get_if<std::string>(found);
  if (text == nullptr) {
    fail_imported(place(), key, "a text", "something else");
  }
  return *text;
}

std::vector<ChakraNode> read_chakra_nodes(const ImportedFile& file, ChakraPart part) {
  ProtobufReader messages(file.text, file.name);
  const std::optional<std::string_view> metadata = messages.next_message();
  if (!metadata) {
    fail_imported(file.name, "", "GlobalMetadata", "the end of the file");
  }
  check_metadata(*metadata, file.name);
  std::vector<ChakraNode> nodes;
  std::string place;
  std::size_t count = 0;
  while (const std::optional<std::string_view> message = messages.next_message()) {
    place.clear();
    fmt::format_to(std::back_inserter(place), "{}: message {}", file.name, ++count);
    ChakraNode node = read_node(*message, file.name, place, part);
    if (part == ChakraPart::Whole || node.type == ChakraType::Metadata) {
      nodes.push_back(std::move(node));
    }
  }
  if (count == 0) {
    fail_imported(file.name, "", "nodes", "none");
  }
  return nodes;
}

}  // namespace trainyard
