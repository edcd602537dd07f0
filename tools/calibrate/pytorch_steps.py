#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole training steps of PyTorch on one GPU (docs/accuracy/harness.md).

    pytorch_steps.py -o steps.json [--only NAME,...] [--seconds 120] [--trace FOLDER]

Weights are drawn at random and tokens too: a step does not know. Parameters are FP32 and forward
runs under torch.autocast in BF16, as most training of one GPU does, or all is in BF16 (`pure`); the
optimizer is AdamW (SGD for networks of images), fused, behind a clip of the gradient's norm. Each
case is timed by events over `steps` steps that follow one another without a wait. The file is JSON:
`machine`, and for each case its shape, `step_time_s` (median, least and greatest) and `memory_gb`
(the allocator's peak, GiB), or an `error`.
"""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time
import traceback

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

GROUPED = getattr(F, "grouped_mm", None) or torch._grouped_mm  # Public from 2.10 on.
LLAMA_1B = dict(layers=16, hidden=2048, heads=32, kv_heads=8, ffn=8192, vocab=128256, tied=True)
LLAMA_8B = dict(hidden=4096, heads=32, kv_heads=8, ffn=14336, vocab=128256, tied=False)
GPT2_MEDIUM = dict(layers=24, hidden=1024, heads=16, kv_heads=16, ffn=4096, vocab=50304, tied=True,
                   gelu=True)
QWEN3_30B = dict(hidden=2048, heads=32, kv_heads=4, head=128, ffn=768, experts=128, top=8,
                 vocab=151936, tied=False)
MIXTRAL = dict(hidden=4096, heads=32, kv_heads=8, ffn=14336, experts=8, top=2, vocab=32000,
               tied=False)
LLAMA_2_7B = dict(layers=32, hidden=4096, heads=32, kv_heads=32, ffn=11008, vocab=32000, tied=False)

# In order of worth, if --seconds ends before all are done.
CASES = [
    dict(name="llama-3.2-1b-b4", model=LLAMA_1B, batch=4, seq=2048),
    dict(name="llama-3-8b-layers-4-b1", model=dict(LLAMA_8B, layers=4), batch=1, seq=8192),
    dict(name="gpt2-medium-b8", model=GPT2_MEDIUM, batch=8, seq=1024),
    dict(name="llama-2-7b-lora-b2", model=LLAMA_2_7B, batch=2, seq=2048, lora=16),
    dict(name="resnet-50-b256", network="resnet50", batch=256, amp="bfloat16"),
    dict(name="llama-3.2-1b-b4-pure", model=LLAMA_1B, batch=4, seq=2048, pure=True),
    dict(name="llama-3.2-1b-b4-full", model=LLAMA_1B, batch=4, seq=2048, recompute=True),
    dict(name="gpt2-medium-b1", model=GPT2_MEDIUM, batch=1, seq=1024),
    dict(name="llama-3.2-1b-b1", model=LLAMA_1B, batch=1, seq=2048),
    dict(name="llama-3.2-1b-b4-compiled", model=LLAMA_1B, batch=4, seq=2048, compiled=True),
    dict(name="llama-3-8b-layers-4-b1-compiled", model=dict(LLAMA_8B, layers=4), batch=1, seq=8192,
         compiled=True),
    dict(name="gpt2-medium-b8-compiled", model=GPT2_MEDIUM, batch=8, seq=1024, compiled=True),
    dict(name="llama-3.2-1b-b1-s8192", model=LLAMA_1B, batch=1, seq=8192),
    dict(name="llama-3.2-1b-b4-accumulate-4", model=LLAMA_1B, batch=4, seq=2048, accumulate=4),
    dict(name="llama-2-7b-lora-b1", model=LLAMA_2_7B, batch=1, seq=2048, lora=16),
    dict(name="resnet-50-b128-tf32", network="resnet50", batch=128, amp=""),
    dict(name="qwen3-30b-layers-4-b2", model=dict(QWEN3_30B, layers=4), batch=2, seq=4096),
    dict(name="qwen3-30b-layers-4-b1-s2048", model=dict(QWEN3_30B, layers=4), batch=1, seq=2048),
    dict(name="mixtral-layers-1-b2", model=dict(MIXTRAL, layers=1), batch=2, seq=4096),
    dict(name="mixtral-layers-1-b1-s2048", model=dict(MIXTRAL, layers=1), batch=1, seq=2048),
    dict(name="llama-3-8b-layers-4-b1-s2048", model=dict(LLAMA_8B, layers=4), batch=1, seq=2048),
]


class Rope(nn.Module):
    """Rotations of pairs as products of complex numbers."""

    def __init__(self, head, length):
        super().__init__()
        angles = torch.outer(torch.arange(length).float(),
                             10000.0 ** (-torch.arange(0, head, 2).float() / head))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles),
                             persistent=False)

    def forward(self, x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        turns = self.turns[: x.shape[1]].view(1, x.shape[1], 1, -1)
        return torch.view_as_real(pairs * turns).flatten(3).type_as(x)


class Experts(nn.Module):
    """Gated experts in three grouped products: tokens sorted by expert, each padded to eight."""

    def __init__(self, m):
        super().__init__()
        self.experts, self.top = m["experts"], m["top"]
        self.router = nn.Linear(m["hidden"], self.experts, bias=False)
        self.gate, self.up, self.down = (
            nn.Parameter(torch.empty(self.experts, *shape)) for shape in
            [(m["ffn"], m["hidden"]), (m["ffn"], m["hidden"]), (m["hidden"], m["ffn"])])

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weights, chosen = self.router(tokens).float().softmax(-1).topk(self.top)
        chosen, order = chosen.flatten().sort(stable=True)
        counts = torch.histc(chosen.float(), self.experts, 0, self.experts).long()
        ends = counts.cumsum(0)
        padded = (counts + 7) // 8 * 8
        padded_ends = padded.cumsum(0)
        moved = padded_ends - padded - ends + counts
        place = torch.arange(len(order), device=x.device) + moved[chosen]
        # Places that nothing fills take the row of zeros behind the last token.
        source = torch.full((len(order) + 8 * self.experts,), len(tokens), device=x.device)
        source[place] = order // self.top
        weight = torch.zeros(len(source), device=x.device).index_copy(
            0, place, weights.flatten()[order])
        routed = torch.cat([tokens, tokens.new_zeros(1, tokens.shape[1])]).bfloat16()[source]

        def product(a, w):
            return GROUPED(a, w.bfloat16().transpose(-2, -1), offs=padded_ends.int())

        y = product(F.silu(product(routed, self.gate)) * product(routed, self.up), self.down)
        y = y * weight[:, None].to(y.dtype)
        return tokens.new_zeros(len(tokens) + 1, tokens.shape[1], dtype=y.dtype).index_add(
            0, source, y)[:-1].view_as(x)


class Layer(nn.Module):
    def __init__(self, m, seq):
        super().__init__()
        hidden, ffn = m["hidden"], m["ffn"]
        self.heads, self.kv_heads = m["heads"], m["kv_heads"]
        self.head = m.get("head", hidden // m["heads"])
        self.gelu = m.get("gelu", False)
        norm = nn.LayerNorm if self.gelu else nn.RMSNorm
        self.norm_1, self.norm_2 = norm(hidden), norm(hidden)
        bias = self.gelu
        self.q = nn.Linear(hidden, self.heads * self.head, bias=bias)
        self.k = nn.Linear(hidden, self.kv_heads * self.head, bias=bias)
        self.v = nn.Linear(hidden, self.kv_heads * self.head, bias=bias)
        self.o = nn.Linear(self.heads * self.head, hidden, bias=bias)
        self.experts = Experts(m) if "experts" in m else None
        if self.experts is None:
            self.up = nn.Linear(hidden, ffn, bias=bias)
            self.gate = None if self.gelu else nn.Linear(hidden, ffn, bias=False)
            self.down = nn.Linear(ffn, hidden, bias=bias)
        self.rope = None if self.gelu else Rope(self.head, seq)

    def forward(self, x):
        b, s, _ = x.shape
        y = self.norm_1(x)
        q = self.q(y).view(b, s, self.heads, self.head)
        k = self.k(y).view(b, s, self.kv_heads, self.head)
        v = self.v(y).view(b, s, self.kv_heads, self.head)
        if self.rope is not None:
            q, k = self.rope(q), self.rope(k)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           enable_gqa=self.kv_heads != self.heads)
        x = x + self.o(y.transpose(1, 2).reshape(b, s, -1))
        y = self.norm_2(x)
        if self.experts is not None:
            return x + self.experts(y)
        y = F.gelu(self.up(y)) if self.gelu else F.silu(self.gate(y)) * self.up(y)
        return x + self.down(y)


class Lora(nn.Module):
    """A frozen product and the two small ones that are trained beside it."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Linear(base.in_features, rank, bias=False)
        self.b = nn.Linear(rank, base.out_features, bias=False)
        self.scale = 2.0

    def forward(self, x):
        return self.base(x) + self.scale * self.b(self.a(x))


class Transformer(nn.Module):
    def __init__(self, case):
        super().__init__()
        m = case["model"]
        self.recompute = case.get("recompute", False)
        self.words = nn.Embedding(m["vocab"], m["hidden"])
        self.places = nn.Embedding(case["seq"], m["hidden"]) if m.get("gelu") else None
        self.layers = nn.ModuleList(Layer(m, case["seq"]) for _ in range(m["layers"]))
        self.norm = (nn.LayerNorm if m.get("gelu") else nn.RMSNorm)(m["hidden"])
        self.head = nn.Linear(m["hidden"], m["vocab"], bias=False)
        if m["tied"]:
            self.head.weight = self.words.weight

    def add_lora(self, rank):
        self.requires_grad_(False)
        for layer in self.layers:
            for name in ("q", "k", "v", "o", "gate", "up", "down"):
                setattr(layer, name, Lora(getattr(layer, name), rank))

    def forward(self, tokens, labels):
        x = self.words(tokens)
        if self.places is not None:
            x = x + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def make_language(case, device):
    is_bf16 = case.get("lora") or case.get("pure")
    torch.set_default_dtype(torch.bfloat16 if is_bf16 else torch.float32)
    with torch.device(device):
        model = Transformer(case)
        if case.get("lora"):
            model.add_lora(case["lora"])
    torch.set_default_dtype(torch.float32)
    model.to(device)
    for parameter in model.parameters():
        if parameter.requires_grad and not case.get("pure"):
            parameter.data = parameter.data.float()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.02)
    if case.get("compiled"):
        for layer in model.layers:
            layer.compile()
    shape = (case["batch"], case["seq"])
    tokens = torch.randint(case["model"]["vocab"], shape, device=device)
    labels = torch.randint(case["model"]["vocab"], shape, device=device)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    return trained, optimizer, lambda: model(tokens, labels)


