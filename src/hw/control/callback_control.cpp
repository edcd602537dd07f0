// SPDX-License-Identifier: Apache-2.0
#include "hw/control/callback_control.h"

#include "hw/control/control_fields.h"
#include "sim/host/run_host.h"

namespace trainyard {

void CallbackControl::fields(Fields& fields, CallbackProfile& profile) {
  fields.check([&](const ConfigNode& node) {
    RunHost* const host = run_host();
    profile.callback = host == nullptr ? nullptr : host->control();
    if (profile.callback == nullptr) {
      const ConfigNode algorithm = node.required("algorithm");
      algorithm.fail("a program that calls the library with a control of its own",
                     algorithm.found());
    }
  });
}

}  // namespace trainyard
