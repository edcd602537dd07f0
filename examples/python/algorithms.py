# SPDX-License-Identifier: Apache-2.0
"""Three all_reduce algorithms in Python, beside those of Trainyard: equal to the last digit.

    PYTHONPATH=build/release/python python3 examples/python/algorithms.py

A test runs this (tests/api/python_module_test.cpp).
"""

import functools

import trainyard


def ring(ranks, chunks):
    """Each chunk goes once around to be added up, and once more to be handed out."""
    for step in range(2 * ranks - 2):
        for rank in range(ranks):
            yield trainyard.Send(step, rank, (rank + 1) % ranks, (rank - step) % ranks,
                                 reduce=step < ranks - 1)


@trainyard.algorithm(rendezvous=True)
def halving_doubling(ranks, chunks):
    """Half of what is left goes to the nearest partner first; then all of it comes back."""
    rounds = ranks.bit_length() - 1  # Of a power of two.
    for turn in range(rounds):
        width = 2 << turn
        for rank in range(ranks):
            partner = rank ^ (1 << turn)
            flow = rounds - 1 - turn  # Both exchanges of two ranks go the same way.
            yield trainyard.Send(turn, rank, partner, range(partner % width, ranks, width),
                                 reduce=True, flow=flow)
            yield trainyard.Send(2 * rounds - 1 - turn, rank, partner,
                                 range(rank % width, ranks, width), flow=flow)


def swing_on(*lengths):
    """Swing (De Sensi et al., NSDI 2024) on a torus whose lengths are powers of two."""
    dimensions = len(lengths)
    strides = [1]
    for length in lengths:
        strides.append(strides[-1] * length)

    def turns_of(first):
        rounds = [length.bit_length() - 1 for length in lengths]
        order = [(first + i) % dimensions for i in range(dimensions)]
        return [(each, turn) for turn in range(max(rounds)) for each in order
                if turn < rounds[each]]

    def partner(rank, turn, sign):
        dimension, step = turn
        length, stride = lengths[dimension], strides[dimension]
        here = rank // stride % length
        distance = (1 - (-2) ** (step + 1)) // 3  # 1, -1, 3, -5, 11, ...
        there = (here + (sign if here % 2 == 0 else -sign) * distance) % length
        return rank + (there - here) * stride

    @trainyard.algorithm(chunks=lambda ranks: 2 * dimensions * ranks, rendezvous=True)
    def swing(ranks, chunks):
        for channel in range(2 * dimensions):  # One for each link of a chip.
            turns = turns_of(channel % dimensions)
            sign = 1 if channel < dimensions else -1
            steps = len(turns)

            @functools.cache
            def kept(rank, number):
                """The chunks that a rank still adds up after so many turns."""
                if number == steps:
                    return (channel * ranks + rank,)
                return kept(rank, number + 1) + kept(partner(rank, turns[number], sign),
                                                     number + 1)

            for number, turn in enumerate(turns):
                for rank in range(ranks):
                    peer = partner(rank, turn, sign)
                    yield trainyard.Send(number, rank, peer, kept(peer, number + 1), reduce=True,
                                         channel=channel, flow=number)
                    yield trainyard.Send(2 * steps - 1 - number, rank, peer,
                                         kept(rank, number + 1), channel=channel,
                                         flow=steps + number)

    return swing


def compare(cluster, function, built_in, **options):
    """Times both on a cluster, and says whether any figure differs, or the hash of all events."""
    both = [cluster.collective("all_reduce", **chosen, **options, runtime="plain",
                               fingerprint=True).rows()
            for chosen in ({"algorithm": function}, built_in)]
    for ours, theirs in zip(*both, strict=True):
        for row in (ours, theirs):
            del row["algorithm"]
        verdict = "equal" if ours == theirs else f"differs from {theirs['time_us']} us"
        print(f"{function.__name__:16} {ours['size_bytes']:>10} bytes  {ours['time_us']:>12} us  "
              f"{options['fidelity']:6}  {verdict}")


def main():
    torus = trainyard.Cluster("tpu-v4")
    tree = trainyard.Cluster("fat-tree-k8-100g", nodes=16)
    for fidelity in ("flow", "packet"):
        # A size that the 384 chunks divide: all messages are equal.
        compare(torus, swing_on(4, 4, 4), {"algo": "swing"}, minbytes="768K", maxbytes="768K",
                fidelity=fidelity)
        for function, built_in in ((ring, {"algo": "ring", "channels": 1}),
                                   (halving_doubling, {"algo": "halving-doubling"})):
            compare(tree, function, built_in, minbytes="64K", maxbytes="1M", stepfactor=16,
                    fidelity=fidelity)


if __name__ == "__main__":
    main()
