// SPDX-License-Identifier: Apache-2.0
// Time, sizes and rates as types with an integer inside and named constructors.
//
// Size meets rate in one place, `transfer_time`, exact in 128 bits and rounded up once. There is no
// "time per byte" anywhere: as an integer it is 10 to 20 % wrong at NVLink rates.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/check.h"

namespace trainyard {

// Rounds up, of values from 0 on.
[[nodiscard]] constexpr std::int64_t ceil_divide(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

// Instants and durations alike, in picoseconds; 2^63 ps is 106 days. Overflow stops the program.
class SimTime {
 public:
  constexpr SimTime() = default;
  constexpr explicit SimTime(std::int64_t picoseconds) : picoseconds_(picoseconds) {}

  [[nodiscard]] static constexpr SimTime max() {
    return SimTime(std::numeric_limits<std::int64_t>::max());
  }
  [[nodiscard]] constexpr std::int64_t picoseconds() const { return picoseconds_; }
  // Serves models that calculate in floating point.
  [[nodiscard]] constexpr double real_picoseconds() const {
    return static_cast<double>(picoseconds_);
  }
  [[nodiscard]] constexpr double seconds() const {
    return static_cast<double>(picoseconds_) / 1e12;
  }
  [[nodiscard]] constexpr double microseconds() const {
    return static_cast<double>(picoseconds_) / 1e6;
  }

  friend constexpr auto operator<=>(SimTime, SimTime) = default;
  friend constexpr SimTime operator+(SimTime a, SimTime b) {
    std::int64_t sum = 0;
    CHECK(!__builtin_add_overflow(a.picoseconds_, b.picoseconds_, &sum), "SimTime overflow");
    return SimTime(sum);
  }
  friend constexpr SimTime operator-(SimTime a, SimTime b) {
    std::int64_t difference = 0;
    CHECK(!__builtin_sub_overflow(a.picoseconds_, b.picoseconds_, &difference), "SimTime overflow");
    return SimTime(difference);
  }
  friend constexpr SimTime operator*(SimTime a, std::int64_t factor) {
    std::int64_t product = 0;
    CHECK(!__builtin_mul_overflow(a.picoseconds_, factor, &product), "SimTime overflow");
    return SimTime(product);
  }
  friend constexpr double operator/(SimTime a, SimTime b) {
    return static_cast<double>(a.picoseconds_) / static_cast<double>(b.picoseconds_);
  }
  constexpr SimTime& operator+=(SimTime other) { return *this = *this + other; }

 private:
  std::int64_t picoseconds_ = 0;
};

[[nodiscard]] constexpr SimTime picoseconds(std::int64_t n) {
  return SimTime(n);
}
[[nodiscard]] constexpr SimTime nanoseconds(std::int64_t n) {
  return SimTime(1'000) * n;
}
[[nodiscard]] constexpr SimTime microseconds(std::int64_t n) {
  return SimTime(1'000'000) * n;
}
[[nodiscard]] constexpr SimTime milliseconds(std::int64_t n) {
  return SimTime(1'000'000'000) * n;
}
[[nodiscard]] constexpr SimTime seconds(std::int64_t n) {
  return SimTime(1'000'000'000'000) * n;
}

// A size. Signed, so that a difference is a number.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  [[nodiscard]] constexpr std::int64_t count() const { return count_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    std::int64_t sum = 0;
    CHECK(!__builtin_add_overflow(a.count_, b.count_, &sum), "Bytes overflow");
    return Bytes(sum);
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, std::int64_t factor) {
    std::int64_t product = 0;
    CHECK(!__builtin_mul_overflow(a.count_, factor, &product), "Bytes overflow");
    return Bytes(product);
  }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }

 private:
  std::int64_t count_ = 0;
};

[[nodiscard]] constexpr Bytes kib(std::int64_t n) {
  return Bytes(n * 1024);
}
[[nodiscard]] constexpr Bytes mib(std::int64_t n) {
  return Bytes(n * 1024 * 1024);
}
[[nodiscard]] constexpr Bytes gib(std::int64_t n) {
  return Bytes(n * 1024 * 1024 * 1024);
}
[[nodiscard]] constexpr double gibibytes(double bytes) {
  return bytes / static_cast<double>(gib(1).count());
}
[[nodiscard]] constexpr double gibibytes(Bytes size) {
  return gibibytes(static_cast<double>(size.count()));
}

// A rate in bits per second. At most kMaxBandwidth, so that sums of link rates stay exact.
class Bandwidth {
 public:
  constexpr Bandwidth() = default;
  constexpr explicit Bandwidth(std::int64_t bits_per_second) : bits_per_second_(bits_per_second) {}

