// SPDX-License-Identifier: Apache-2.0
// Texts by number, equal ones once: some ten bytes for each beside its letters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

class NameTable {
 public:
  // Returns the number of the text, from 0 on in the order in which texts came first.
  [[nodiscard]] std::uint32_t add(std::string_view text) {
    if (2 * (ends_.size() + 1) > slots_.size()) {
      grow();
    }
    std::uint32_t& slot = slot_of(text);
    if (slot == kFree) {
      slot = static_cast<std::uint32_t>(ends_.size());
      letters_ += text;
      ends_.push_back(letters_.size());
    }
    return slot;
  }
  // Valid until the next add().
  [[nodiscard]] std::string_view operator[](std::uint32_t number) const {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(letters_).substr(begin, ends_[number] - begin);
  }
  [[nodiscard]] std::size_t size() const { return ends_.size(); }

 private:
  static constexpr std::uint32_t kFree = 0xffff'ffff;

  // Returns the slot that has the text, or else the one that is free for it.
  [[nodiscard]] std::uint32_t& slot_of(std::string_view text) {
    std::size_t at = std::hash<std::string_view>{}(text) & (slots_.size() - 1);
    while (slots_[at] != kFree && (*this)[slots_[at]] != text) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at];
  }

  void grow() {
    constexpr std::size_t kFirstSlots = 64;
    slots_.assign(slots_.empty() ? kFirstSlots : 2 * slots_.size(), kFree);
    for (std::uint32_t number = 0; number < ends_.size(); ++number) {
      slot_of((*this)[number]) = number;
    }
  }

  std::string letters_;               // The texts, one after the other.
  std::vector<std::size_t> ends_;     // The end of each text.
  std::vector<std::uint32_t> slots_;  // Numbers by hash, the next slot where one is taken.
};

}  // namespace trainyard
