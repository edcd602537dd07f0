#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the kernels of training steps that PyTorch calls, on one GPU (docs/accuracy/harness.md).

    pytorch_kernels.py -o kernels.json [--only dense,grouped,fp8,attention]

Data are drawn at random and in BF16, as power depends on them. Dense products of a layer of
`out` x `in` weights and `tokens`: forward, gradient of the data and of the weights. Products of
experts: the same for `experts` layers in one kernel, with `tokens` for each expert, or with `skew`
times their mean for the first one. FP8 products: forward, with one scale for a tensor or for each
of its rows. Attention: forward and backward by cuDNN or FlashAttention. Each is called again and
again, without a wait, for at least 20 ms between two events, five times.
The file is JSON: `machine`, and for each case its shape with `time_us` (median, least and greatest)
and `tflops` of the median, or an `error`.
"""
import argparse
import json
import os
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

GROUPED = getattr(F, "grouped_mm", None) or torch._grouped_mm  # Public from 2.10 on.
BATCHES = 5
BATCH_MS = 20.0

DENSE = [
    dict(tokens=tokens, out=out, inner=inner)
    for out, inner in [(4096, 4096), (14336, 4096), (4096, 14336), (1024, 4096), (3072, 1024),
                       (32000, 4096)]
    for tokens in [512, 2048, 8192]
]
EXPERTS = [  # Hidden and inner size of Mixtral 8x7B, Qwen3 30B and 235B, and DeepSeek-V3.
    dict(experts=8, out=14336, inner=4096), dict(experts=8, out=4096, inner=14336),
    dict(experts=32, out=768, inner=2048), dict(experts=128, out=768, inner=2048),
    dict(experts=16, out=1536, inner=4096), dict(experts=32, out=2048, inner=7168),
    dict(experts=32, out=7168, inner=2048),
]
ATTENTION = [
    dict(batch=4, heads=32, kv_heads=32, seq=4096, head=128, causal=True),
    dict(batch=4, heads=32, kv_heads=32, seq=4096, head=128, causal=False),
    dict(batch=8, heads=32, kv_heads=8, seq=2048, head=128, causal=True),
    dict(batch=2, heads=32, kv_heads=8, seq=8192, head=128, causal=True),
    dict(batch=1, heads=32, kv_heads=8, seq=16384, head=128, causal=True),
    dict(batch=1, heads=8, kv_heads=1, seq=32768, head=128, causal=True),
    dict(batch=16, heads=32, kv_heads=32, seq=1024, head=128, causal=True),
    dict(batch=16, heads=16, kv_heads=16, seq=1024, head=64, causal=True),
    dict(batch=4, heads=32, kv_heads=32, seq=4096, head=64, causal=True),
    dict(batch=4, heads=32, kv_heads=32, seq=4096, head=64, causal=False),
    dict(batch=2, heads=16, kv_heads=16, seq=8192, head=96, causal=True),
]


def draw(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def time_of(call):
    """Microseconds of a call: median, least and greatest of BATCHES means."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def batch(calls):
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / calls

    batch(2)
    calls = max(2, int(BATCH_MS / max(batch(2), 1e-3)))
    times = sorted(1e3 * batch(calls) for _ in range(BATCHES))
    return dict(time_us=statistics.median(times), least_us=times[0], greatest_us=times[-1])


def dense_cases():
    for shape in DENSE:
        x, w, g = (draw(shape["tokens"], shape["inner"]), draw(shape["out"], shape["inner"]),
                   draw(shape["tokens"], shape["out"]))
        operations = 2 * shape["tokens"] * shape["out"] * shape["inner"]
        for name, call in [("forward", lambda: x @ w.T), ("data", lambda: g @ w),
                           ("weights", lambda: g.T @ x)]:
            yield dict(kind="dense", product=name, **shape), operations, call