  [[nodiscard]] constexpr std::int64_t bits_per_second() const { return bits_per_second_; }
  [[nodiscard]] constexpr double gigabytes_per_second() const {
    return static_cast<double>(bits_per_second_) / 8e9;
  }
  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;

  // The rate times a factor such as an efficiency or a lane count, rounded to the nearest bit/s.
  [[nodiscard]] Bandwidth scaled(double factor) const;

 private:
  std::int64_t bits_per_second_ = 0;
};

// 100 Tb/s: seven times the fastest GPU port announced (NVLink 6, 14.4 Tb/s per direction).
inline constexpr Bandwidth kMaxBandwidth{100'000'000'000'000};

[[nodiscard]] constexpr Bandwidth gigabits_per_second(std::int64_t n) {
  return Bandwidth(n * 1'000'000'000);
}
[[nodiscard]] constexpr Bandwidth gigabytes_per_second(std::int64_t n) {
  return Bandwidth(n * 8'000'000'000);
}

// The time that `size` takes at `rate`, rounded up to the next picosecond. `rate` must be positive.
[[nodiscard]] SimTime transfer_time(Bytes size, Bandwidth rate);

// A rate of arithmetic in FLOP/s. Floating point: these are measured quantities.
class FlopRate {
 public:
  constexpr FlopRate() = default;
  constexpr explicit FlopRate(double flops_per_second) : flops_per_second_(flops_per_second) {}
  [[nodiscard]] constexpr double flops_per_second() const { return flops_per_second_; }
  [[nodiscard]] constexpr double teraflops() const { return flops_per_second_ / 1e12; }
  friend constexpr auto operator<=>(FlopRate, FlopRate) = default;

 private:
  double flops_per_second_ = 0.0;
};

// A text that is no quantity of the wanted kind. what() names the accepted forms.
class UnitError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Text to quantity; a number without a unit is an error, except that 0 needs none. Blanks between
// number and unit are allowed. Decimal fractions are exact ("0.5us" is 500000 ps); a value that is
// not a whole number of the base unit (ps, bytes, bits/s) is rounded to the nearest.
//   time:      ps ns us ms s                               "3.5us", "130 ns"
//   bytes:     B KB MB GB TB KiB MiB GiB TiB               "25 MiB"
//   bandwidth: b/s kb/s Mb/s Gb/s Tb/s B/s kB/s MB/s GB/s TB/s   "400 Gb/s", "900 GB/s"
//   flop rate: FLOP/s GFLOP/s TFLOP/s PFLOP/s              "989 TFLOP/s"
[[nodiscard]] SimTime parse_time(std::string_view text);
[[nodiscard]] Bytes parse_bytes(std::string_view text);
[[nodiscard]] Bandwidth parse_bandwidth(std::string_view text);
[[nodiscard]] FlopRate parse_flop_rate(std::string_view text);

// The nccl-tests form of a size: a count of bytes with an optional K, M, G or T (powers of 1024),
// as its -b and -e options take it. "8", "4K", "1G"; "25MiB" and the like are taken too.
[[nodiscard]] Bytes parse_message_size(std::string_view text);

// The shortest exact text, in the largest unit that keeps at most three decimals: "1.5us", "64MiB",
// "400Gb/s".
[[nodiscard]] std::string to_string(SimTime time);
[[nodiscard]] std::string to_string(Bytes size);
[[nodiscard]] std::string to_string(Bandwidth rate);

namespace literals {
constexpr SimTime operator""_ps(unsigned long long n) {
  return picoseconds(static_cast<std::int64_t>(n));
}
constexpr SimTime operator""_ns(unsigned long long n) {
  return nanoseconds(static_cast<std::int64_t>(n));
}
constexpr SimTime operator""_us(unsigned long long n) {
  return microseconds(static_cast<std::int64_t>(n));
}
constexpr SimTime operator""_ms(unsigned long long n) {
  return milliseconds(static_cast<std::int64_t>(n));
}
constexpr SimTime operator""_s(unsigned long long n) {
  return seconds(static_cast<std::int64_t>(n));
}
constexpr Bytes operator""_B(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n));
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return kib(static_cast<std::int64_t>(n));
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return mib(static_cast<std::int64_t>(n));
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return gib(static_cast<std::int64_t>(n));
}
}  // namespace literals

}  // namespace trainyard
