// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/protobuf_reader.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <spdlog/fmt/fmt.h>

#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

}  // namespace

void ProtobufReader::fail(std::string_view expected, std::string_view found) const {
  fail_imported(fmt::format("{}: byte {}", place_, at_), "", expected, found);
}

std::uint64_t ProtobufReader::varint() {
  constexpr std::size_t kMaxBytes = 10;  // Bytes of 64 bits, 7 in each.
  const std::string_view rest = text_.substr(at_, kMaxBytes);
  CodedInputStream stream(bytes_of(rest), static_cast<int>(rest.size()));
  std::uint64_t value = 0;
  if (!stream.ReadVarint64(&value)) {
    at_ += rest.size();
    if (rest.size() < kMaxBytes) {
      fail("a number", "the end of the message");
    }
    fail("a number of at most 64 bits", "a longer one");
  }
  at_ += static_cast<std::size_t>(stream.CurrentPosition());
  return value;
}

std::string_view ProtobufReader::take(std::uint64_t bytes) {
  if (bytes > text_.size() - at_) {
    fail(fmt::format("{} bytes", bytes), fmt::format("{} to the end", text_.size() - at_));
  }
  const std::string_view taken = text_.substr(at_, static_cast<std::size_t>(bytes));
  at_ += static_cast<std::size_t>(bytes);
  return taken;
}

std::optional<ProtobufField> ProtobufReader::next() {
  if (at_ == text_.size()) {
    return std::nullopt;
  }
  const std::uint64_t tag = varint();
  const std::uint64_t number = tag >> WireFormatLite::kTagTypeBits;
  constexpr std::uint64_t kMaxNumber = (std::uint64_t{1} << 29U) - 1;
  if (number == 0 || number > kMaxNumber) {
    fail("the number of a field", std::to_string(number));
  }
  ProtobufField field;
  field.number = static_cast<std::uint32_t>(number);
  const auto wire = WireFormatLite::GetTagWireType(static_cast<std::uint32_t>(tag));
  switch (wire) {
    case WireFormatLite::WIRETYPE_VARINT:
      field.value = varint();
      return field;
    case WireFormatLite::WIRETYPE_FIXED64:
      field.wire = ProtobufWire::Fixed64;
      CodedInputStream::ReadLittleEndian64FromArray(bytes_of(take(8)), &field.value);
      return field;
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      field.wire = ProtobufWire::Bytes;
      field.bytes = take(varint());
      return field;
    case WireFormatLite::WIRETYPE_FIXED32: {
      std::uint32_t value = 0;
      field.wire = ProtobufWire::Fixed32;
      CodedInputStream::ReadLittleEndian32FromArray(bytes_of(take(4)), &value);
      field.value = value;
      return field;
    }
    default:
      fail("a wire type of 0, 1, 2 or 5", std::to_string(static_cast<int>(wire)));
  }
}

std::optional<std::uint64_t> ProtobufReader::next_number() {
  return at_ == text_.size() ? std::nullopt : std::optional(varint());
}

std::optional<std::string_view> ProtobufReader::next_message() {
  if (at_ == text_.size()) {
    return std::nullopt;
  }
  return take(varint());
}

std::int64_t protobuf_signed(std::uint64_t value) {
  return WireFormatLite::ZigZagDecode64(value);
}

}  // namespace trainyard
