// SPDX-License-Identifier: Apache-2.0
// Processes that work through one simulation together, and what they give each other. Each runs all
// of it but the packets: it sends the same messages at the same times, and works only for its own
// parts of the fabric (network/packet/packet_exchange.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/check.h"

namespace trainyard {

// Values one after the other, read in the order in which they were written. All processes run the
// same program on machines of one kind, so values are as they lie in memory.
class Parcel {
 public:
  template <typename T>
  void put(const T& value) {
    put_all(std::span<const T>(&value, 1));
  }
  template <typename T>
  [[nodiscard]] T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    take(&value, sizeof(T));
    return value;
  }
  // So many values, and their number.
  template <typename T>
  void put_list(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    put_all(std::span<const T>(values));
  }
  template <typename T>
  void get_list(std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto count = get<std::uint64_t>();
    CHECK(count <= (bytes_.size() - read_) / sizeof(T), "a parcel of another process has a gap");
    values.resize(count);
    take(values.data(), count * sizeof(T));
  }

  void put_text(const std::string& text) { put_list(std::vector<char>(text.begin(), text.end())); }
  [[nodiscard]] std::string get_text() {
    std::vector<char> text;
    get_list(text);
    return {text.begin(), text.end()};
  }

  // The bytes, to be sent or replaced by those that came; then it is read from the beginning.
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  void clear() {
    bytes_.clear();
    read_ = 0;
  }
  [[nodiscard]] bool is_read() const { return read_ == bytes_.size(); }

 private:
  template <typename T>
  void put_all(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t before = bytes_.size();
    bytes_.resize(before + values.size_bytes());
    if (!values.empty()) {
      std::memcpy(bytes_.data() + before, values.data(), values.size_bytes());
    }
  }
  void take(void* to, std::size_t bytes) {
    CHECK(bytes <= bytes_.size() - read_, "a parcel of another process is too short");
    if (bytes > 0) {
      std::memcpy(to, bytes_.data() + read_, bytes);
    }
    read_ += bytes;
  }

  std::vector<std::byte> bytes_;
  std::size_t read_ = 0;
};

class PacketTeam {
 public:
  PacketTeam() = default;
  PacketTeam(const PacketTeam&) = delete;
  PacketTeam& operator=(const PacketTeam&) = delete;
  virtual ~PacketTeam() = default;

  // Number of this process, from 0, and of all.
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t size() const = 0;
  // Gives parcels[r] to process r and replaces it by what that one gives to this one; that of this
  // process stays. Waits for all, which call it equally often. Throws ConfigError if one gives up.
  virtual void exchange(std::vector<Parcel>& parcels) = 0;
};

// Process r has the items r, r + size, ... of so many: put(item, parcel) writes one of them, and
// get(item, parcel) takes one of another process, so that all have all.
template <typename Put, typename Get>
void share_items(PacketTeam& team, std::size_t count, const Put& put, const Get& get) {
  std::vector<Parcel> parcels(team.size());
  Parcel& own = parcels[team.rank()];
  for (std::size_t item = team.rank(); item < count; item += team.size()) {
    put(item, own);
  }
  for (Parcel& parcel : parcels) {
    parcel.bytes() = own.bytes();
  }
  team.exchange(parcels);
  for (std::size_t rank = 0; rank < team.size(); ++rank) {
    for (std::size_t item = rank; rank != team.rank() && item < count; item += team.size()) {
      get(item, parcels[rank]);
    }
  }
}

}  // namespace trainyard