def make_network(case, device):
    import torchvision
    model = getattr(torchvision.models, case["network"])().to(device).to(
        memory_format=torch.channels_last)
    images = torch.randn(case["batch"], 3, 224, 224, device=device).to(
        memory_format=torch.channels_last)
    labels = torch.randint(1000, (case["batch"],), device=device)
    trained = list(model.parameters())
    optimizer = torch.optim.SGD(trained, lr=1e-3, momentum=0.9, fused=True)
    return trained, optimizer, lambda: F.cross_entropy(model(images).float(), labels)


def run(case, steps, warm_up, trace):
    device = torch.device("cuda", 0)
    torch.manual_seed(0)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    make = make_network if case.get("network") else make_language
    trained, optimizer, loss_of = make(case, device)
    amp = getattr(torch, ("" if case.get("pure") else case.get("amp", "bfloat16")) or "float32")
    accumulate = case.get("accumulate", 1)

    def step():
        for _ in range(accumulate):
            with torch.autocast("cuda", amp) if amp != torch.float32 else contextlib.nullcontext():
                loss = loss_of()
            loss.backward()
        if not case.get("network"):
            torch.nn.utils.clip_grad_norm_(trained, 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for _ in range(warm_up):
        loss = step()
    if not torch.isfinite(loss).item():
        raise RuntimeError("the loss is not finite")
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    torch.cuda.synchronize()
    began = time.perf_counter()
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    issued = time.perf_counter() - began
    torch.cuda.synchronize()
    whole = time.perf_counter() - began
    times = sorted(a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:]))
    result = {
        "step_time_s": statistics.median(times), "least_s": times[0], "greatest_s": times[-1],
        "whole_s": whole / steps, "host_s": issued / steps,
        "memory_gb": torch.cuda.max_memory_allocated() / 2**30,
        "reserved_gb": torch.cuda.max_memory_reserved() / 2**30,
    }
    if trace:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
            step()
            torch.cuda.synchronize()
        profiled.export_chrome_trace(os.path.join(trace, case["name"] + ".trace.json.gz"))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--only", help="names of cases, with commas")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1e9, help="no case begins after these")
    parser.add_argument("--trace", help="folder for a profile of a step of each case")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [case["name"] for case in CASES]
    unknown = set(names) - {case["name"] for case in CASES}
    if unknown:
        sys.exit(f"--only: expected names of cases, found {sorted(unknown)}")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    properties = torch.cuda.get_device_properties(0)
    document = {
        "machine": {"gpu": properties.name, "memory_bytes": properties.total_memory,
                    "torch": torch.__version__, "cuda": torch.version.cuda,
                    "cudnn": torch.backends.cudnn.version()},
        "steps": options.steps, "cases": [],
    }
    began = time.perf_counter()
    for case in CASES:
        if case["name"] not in names or time.perf_counter() - began > options.seconds:
            continue
        case_began = time.perf_counter()
        try:
            result = run(case, options.steps, options.warm_up, options.trace)
        except Exception as error:  # The others are timed all the same.
            traceback.print_exc()
            result = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        document["cases"].append({**case, **result})
        print(f"{case['name']}: {result.get('step_time_s', result.get('error'))}, "
              f"{time.perf_counter() - case_began:.1f} s", file=sys.stderr, flush=True)
        with open(options.output + ".part", "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
        os.replace(options.output + ".part", options.output)


if __name__ == "__main__":
    main()
