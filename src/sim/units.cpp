// SPDX-License-Identifier: Apache-2.0
// Exact arithmetic and text for quantities. Text is read as decimal digits into 128-bit integers;
// floating point appears only in FlopRate and in Bandwidth::scaled.
#include "sim/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "sim/printable.h"

namespace trainyard {

namespace {

// __extension__: the type is no ISO C++, but both compilers have it on every 64-bit machine.
__extension__ using Uint128 = unsigned __int128;

struct Unit {
  std::string_view name;
  std::int64_t factor;  // In base units.
};

// The name and the form of a kind of quantity.
struct Kind {
  std::string_view noun;
  std::string_view example;        // With its quotes.
  std::string_view positive_noun;  // For the error about a negative value.
  std::span<const Unit> units;
  std::int64_t max;
  std::string_view max_text;
};

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

// Largest first, as to_string needs them.
constexpr std::array<Unit, 5> kTimeUnits = {
    {{"s", 1'000'000'000'000}, {"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1'000}, {"ps", 1}}};
constexpr std::array<Unit, 9> kByteUnits = {{{"TiB", std::int64_t{1} << 40},
                                             {"GiB", std::int64_t{1} << 30},
                                             {"MiB", std::int64_t{1} << 20},
                                             {"KiB", std::int64_t{1} << 10},
                                             {"TB", 1'000'000'000'000},
                                             {"GB", 1'000'000'000},
                                             {"MB", 1'000'000},
                                             {"KB", 1'000},
                                             {"B", 1}}};
constexpr std::array<Unit, 10> kBandwidthUnits = {{{"Tb/s", 1'000'000'000'000},
                                                   {"Gb/s", 1'000'000'000},
                                                   {"Mb/s", 1'000'000},
                                                   {"kb/s", 1'000},
                                                   {"b/s", 1},
                                                   {"TB/s", 8'000'000'000'000},
                                                   {"GB/s", 8'000'000'000},
                                                   {"MB/s", 8'000'000},
                                                   {"kB/s", 8'000},
                                                   {"B/s", 8}}};
constexpr std::array<Unit, 4> kFlopRateUnits = {{{"PFLOP/s", 1'000'000'000'000'000},
                                                 {"TFLOP/s", 1'000'000'000'000},
                                                 {"GFLOP/s", 1'000'000'000},
                                                 {"FLOP/s", 1}}};
// The suffixes of nccl-tests, which takes both cases.
constexpr std::array<Unit, 8> kSuffixes = {{{"T", std::int64_t{1} << 40},
                                            {"G", std::int64_t{1} << 30},
                                            {"M", std::int64_t{1} << 20},
                                            {"K", std::int64_t{1} << 10},
                                            {"t", std::int64_t{1} << 40},
                                            {"g", std::int64_t{1} << 30},
                                            {"m", std::int64_t{1} << 20},
                                            {"k", std::int64_t{1} << 10}}};

constexpr Kind kTime = {.noun = "a time",
                        .example = R"("130 ns")",
                        .positive_noun = "a time of zero or more",
                        .units = kTimeUnits,
                        .max = kInt64Max,
                        .max_text = "9223372 s"};
constexpr Kind kBytes = {.noun = "a size",
                         .example = R"("25 MiB")",
                         .positive_noun = "a size of zero or more",
                         .units = kByteUnits,
                         .max = kInt64Max,
                         .max_text = "9223372 TB"};
constexpr Kind kMessageSize = {.noun = "a size",
                               .example = R"("25 MiB", "32K" or "8")",
                               .positive_noun = "a size of zero or more",
                               .units = kByteUnits,
                               .max = kInt64Max,
                               .max_text = "9223372 TB"};
constexpr Kind kBandwidth = {.noun = "a rate",
                             .example = R"("400 Gb/s")",
                             .positive_noun = "a positive rate",
                             .units = kBandwidthUnits,
                             .max = kMaxBandwidth.bits_per_second(),
                             .max_text = "100 Tb/s"};
constexpr Kind kFlopRate = {.noun = "a rate",
                            .example = R"("989 TFLOP/s")",
                            .positive_noun = "a positive rate",
                            .units = kFlopRateUnits,
                            .max = kInt64Max,
                            .max_text = "9223 PFLOP/s"};

// Limit of decimals: more than any quantity needs, and few enough that digits times factor fit 128
// bits: 2 x 10^24 x 8 x 10^12 < 2^127.
constexpr std::size_t kMaxDecimals = 24;

// "12.5 us" in its parts: whole "12", decimals "5", unit "us".
struct Parts {
  std::string_view whole;
  std::string_view decimals;
  std::string_view unit;
};

[[noreturn]] void refuse(std::string_view expected, std::string_view text) {
  throw UnitError("expected " + std::string(expected) + ", found " + in_quotes(text));
}

[[noreturn]] void refuse_form(const Kind& kind, std::string_view text) {
  refuse(std::string(kind.noun) + " such as " + std::string(kind.example), text);
}

[[noreturn]] void refuse_unit(const Kind& kind, std::string_view text) {
  std::string units;
  for (const Unit& unit : kind.units) {
    units += (units.empty() ? "" : ", ") + std::string(unit.name);
  }
  refuse(std::string(kind.noun) + " such as " + std::string(kind.example) + " (in " + units + ')',
         text);
}

[[noreturn]] void refuse_size(const Kind& kind, std::string_view text) {
  refuse(std::string(kind.noun) + " of at most " + std::string(kind.max_text), text);
}

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// Takes the digits at the front off `text`.
std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

Parts split(const Kind& kind, std::string_view text) {
  if (text.size() > 1 && text[0] == '-' && is_digit(text[1])) {
    refuse(std::string(kind.positive_noun) + " such as " + std::string(kind.example), text);
  }
  Parts parts;
  std::string_view rest = text;
  parts.whole = take_digits(rest);
  if (parts.whole.empty()) {
    refuse_form(kind, text);
  }
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    parts.decimals = take_digits(rest);
    if (parts.decimals.empty()) {
      refuse_form(kind, text);
    }
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  parts.unit = rest;
  return parts;
}

std::optional<std::int64_t> find_factor(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) {
      return unit.factor;
    }
  }
  return std::nullopt;
}

// The factor of the unit in `text`; "0" needs none.
std::int64_t unit_factor(const Kind& kind, const Parts& parts, std::string_view text) {
  if (text == "0") {
    return 1;
  }
  if (parts.unit.empty()) {
    refuse_form(kind, text);
  }
  const std::optional<std::int64_t> factor = find_factor(kind.units, parts.unit);
  if (!factor) {
    refuse_unit(kind, text);
  }
  return *factor;
}

// whole.decimals x factor to the nearest integer, halves up; nothing if it is above `most`.
std::optional<std::int64_t> scale(const Parts& parts, std::int64_t factor, std::int64_t max) {
  const auto unsigned_factor = static_cast<Uint128>(factor);
  const auto limit = static_cast<Uint128>(max);
  Uint128 whole = 0;
  for (const char digit : parts.whole) {
    whole = whole * 10 + static_cast<Uint128>(digit - '0');
    if (whole > limit) {
      return std::nullopt;
    }
  }
  Uint128 decimals = 0;
  Uint128 divisor = 1;
  for (const char digit : parts.decimals) {
    decimals = decimals * 10 + static_cast<Uint128>(digit - '0');
    divisor *= 10;
  }
  const Uint128 fraction = (2 * decimals * unsigned_factor + divisor) / (2 * divisor);
  const Uint128 value = whole * unsigned_factor + fraction;
  if (value > limit) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

std::int64_t to_base_units(const Kind& kind, const Parts& parts, std::int64_t factor,
                           std::string_view text) {
  if (parts.decimals.size() > kMaxDecimals) {
    refuse("at most " + std::to_string(kMaxDecimals) + " decimals", text);
  }
  const std::optional<std::int64_t> value = scale(parts, factor, kind.max);
  if (!value) {
    refuse_size(kind, text);
  }
  return *value;
}

std::int64_t parse_exact(const Kind& kind, std::string_view text) {
  const Parts parts = split(kind, text);
  return to_base_units(kind, parts, unit_factor(kind, parts, text), text);
}

// Rounds to the nearest byte, but refuses half of a byte in so many words.
Bytes to_bytes(const Kind& kind, const Parts& parts, std::int64_t factor, std::string_view text) {
  if (factor == 1 && parts.decimals.find_first_not_of('0') != std::string_view::npos) {
    refuse("a whole number of bytes", text);
  }
  return Bytes(to_base_units(kind, parts, factor, text));
}

// `magnitude` in `unit`, if that takes at most three decimals.
std::optional<std::string> format_in(std::uint64_t magnitude, const Unit& unit) {
  const auto factor = static_cast<std::uint64_t>(unit.factor);
  const Uint128 thousandths = static_cast<Uint128>(magnitude % factor) * 1000;
  if (thousandths % factor != 0) {
    return std::nullopt;
  }
  std::string text = std::to_string(magnitude / factor);
  if (thousandths != 0) {
    std::string decimals = std::to_string(static_cast<std::uint64_t>(thousandths / factor));
    decimals.insert(0, 3 - decimals.size(), '0');
    decimals.erase(decimals.find_last_not_of('0') + 1);
    text += '.' + decimals;
  }
  return text + std::string(unit.name);
}

// Formats in the largest of `units` that is not above the value and takes at most three decimals;
// `units` go from large to small and end with the base unit. Zero is written in the base unit.
std::string format(std::int64_t value, std::span<const Unit> units) {
  const std::uint64_t magnitude =
      value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  const std::string sign = value < 0 ? "-" : "";
  for (const Unit& unit : units) {
    if (magnitude < static_cast<std::uint64_t>(unit.factor)) {
      continue;
    }
    if (const std::optional<std::string> text = format_in(magnitude, unit)) {
      return sign + *text;
    }
  }
  return sign + std::to_string(magnitude) + std::string(units.back().name);
}

}  // namespace

SimTime transfer_time(Bytes size, Bandwidth rate) {
  CHECK(size.count() >= 0, "transfer_time of a negative size");
  CHECK(rate.bits_per_second() > 0, "transfer_time at a rate that is not positive");
  constexpr Uint128 kPicosecondsPerSecond = 1'000'000'000'000;
  const Uint128 bits = static_cast<Uint128>(size.count()) * 8;
  const auto divisor = static_cast<Uint128>(rate.bits_per_second());
  const Uint128 time_ps = (bits * kPicosecondsPerSecond + divisor - 1) / divisor;
  CHECK(time_ps <= static_cast<Uint128>(kInt64Max), "transfer_time above SimTime::max()");
  return SimTime(static_cast<std::int64_t>(time_ps));
}

Bandwidth Bandwidth::scaled(double factor) const {
  const double bits_per_second = static_cast<double>(bits_per_second_) * factor;
  CHECK(bits_per_second >= 0.0, "Bandwidth scaled to a negative rate or by no number");
  CHECK(bits_per_second < 0x1p63, "Bandwidth overflow");
  return Bandwidth(static_cast<std::int64_t>(std::llround(bits_per_second)));
}

SimTime parse_time(std::string_view text) {
  return SimTime(parse_exact(kTime, text));
}

Bytes parse_bytes(std::string_view text) {
  const Parts parts = split(kBytes, text);
  return to_bytes(kBytes, parts, unit_factor(kBytes, parts, text), text);
}

Bandwidth parse_bandwidth(std::string_view text) {
  return Bandwidth(parse_exact(kBandwidth, text));
}

FlopRate parse_flop_rate(std::string_view text) {
  const Parts parts = split(kFlopRate, text);
  const std::int64_t factor = unit_factor(kFlopRate, parts, text);
  const std::size_t length =
      parts.whole.size() + (parts.decimals.empty() ? 0 : 1 + parts.decimals.size());
  double number = 0.0;
  const auto result = std::from_chars(text.data(), text.data() + length, number);
  const double flops_per_second = number * static_cast<double>(factor);
  if (result.ec != std::errc() || flops_per_second > static_cast<double>(kFlopRate.max)) {
    refuse_size(kFlopRate, text);
  }
  return FlopRate(flops_per_second);
}

Bytes parse_message_size(std::string_view text) {
  const Parts parts = split(kMessageSize, text);
  const std::optional<std::int64_t> suffix = find_factor(kSuffixes, parts.unit);
  if (parts.unit.empty() && parts.decimals.empty()) {
    return to_bytes(kMessageSize, parts, 1, text);
  }
  return to_bytes(kMessageSize, parts, suffix ? *suffix : unit_factor(kMessageSize, parts, text),
                  text);
}

std::string to_string(SimTime time) {
  return format(time.picoseconds(), kTimeUnits);
}

// Sizes have two families of units; the shorter text wins ("1GB", not "976562.5KiB").
std::string to_string(Bytes size) {
  static constexpr std::array<Unit, 5> kBinary = {
      {kByteUnits[0], kByteUnits[1], kByteUnits[2], kByteUnits[3], kByteUnits[8]}};
  const std::string binary = format(size.count(), kBinary);
  const std::string decimal = format(size.count(), std::span(kByteUnits).subspan(4));
  return decimal.size() < binary.size() ? decimal : binary;
}

std::string to_string(Bandwidth rate) {
  return format(rate.bits_per_second(), std::span(kBandwidthUnits).first(5));
}

}  // namespace trainyard
