// SPDX-License-Identifier: Apache-2.0
// Messages of protocol buffers (protobuf.dev/programming-guides/encoding), field by field by the
// protobuf library: no code is generated, so that damage is found at its byte and fields that later
// schemas add can be named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard {

enum class ProtobufWire : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct ProtobufField {
  std::uint32_t number = 0;
  ProtobufWire wire = ProtobufWire::Varint;
  std::uint64_t value = 0;      // But of Bytes.
  std::string_view bytes = {};  // Content of Bytes.
};

// A message. Its text and place must outlive the reader. Throws ConfigError "PLACE: ..." for what
// ends too early, for groups, and for numbers that are none.
class ProtobufReader {
 public:
  ProtobufReader(std::string_view text, std::string_view place) : text_(text), place_(place) {}

  // Returns nothing at the end.
  [[nodiscard]] std::optional<ProtobufField> next();
  // The bytes of a message whose length stands before it, as in files with many. Nothing at the
  // end.
  [[nodiscard]] std::optional<std::string_view> next_message();
  // The next one of packed numbers. Nothing at the end.
  [[nodiscard]] std::optional<std::uint64_t> next_number();

 private:
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const;
  std::uint64_t varint();
  std::string_view take(std::uint64_t bytes);

  std::string_view text_;
  std::string_view place_;
  std::size_t at_ = 0;
};

// Returns the value of sint32 and sint64.
[[nodiscard]] std::int64_t protobuf_signed(std::uint64_t value);

}  // namespace trainyard
