// SPDX-License-Identifier: Apache-2.0
#include "collectives/hccl/hccl_profile.h"

#include "sim/config.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

void task_fields(Fields& fields, HcclProfile& profile) {
  constexpr Cited kTime{Duration{}};
  fields.required("call", profile.call, kTime, "Start and end of a call.");
  fields.required("notify", profile.notify, kTime, "A signal inside a server.");
  fields.required("copy", profile.copy, kTime, "A copy inside a server, below 512 KiB.");
  fields.required("long_copy", profile.long_copy, kTime, "The same from 512 KiB on.");
  fields.required("rdma", profile.rdma, kTime, "A message or a signal between servers.");
  fields.required("memory", profile.memory, Cited{Rate{}}, "Copies within an NPU.");
}

}  // namespace

void hccl_fields(Fields& fields, HcclProfile& profile) {
  fields.cite_sources();
  fields.required("tasks", profile, Group{task_fields}, "Tasks.");
}

HcclProfile HcclProfile::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  HcclProfile profile;
  read_fields(document.root(), profile, hccl_fields);
  return profile;
}

}  // namespace trainyard