def grouped_cases():
    for shape in EXPERTS:
        experts = shape["experts"]
        w = draw(experts, shape["out"], shape["inner"])
        for tokens in [16, 64, 128, 256, 512, 1024, 2048, 4096]:
            if tokens * experts > 65536:
                continue
            for skew in [1, 2, 4] if tokens == 512 else [1]:
                first = tokens * skew
                others = (tokens * experts - first) // (experts - 1) // 8 * 8
                counts = [first] + [others] * (experts - 1)
                offs = torch.tensor(counts, device="cuda").cumsum(0).to(torch.int32)
                total = sum(counts)
                x, g = draw(total, shape["inner"]), draw(total, shape["out"])
                operations = 2 * total * shape["out"] * shape["inner"]
                for name, call in [
                        ("forward", lambda: GROUPED(x, w.transpose(-2, -1), offs=offs)),
                        ("data", lambda: GROUPED(g, w, offs=offs)),
                        ("weights", lambda: GROUPED(g.T, x, offs=offs))]:
                    yield (dict(kind="grouped", product=name, tokens=tokens, skew=skew, **shape),
                           operations, call)


def fp8_cases():
    for shape in DENSE:
        a, b = (draw(rows, shape["inner"]).to(torch.float8_e4m3fn)
                for rows in (shape["tokens"], shape["out"]))
        one = torch.ones((), device="cuda")
        rows = [torch.ones(size, device="cuda")
                for size in ((shape["tokens"], 1), (1, shape["out"]))]
        operations = 2 * shape["tokens"] * shape["out"] * shape["inner"]
        for name, scales in [("tensor", [one, one]), ("row", rows)]:
            for fast in [True, False]:  # Whether sums are kept in the tensor cores' own precision.
                def call():
                    return torch._scaled_mm(a, b.T, *scales, out_dtype=torch.bfloat16,
                                            use_fast_accum=fast)
                yield (dict(kind="fp8", scale=name, fast_accumulation=fast, **shape), operations,
                       call)


def attention_cases():
    for shape in ATTENTION:
        b, s, d = shape["batch"], shape["seq"], shape["head"]
        q, k, v, g = (draw(b, heads, s, d) for heads in
                      (shape["heads"], shape["kv_heads"], shape["kv_heads"], shape["heads"]))
        leaves = [tensor.requires_grad_() for tensor in (q, k, v)]
        operations = 4 * b * shape["heads"] * s * s * d // (2 if shape["causal"] else 1)
        for name, backend in [("cudnn", SDPBackend.CUDNN_ATTENTION),
                              ("flash", SDPBackend.FLASH_ATTENTION)]:
            def forward():
                with sdpa_kernel(backend):
                    return F.scaled_dot_product_attention(
                        q, k, v, is_causal=shape["causal"],
                        enable_gqa=shape["heads"] != shape["kv_heads"])
            kept = []  # The graph of one forward, for all calls of backward.

            def backward():
                if not kept:
                    kept.append(forward())
                torch.autograd.grad(kept[0], leaves, g, retain_graph=True)
            for part, call, times in [("forward", forward, 2), ("backward", backward, 5)]:
                yield (dict(kind="attention", part=part, kernel=name, **shape),
                       operations * times // 2, call)


CASES = {"dense": dense_cases, "grouped": grouped_cases, "fp8": fp8_cases,
         "attention": attention_cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--only", default=",".join(CASES), help="kinds, with commas")
    options = parser.parse_args()
    kinds = options.only.split(",")
    if unknown := set(kinds) - set(CASES):
        sys.exit(f"--only: expected some of {','.join(CASES)}, found {sorted(unknown)}")
    torch.manual_seed(0)
    properties = torch.cuda.get_device_properties(0)
    cases = []
    for kind in kinds:
        for case, operations, call in CASES[kind]():
            try:
                times = time_of(call)
                case |= times | dict(tflops=operations / times["time_us"] / 1e6)
            except Exception as error:  # The others are timed all the same.
                case["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
            cases.append(case)
    document = {
        "machine": {"gpu": properties.name, "memory_bytes": properties.total_memory,
                    "torch": torch.__version__, "cuda": torch.version.cuda,
                    "cudnn": torch.backends.cudnn.version()},
        "cases": cases,
    }
    with open(options.output + ".part", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(options.output + ".part", options.output)


if __name__ == "__main__":
    main()
