// SPDX-License-Identifier: Apache-2.0
// The table of congestion controls, one row each. hw/control/control_terms.h says what a row has;
// everybody else gets all controls from here and asks for their traits.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "hw/control/bbr.h"
#include "hw/control/callback_control.h"
#include "hw/control/cubic.h"
#include "hw/control/dcqcn.h"
#include "hw/control/dctcp.h"
#include "hw/control/hpcc.h"
#include "hw/control/no_control.h"
#include "hw/control/nscc.h"
#include "hw/control/receiver_credit.h"
#include "hw/control/reno.h"
#include "hw/control/swift.h"
#include "hw/control/timely.h"

namespace trainyard {

// Says of which row a profile, its settings or a sender is.
template <typename Row>
struct ControlEntry {
  static Row row_of(const typename Row::Profile* profile);
  static Row row_of(const typename Row::Settings* settings);
  static Row row_of(const typename Row::Sender* sender);
};

template <typename... Rows>
struct ControlTable : ControlEntry<Rows>... {
  using ControlEntry<Rows>::row_of...;
  using Profiles = std::variant<typename Rows::Profile...>;
  using Rules = std::variant<typename Rows::Settings...>;
  using Senders = std::variant<typename Rows::Sender...>;

  static constexpr std::array<std::string_view, sizeof...(Rows)> kNames{Rows::kName...};
  // Binds the keys of the control that is at `index` in kNames.
  static void fields(std::size_t index, Fields& fields, Profiles& profile) {
    std::size_t row = 0;
    ((row++ == index ? Rows::fields(fields, profile.template emplace<typename Rows::Profile>())
                     : void()),
     ...);
  }
};

using ControlList = ControlTable<NoControl, DcqcnControl, HpccControl, SwiftControl, TimelyControl,
                                 DctcpControl, CreditControl, NsccControl, RenoControl,
                                 CubicControl, BbrControl, CallbackControl>;

// Calls `function` with the row that the value of one of the variants above belongs to, and with
// the value. No virtual call: compilers make it a switch over the index.
template <typename Variant, typename Function>
decltype(auto) visit_control(Variant& variant, Function&& function) {
  return std::visit(
      [&](auto& value) -> decltype(auto) {
        using Row = decltype(ControlList::row_of(&value));
        return std::forward<Function>(function)(Row(), value);
      },
      variant);
}

}  // namespace trainyard
