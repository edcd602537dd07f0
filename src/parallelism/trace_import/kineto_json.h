// SPDX-License-Identifier: Apache-2.0
// The JSON of a profile, event by event. Most of its millions of events happen on the host: the
// text is gone through by its brackets and quotes, and only events that are wanted are parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "parallelism/workload/imported_files.h"

namespace trainyard {

// Words of an event about itself, as they are written, without quotes. Nothing: it is no text.
struct KinetoHead {
  std::optional<std::string_view> phase = {};
  std::optional<std::string_view> category = {};
  std::optional<std::string_view> name = {};
};

enum class KinetoWanted : std::uint8_t {
  No,
  Now,
  Later,  // After all others, if they are still wanted then.
};

// Reads events as they come.
class KinetoEventSink {
 public:
  [[nodiscard]] virtual KinetoWanted wanted(const KinetoHead& head) = 0;
  // An object of "traceEvents" and its place among all of them.
  virtual void take(const nlohmann::json& event, std::size_t index) = 0;
  // All others were taken.
  [[nodiscard]] virtual bool wants_later() const = 0;

 protected:
  ~KinetoEventSink() = default;
};

// Returns the file without its events, and of lists and objects beside them distributedInfo alone.
// Throws ConfigError with line and column where it is no JSON, or has more levels than JSON of
// ours; of events that are not wanted brackets and quotes alone are looked at.
[[nodiscard]] nlohmann::json read_kineto_json(const ImportedFile& file, KinetoEventSink& sink);

// Fields of an object, with errors that say where it is. Refers to what it is made from.
class KinetoFields {
 public:
  // "FILE: event 17 (NAME)".
  KinetoFields(const nlohmann::json& object, std::string_view file, std::size_t event,
               std::string_view name)
      : object_(object), file_(file), event_(event), name_(name) {}
  // "FILE: NAME".
  KinetoFields(const nlohmann::json& object, std::string_view file, std::string_view name)
      : KinetoFields(object, file, kNoEvent, name) {}

  // The same place, for an object within.
  [[nodiscard]] KinetoFields within(const nlohmann::json& object) const {
    return {object, file_, event_, name_};
  }
  [[nodiscard]] std::string place() const;
  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }
  [[noreturn]] void fail(std::string_view field, std::string_view expected) const;
  [[nodiscard]] std::string text(const char* key) const;
  [[nodiscard]] std::string text_or_none(const char* key) const;
  // From 0; some versions write numbers as texts.
  [[nodiscard]] std::int64_t integer(const char* key, std::int64_t max) const;
  // Whole microseconds and the rest apart: exact below 2^43 us, which starts since
  // ChromeTraceBaseTime are, and of whole microseconds. Starts since the epoch that have decimals
  // are known to a quarter of a microsecond, as a double holds no more of them.
  [[nodiscard]] std::int64_t nanoseconds_of(const char* key, std::int64_t max) const;

 private:
  static constexpr std::size_t kNoEvent = static_cast<std::size_t>(-1);

  const nlohmann::json& object_;
  std::string_view file_;
  std::size_t event_;
  std::string_view name_;
};

// The text of a field, or none where it is missing or something else.
[[nodiscard]] std::string_view kineto_text(const nlohmann::json& object, const char* key);

}  // namespace trainyard
