// SPDX-License-Identifier: Apache-2.0
// Schedules in a V whose memory is controlled by their building block. Qi et
// al., "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362.
//
// A building block says when each rank runs the passes of one micro-batch: the
// forwards of its two chunks, the gradients of the inputs of the second chunk
// and of the first one. Time is counted in slots, each as long as a pass of a
// chunk. The next micro-batch follows 6 slots later, so a rank has one slot for
// each of its passes, and gradients of weights fill those that are left.
// Between the forward of a chunk and its gradients lies its lifespan, and a
// rank holds a sixth of the sum of both lifespans. In a block the distances
// from rank to rank alone decide about them:
//
//             forward down and up the V   gradients down and up   slots of both
//             chunks   activations
//   V-Min                       1, 1                       1, 1 4 p          p
//   / 3 V-Half                      2, 1                       2, 1 6 p p / 2
//
// with activations in those of a whole micro-batch on a rank, of which 1F1B
// holds p. Some numbers of ranks need a gap at the turn, as two passes of a
// rank would have the same slot otherwise. With the gap and the constant part
// it is (p + 4) / 3 and (p + 2) / 2, rounded down, as the authors' page says
// (huggingface.co/spaces/sail/pipeline-parallelism-with-controllable-memory).
// The offsets are those of sail-sg/zero-bubble-pipeline-parallelism,
// zbv_greedy.py.
//
// As each rank runs its list without waiting for slots, the passes before and
// after the steady state close up by themselves ("squeezing"). After the last
// forward no pass but gradients is left, so those of inputs come first and
// those of weights fill the slots between them ("reordering").
#pragma once

#include "parallelism/model/pipeline_schedule.h"

namespace trainyard {

// Half of the activations of 1F1B. With equal passes about half of its bubble.
extern const PipelineSchedule kVHalf;
// A third of the activations of 1F1B. With equal passes two thirds of its
// bubble, 4 p - 5 slots.
extern const PipelineSchedule kVMin;

}  // namespace trainyard
