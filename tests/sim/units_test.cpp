// SPDX-License-Identifier: Apache-2.0
// transfer_time against closed forms and against its own definition in 128 bits: the least t with
// t x rate >= bits x 10^12. Text against exact values, and back.
#include "support/catch.h"

#include "sim/units.h"

#include <random>
#include <string>
#include <vector>

namespace trainyard {
namespace {

using namespace literals;

__extension__ using Uint128 = unsigned __int128;

// A random number of random length, so that small and large values are equally likely.
std::int64_t random_value(std::mt19937_64& engine, int max_bits) {
  const auto bits = 1 + engine() % static_cast<std::uint64_t>(max_bits);
  return static_cast<std::int64_t>(engine() >> (64 - bits));
}

// The multiples of a unit that text with three decimals can hold.
std::int64_t random_decimal(std::mt19937_64& engine, std::int64_t unit) {
  const std::int64_t step = unit % 1000 == 0 ? unit / 1000 : 1;
  return static_cast<std::int64_t>(engine() % 9'000'000) * step;
}

std::string error_of_units(void (*parse)(std::string_view), std::string_view text) {
  try {
    parse(text);
  } catch (const UnitError& error) {
    return error.what();
  }
  return "no error";
}

std::string time_error(std::string_view text) {
  return error_of_units([](std::string_view t) { static_cast<void>(parse_time(t)); }, text);
}
std::string bytes_error(std::string_view text) {
  return error_of_units([](std::string_view t) { static_cast<void>(parse_bytes(t)); }, text);
}
std::string rate_error(std::string_view text) {
  return error_of_units([](std::string_view t) { static_cast<void>(parse_bandwidth(t)); }, text);
}
std::string flop_rate_error(std::string_view text) {
  return error_of_units([](std::string_view t) { static_cast<void>(parse_flop_rate(t)); }, text);
}
std::string message_size_error(std::string_view text) {
  return error_of_units([](std::string_view t) { static_cast<void>(parse_message_size(t)); }, text);
}

TEST_CASE("transfer_time equals the closed form") {
  REQUIRE(transfer_time(1_MiB, gigabits_per_second(400)) == 20'971'520_ps);
  REQUIRE(transfer_time(1_B, gigabits_per_second(400)) == 20_ps);
  REQUIRE(transfer_time(Bytes(900'000'000'000), gigabytes_per_second(900)) == 1_s);
  REQUIRE(transfer_time(Bytes(), gigabits_per_second(400)) == SimTime());
  REQUIRE(transfer_time(1_B, Bandwidth(1)) == 8_s);
}

TEST_CASE("transfer_time rounds up, once") {
  // 8 bits at 3 b/s are 2.66... s; 8 bits at 7.2 Tb/s are 1.11... ps.
  REQUIRE(transfer_time(1_B, Bandwidth(3)) == 2'666'666'666'667_ps);
  REQUIRE(transfer_time(1_B, gigabytes_per_second(900)) == 2_ps);
  REQUIRE(transfer_time(9_B, gigabytes_per_second(900)) == 10_ps);
  REQUIRE(transfer_time(1_B, kMaxBandwidth) == 1_ps);
}

TEST_CASE("transfer_time is the least whole time that suffices") {
  std::mt19937_64 engine(1);
  int compared = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t size = random_value(engine, 50);
    const std::int64_t rate = 1 + random_value(engine, 46);
    const Uint128 needed = static_cast<Uint128>(size) * 8 * 1'000'000'000'000U;
    if (needed / static_cast<Uint128>(rate) >= static_cast<Uint128>(1) << 62) {
      continue;  // Longer than a SimTime holds.
    }
    INFO("size " << size << " rate " << rate);
    const auto time =
        static_cast<Uint128>(transfer_time(Bytes(size), Bandwidth(rate)).picoseconds());
    REQUIRE(time * static_cast<Uint128>(rate) >= needed);
    REQUIRE((time == 0 || (time - 1) * static_cast<Uint128>(rate) < needed));
    ++compared;
  }
  REQUIRE(compared > 5'000);
}

TEST_CASE("a rate is scaled to the nearest bit per second") {
  REQUIRE(gigabits_per_second(400).scaled(0.5) == gigabits_per_second(200));
  REQUIRE(gigabits_per_second(64).scaled(128.0 / 130.0) == Bandwidth(63'015'384'615));
  REQUIRE(Bandwidth(3).scaled(0.5) == Bandwidth(2));
  REQUIRE(Bandwidth(7).scaled(0.0) == Bandwidth());
}

TEST_CASE("times are parsed exactly") {
  REQUIRE(parse_time("3.5us") == 3'500'000_ps);
  REQUIRE(parse_time("130 ns") == 130_ns);
  REQUIRE(parse_time("0.5us") == 500'000_ps);
  REQUIRE(parse_time("0.1s") == 100_ms);
  REQUIRE(parse_time("0") == SimTime());
  REQUIRE(parse_time("0 ns") == SimTime());
  REQUIRE(parse_time("007 ps") == 7_ps);
  REQUIRE(parse_time("1\tms") == 1_ms);
  REQUIRE(parse_time("9223372036854775807 ps") == SimTime::max());
  REQUIRE(parse_time("9223372.036854775807 s") == SimTime::max());
}

TEST_CASE("a value between two base units goes to the nearest, halves up") {
  REQUIRE(parse_time("1.4 ps") == 1_ps);
  REQUIRE(parse_time("1.5 ps") == 2_ps);
  REQUIRE(parse_time("0.0004 ns") == SimTime());
  REQUIRE(parse_time("0.000000000000499999999999 s") == SimTime());
  REQUIRE(parse_time("0.0000000000005 s") == 1_ps);
  REQUIRE(parse_bytes("0.3333 KiB") == 341_B);
}

TEST_CASE("there is no half of a byte") {
  for (const std::string text : {"1.5 B", "0.1B", "3.001 B"}) {
    const std::string message = "expected a whole number of bytes, found \"" + text + '"';
    REQUIRE_THROWS_WITH(parse_bytes(text), message);
    REQUIRE_THROWS_WITH(parse_message_size(text), message);
  }
  REQUIRE(parse_bytes("2.0 B") == 2_B);
  REQUIRE(parse_message_size("2.0B") == 2_B);
}

TEST_CASE("sizes know decimal and binary units") {
  REQUIRE(parse_bytes("25 MiB") == 25_MiB);
  REQUIRE(parse_bytes("25 MB") == Bytes(25'000'000));
  REQUIRE(parse_bytes("1.5KiB") == 1536_B);
  REQUIRE(parse_bytes("1KB") == 1000_B);
  REQUIRE(parse_bytes("80 GB") == Bytes(80'000'000'000));
  REQUIRE(parse_bytes("2 TiB") == gib(2048));
  REQUIRE(parse_bytes("1 TB") == Bytes(1'000'000'000'000));
  REQUIRE(parse_bytes("7 B") == 7_B);
  REQUIRE(parse_bytes("0") == Bytes());
}

TEST_CASE("rates know bits and bytes") {
  REQUIRE(parse_bandwidth("400 Gb/s") == gigabits_per_second(400));
  REQUIRE(parse_bandwidth("900 GB/s") == gigabytes_per_second(900));
  REQUIRE(parse_bandwidth("1.6Tb/s") == gigabits_per_second(1600));
  REQUIRE(parse_bandwidth("3 B/s") == Bandwidth(24));
  REQUIRE(parse_bandwidth("1 kB/s") == Bandwidth(8000));
  REQUIRE(parse_bandwidth("1 kb/s") == Bandwidth(1000));
  REQUIRE(parse_bandwidth("26.5625 Gb/s") == Bandwidth(26'562'500'000));
  REQUIRE(parse_bandwidth("100 Tb/s") == kMaxBandwidth);
}

TEST_CASE("rates of arithmetic are parsed") {
  REQUIRE(parse_flop_rate("989 TFLOP/s") == FlopRate(989e12));
  REQUIRE(parse_flop_rate("1.979 PFLOP/s") == FlopRate(1.979 * 1e15));
  REQUIRE(parse_flop_rate("67 GFLOP/s").teraflops() == Approx(0.067));
  REQUIRE(parse_flop_rate("0") == FlopRate());
}

TEST_CASE("message sizes are those of nccl-tests") {
  REQUIRE(parse_message_size("8") == 8_B);
  REQUIRE(parse_message_size("32K") == 32_KiB);
  REQUIRE(parse_message_size("32k") == 32_KiB);
  REQUIRE(parse_message_size("1G") == 1_GiB);
  REQUIRE(parse_message_size("0.5M") == 512_KiB);
  REQUIRE(parse_message_size("25MiB") == 25_MiB);
  REQUIRE(parse_message_size("25MB") == Bytes(25'000'000));
  REQUIRE(parse_message_size("0") == Bytes());
  REQUIRE(message_size_error("1.5") ==
          R"(expected a size such as "25 MiB", "32K" or "8", found "1.5")");
  REQUIRE(message_size_error("-8") ==
          R"(expected a size of zero or more such as "25 MiB", "32K" or "8", found "-8")");
  REQUIRE(message_size_error("9000000T") ==
          R"(expected a size of at most 9223372 TB, found "9000000T")");
}

TEST_CASE("text that is no quantity is refused") {
  const std::vector<std::string> texts = {
      "",      " ",      "ns",   "130",   "1.ns", ".5ns", "+1 ns", "1 ns ", " 1 ns", "1e3ns",
      "0x1ns", "1,5 ns", "1 NS", "1 n s", "0.0",  "00",   "nan",   "inf",   "- 1 ns"};
  for (const std::string& text : texts) {
    INFO(text);
    REQUIRE_THROWS_AS(parse_time(text), UnitError);
    REQUIRE_THROWS_AS(parse_bytes(text), UnitError);
    REQUIRE_THROWS_AS(parse_bandwidth(text), UnitError);
    REQUIRE_THROWS_AS(parse_flop_rate(text), UnitError);
  }
}

TEST_CASE("errors name the accepted forms") {
  REQUIRE(time_error("130") == R"(expected a time such as "130 ns", found "130")");
  REQUIRE(time_error("130 sec") ==
          R"(expected a time such as "130 ns" (in s, ms, us, ns, ps), found "130 sec")");
  REQUIRE(bytes_error("25") == R"(expected a size such as "25 MiB", found "25")");
  REQUIRE(bytes_error("25 Mb") == R"(expected a size such as "25 MiB" )"
                                  "(in TiB, GiB, MiB, KiB, TB, GB, MB, KB, B), "
                                  R"(found "25 Mb")");
  REQUIRE(rate_error("400") == R"(expected a rate such as "400 Gb/s", found "400")");
  REQUIRE(rate_error("400 Gbps") ==
          R"(expected a rate such as "400 Gb/s" )"
          "(in Tb/s, Gb/s, Mb/s, kb/s, b/s, TB/s, GB/s, MB/s, kB/s, B/s), "
          R"(found "400 Gbps")");
  REQUIRE(flop_rate_error("989") == R"(expected a rate such as "989 TFLOP/s", found "989")");
  REQUIRE(flop_rate_error("989 TFLOPS") ==
          R"(expected a rate such as "989 TFLOP/s" (in PFLOP/s, TFLOP/s, GFLOP/s, FLOP/s), )"
          R"(found "989 TFLOPS")");
}

TEST_CASE("negative and too large values are refused") {
  REQUIRE(time_error("-1 us") ==
          R"(expected a time of zero or more such as "130 ns", found "-1 us")");
  REQUIRE(bytes_error("-1 B") ==
          R"(expected a size of zero or more such as "25 MiB", found "-1 B")");
  REQUIRE(rate_error("-400 Gb/s") ==
          R"(expected a positive rate such as "400 Gb/s", found "-400 Gb/s")");
  REQUIRE(flop_rate_error("-1 TFLOP/s") ==
          R"(expected a positive rate such as "989 TFLOP/s", found "-1 TFLOP/s")");
  REQUIRE(time_error("9223372036854775808 ps") ==
          R"(expected a time of at most 9223372 s, found "9223372036854775808 ps")");
  REQUIRE(bytes_error("8388608 TiB") ==
          R"(expected a size of at most 9223372 TB, found "8388608 TiB")");
  REQUIRE(rate_error("100.000000000001 Tb/s") ==
          R"(expected a rate of at most 100 Tb/s, found "100.000000000001 Tb/s")");
  REQUIRE(flop_rate_error("10000 PFLOP/s") ==
          R"(expected a rate of at most 9223 PFLOP/s, found "10000 PFLOP/s")");
}

TEST_CASE("numbers of any length are refused or right, never wrong") {
  const std::string nines(1000, '9');
  const std::string shown = std::string(60, '9') + "...\"";
  REQUIRE(time_error(nines + " ns") == "expected a time of at most 9223372 s, found \"" + shown);
  REQUIRE(flop_rate_error(nines + " FLOP/s") ==
          "expected a rate of at most 9223 PFLOP/s, found \"" + shown);
  REQUIRE(parse_time(std::string(1000, '0') + "1 ns") == 1_ns);
  REQUIRE(parse_time("0." + std::string(24, '9') + " ns") == 1_ns);
  REQUIRE(rate_error("0." + std::string(25, '9') + " b/s") ==
          "expected at most 24 decimals, found \"0." + std::string(25, '9') + " b/s\"");
}

TEST_CASE("to_string gives the shortest exact text") {
  REQUIRE(to_string(1'500_ns) == "1.5us");
  REQUIRE(to_string(130_ns) == "130ns");
  REQUIRE(to_string(1'234'567_ps) == "1234.567ns");
  REQUIRE(to_string(1_s) == "1s");
  REQUIRE(to_string(SimTime()) == "0ps");
  REQUIRE(to_string(SimTime(-1'500)) == "-1.5ns");
  REQUIRE(to_string(SimTime::max()) == "9223372036854775.807ns");
  REQUIRE(to_string(SimTime(std::numeric_limits<std::int64_t>::min())) ==
          "-9223372036854775.808ns");
  REQUIRE(to_string(64_MiB) == "64MiB");
  REQUIRE(to_string(1536_B) == "1.5KiB");
  REQUIRE(to_string(Bytes(1'000'000'000)) == "1GB");
  REQUIRE(to_string(1025_B) == "1025B");
  REQUIRE(to_string(Bytes()) == "0B");
  REQUIRE(to_string(gigabits_per_second(400)) == "400Gb/s");
  REQUIRE(to_string(gigabytes_per_second(900)) == "7.2Tb/s");
  REQUIRE(to_string(Bandwidth()) == "0b/s");
}

TEST_CASE("parsing what to_string printed gives the same value") {
  std::mt19937_64 engine(2);
  for (int i = 0; i < 20'000; ++i) {
    const SimTime time(i % 2 == 0 ? random_value(engine, 63)
                                  : random_decimal(engine, 1'000'000'000));
    const Bytes size(i % 2 == 0 ? random_value(engine, 63) : random_decimal(engine, 1 << 20));
    const Bandwidth rate(i % 2 == 0 ? random_value(engine, 46)
                                    : random_decimal(engine, 1'000'000'000));
    INFO(time.picoseconds() << " ps, " << size.count() << " B, " << rate.bits_per_second()
                            << " b/s");
    REQUIRE(parse_time(to_string(time)) == time);
    REQUIRE(parse_bytes(to_string(size)) == size);
    REQUIRE(parse_bandwidth(to_string(rate)) == rate);
  }
}

TEST_CASE("exact decimals agree with 128-bit arithmetic") {
  std::mt19937_64 engine(3);
  for (int i = 0; i < 5'000; ++i) {
    const auto whole = static_cast<std::uint64_t>(random_value(engine, 20));
    const std::uint64_t millionths = engine() % 1'000'000;
    std::string decimals = std::to_string(millionths);
    decimals.insert(0, 6 - decimals.size(), '0');
    const std::string number = std::to_string(whole) + '.' + decimals;
    const std::uint64_t value_in_millionths = whole * 1'000'000 + millionths;
    INFO(number);
    REQUIRE(parse_time(number + " us") == SimTime(static_cast<std::int64_t>(value_in_millionths)));
    const Uint128 scaled = static_cast<Uint128>(value_in_millionths) * (1U << 30);
    const auto nearest = static_cast<std::int64_t>((scaled + 500'000) / 1'000'000);
    REQUIRE(parse_bytes(number + " GiB") == Bytes(nearest));
  }
}

}  // namespace
}  // namespace trainyard
