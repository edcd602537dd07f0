// SPDX-License-Identifier: Apache-2.0
// The costs of messages of MPI and Gloo to the CPUs that send and receive them, read from
// configs/mpi/profile.yaml and gloo-profile.yaml. docs/models/mpi.md and gloo.md have the
// equations.
#pragma once

#include <filesystem>
#include <optional>

#include "sim/units.h"

namespace trainyard {

class Fields;

struct MpiProfile {
  // Inside a host: through memory that both have mapped, or, above `eager`, read by the receiver
  // from where it lies.
  struct Shared {
    SimTime send;        // CPU time of a message at its sender,
    SimTime receive;     // and at its receiver.
    SimTime latency;     // Until the other CPU sees it.
    Bytes eager;         // From this size on the receiver reads it in place.
    Bandwidth copy;      // Each of two copies, below `eager`.
    SimTime rendezvous;  // CPU time of the receiver for a message that it reads in place,
    Bandwidth read;      // and its rate,
    Bandwidth written;   // for what the sender has written since it was read last this one,
    Bytes cached;        // and from this size on
    Bandwidth uncached;  // this one.
    SimTime crossing;    // More of it while others read from the receiver.
    Bandwidth rewrite;   // Writes into lines that the caches of other ranks have read before.
  };
  // Between hosts, and inside one where nothing is shared: by the sockets of the kernel.
  struct Tcp {
    SimTime send;     // CPU time of a message at its sender, system call included,
    SimTime receive;  // and at its receiver.
    // One of the two: from this size on the sender asks first; or the CPU time of a receiver to say
    // that it is ready, before it waits for a message, which the sender awaits whatever the size.
    std::optional<Bytes> eager;
    std::optional<SimTime> post;
    Bytes fragment;  // The receiver copies the last part of this size after it has come.
    Bandwidth copy;  // Each of two copies.
  };
  // Messages go one of these two ways inside a host.
  std::optional<Shared> shared;
  std::optional<SimTime> loopback;  // They go by `tcp`, so much later, threads awake.
  Tcp tcp;
  Bandwidth sum;   // Sums of floats in host memory, by the bytes of one addend,
  Bandwidth copy;  // and from one buffer of a rank to another.

  // Throws ConfigError.
  [[nodiscard]] static MpiProfile load(const std::filesystem::path& file);
};

void mpi_fields(Fields& fields, MpiProfile& profile);

}  // namespace trainyard
