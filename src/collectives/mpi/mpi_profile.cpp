// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_profile.h"

#include "sim/config.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

constexpr Cited kTime{Duration{}};
constexpr Cited kSize{Amount{}};
constexpr Cited kRate{Rate{}};

void shared_fields(Fields& fields, MpiProfile::Shared& shared) {
  fields.required("send", shared.send, kTime, "CPU time of a message at its sender.");
  fields.required("receive", shared.receive, kTime, "CPU time of a message at its receiver.");
  fields.required("latency", shared.latency, kTime, "Until the other CPU sees it.");
  fields.required("eager", shared.eager, kSize, "From this size on it is read in place.");
  fields.required("copy", shared.copy, kRate, "Each of two copies of a smaller message.");
  fields.required("rendezvous", shared.rendezvous, kTime,
                  "CPU time of the receiver to read a message in place.");
  fields.required("read", shared.read, kRate, "The rate at which it does.");
  fields.required("written", shared.written, kRate,
                  "The rate of what its sender has just written.");
  fields.required("cached", shared.cached, kSize, "From this size on it comes from memory.");
  fields.required("uncached", shared.uncached, kRate, "The rate from there.");
  fields.required("crossing", shared.crossing, kTime,
                  "CPU time more while others read from the receiver.");
  fields.required("rewrite", shared.rewrite, kRate,
                  "Copies, sums and reads into what other ranks have read before.");
}

void tcp_fields(Fields& fields, MpiProfile::Tcp& tcp) {
  fields.required("send", tcp.send, kTime, "CPU time of a message at its sender.");
  fields.required("receive", tcp.receive, kTime, "CPU time of a message at its receiver.");
  fields.optional("eager", tcp.eager, kSize,
                  "From this size on the sender asks first; this or `post`.");
  fields.optional("post", tcp.post, kTime,
                  "CPU time of a receiver to say that it is ready, which every sender awaits.");
  fields.required("fragment", tcp.fragment, kSize, "What is copied after it has come.");
  fields.required("copy", tcp.copy, kRate, "Each of two copies.");
}

}  // namespace

void mpi_fields(Fields& fields, MpiProfile& profile) {
  fields.cite_sources();
  fields.optional("shared", profile.shared, Group{shared_fields},
                  "Messages inside a host, through shared memory; this or `loopback`.");
  fields.optional("loopback", profile.loopback, kTime,
                  "Messages inside a host take the way of `tcp`, and this until the other side is "
                  "awake.");
  fields.required("tcp", profile.tcp, Group{tcp_fields}, "Messages between hosts.");
  fields.required("sum", profile.sum, kRate, "Sums of floats, by the bytes of one addend.");
  fields.required("copy", profile.copy, kRate, "Copies within a rank.");
  fields.check([&](const ConfigNode& node) {
    if (profile.shared.has_value() == profile.loopback.has_value()) {
      node.fail("one of shared and loopback", profile.shared ? "both" : "none");
    }
    if (profile.tcp.eager.has_value() == profile.tcp.post.has_value()) {
      node.required("tcp").fail("one of eager and post", profile.tcp.post ? "both" : "none");
    }
    if (profile.loopback.has_value() != profile.tcp.post.has_value()) {
      node.fail("loopback beside tcp.post alone", profile.loopback ? "eager" : "shared");
    }
  });
}

MpiProfile MpiProfile::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  MpiProfile profile;
  read_fields(document.root(), profile, mpi_fields);
  return profile;
}

}  // namespace trainyard
