// SPDX-License-Identifier: Apache-2.0
#include "parallelism/protobuf_reader.h"

#include <spdlog/fmt/fmt.h>

#include "parallelism/foreign_text.h"

namespace trainyard {

void ProtobufReader::fail(std::string_view expected, std::string_view found) const {
  fail_foreign(fmt::format("{}: byte {}", place_, at_), "", expected, found);
}

std::uint64_t ProtobufReader::varint() {
  constexpr unsigned kMostBits = 64;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < kMostBits; shift += 7) {
    if (at_ == text_.size()) {
      fail("a number", "the end of the message");
    }
    const auto byte = static_cast<unsigned char>(text_[at_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) {
      return value;
    }
  }
  fail("a number of at most 64 bits", "a longer one");
}

std::string_view ProtobufReader::take(std::uint64_t bytes) {
  if (bytes > text_.size() - at_) {
    fail(fmt::format("{} bytes", bytes), fmt::format("{} to the end", text_.size() - at_));
  }
  const std::string_view taken = text_.substr(at_, static_cast<std::size_t>(bytes));
  at_ += static_cast<std::size_t>(bytes);
  return taken;
}

std::uint64_t ProtobufReader::fixed(std::size_t bytes) {
  const std::string_view taken = take(bytes);
  std::uint64_t value = 0;
  for (std::size_t index = bytes; index-- > 0;) {
    value = (value << 8U) | static_cast<unsigned char>(taken[index]);
  }
  return value;
}

std::optional<ProtobufField> ProtobufReader::next() {
  if (at_ == text_.size()) {
    return std::nullopt;
  }
  const std::uint64_t key = varint();
  constexpr std::uint64_t kMostNumber = (std::uint64_t{1} << 29U) - 1;
  ProtobufField field;
  if ((key >> 3U) == 0 || (key >> 3U) > kMostNumber) {
    fail("the number of a field", std::to_string(key >> 3U));
  }
  field.number = static_cast<std::uint32_t>(key >> 3U);
  switch (key & 7U) {
    case 0:
      field.value = varint();
      return field;
    case 1:
      field.wire = ProtobufWire::Fixed64;
      field.value = fixed(8);
      return field;
    case 2:
      field.wire = ProtobufWire::Bytes;
      field.bytes = take(varint());
      return field;
    case 5:
      field.wire = ProtobufWire::Fixed32;
      field.value = fixed(4);
      return field;
    default:
      fail("a wire type of 0, 1, 2 or 5", std::to_string(key & 7U));
  }
}

std::optional<std::string_view> ProtobufReader::next_message() {
  if (at_ == text_.size()) {
    return std::nullopt;
  }
  return take(varint());
}

}  // namespace trainyard
