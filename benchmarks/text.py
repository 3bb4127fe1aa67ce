"""Texts: how fast a generation is explained, how often its intervals hold, what a closer look costs, and captum.

python benchmarks/text.py --out benchmarks/results/text.json [--part memory planted ...]

Networks are built from configurations; two are trained first (examples/planted_rule.py, template_classifier.py).
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

ROOT = Path(__file__).parent.parent
sys.path += [str(ROOT / "examples"), str(ROOT / "tests")]

import planted_rule  # noqa: E402
import template_classifier  # noqa: E402

import gralis  # noqa: E402
import text_models  # noqa: E402

SENTENCES = (
    "the film was good .",
    "the book was very bad .",
    "she said it is red .",
    "Paris is the key .",
    "he was not long .",
)


def writer(n_positions: int, width: int = 64, layers: int = 2, seed: int = 0) -> GPT2LMHeadModel:
    """A GPT-2 with random weights, large enough that its answers depend on the prompt."""
    torch.manual_seed(seed)
    size = len(text_models.tokenizer(bos=False))
    config = GPT2Config(
        vocab_size=size, n_positions=n_positions, n_embd=width, n_layer=layers, n_head=4, bos_token_id=5,
        eos_token_id=5, initializer_range=0.15,
    )  # fmt: skip
    return GPT2LMHeadModel(config).eval()


def passages(n: int, n_sentences: int, rng: np.random.Generator) -> str:
    return "\n\n".join(" ".join(rng.choice(SENTENCES, size=n_sentences)) for _ in range(n))


def planted(n_prompts: int = 100) -> dict[str, Any]:
    began = time.perf_counter(), time.process_time()
    found = planted_rule.main(n_prompts, 500)
    return {**found, "prompts": n_prompts, **_since(began)}


def _since(began: tuple[float, float]) -> dict[str, float]:
    """Wall and processor time; other work on a shared machine disturbs the first."""
    return {
        "seconds": round(time.perf_counter() - began[0], 1),
        "processor_seconds": round(time.process_time() - began[1], 1),
    }


def template(n_sentences: int = 40) -> dict[str, Any]:
    """The classifier whose words have known weights: how far any Shapley value lies from its weight, and the time."""
    began = time.perf_counter(), time.process_time()
    _, worst = template_classifier.main(n_sentences, 1000)
    return {"largest_error": round(worst, 4), "largest_weight": 2.0, "sentences": n_sentences, **_since(began)}


def speed(repeats: int = 5) -> dict[str, Any]:
    """50 tokens from 10 passages in one call, over the bare forwards of the same 1024 texts in the same batches.

    One thread computes, so that its processor time is the wall time on an idle machine; other work on a shared machine
    disturbs the wall time and not the processor time. Both are reported.
    """
    tokenizer, rng = text_models.tokenizer(bos=False), np.random.default_rng(0)
    model, prompt = writer(512), passages(10, 3, rng)
    answer = " " + " ".join(rng.choice(text_models.WORDS[:30], size=50))
    table = model.get_input_embeddings().weight.detach()
    ids = torch.tensor(tokenizer(prompt + answer)["input_ids"])
    texts = table[ids].expand(16, -1, -1).contiguous()
    mask = torch.ones(texts.shape[:2], dtype=torch.long)
    ratios: dict[str, list[float]] = {"processor": [], "wall": []}
    for _ in range(repeats):
        began = time.process_time(), time.perf_counter()
        generation = gralis.text.explain_generation(model, tokenizer, prompt, answer, batch_size=16)
        middle = time.process_time(), time.perf_counter()
        with torch.no_grad():
            for _ in range(generation.cost.n_forwards // 16):
                logits = model(inputs_embeds=texts, attention_mask=mask, logits_to_keep=51, use_cache=False).logits
                torch.log_softmax(logits, -1)
        end = time.process_time(), time.perf_counter()
        for clock, (a, b, c) in zip(ratios, zip(began, middle, end, strict=True), strict=True):
            ratios[clock].append((b - a) / (c - b))
    return {
        **{f"{clock}_ratio": round(float(np.median(each)), 3) for clock, each in ratios.items()},
        **{f"{clock}_ratios": [round(r, 3) for r in each] for clock, each in ratios.items()},
        "shape": list(generation.values.shape),
        "tokens_of_the_prompt": len(ids) - 50,
        "forwards": generation.cost.n_forwards,
    }


def coverage(n_runs: int = 60, budget: int = 220) -> dict[str, Any]:
    """How often all intervals of a matrix hold together: sampled coalitions against all of them, 11 features."""
    tokenizer, results = text_models.tokenizer(bos=False), {}
    rule, words_tokenizer, words = planted_rule.train(300)
    for name in ("random", "planted"):
        held, misses, widths = 0, [], []
        for run in range(n_runs):
            rng = np.random.default_rng(run)
            if name == "random":
                model, tok = writer(128, seed=run), tokenizer
                prompt = " ".join(rng.choice(text_models.WORDS[:36], size=11))
                answer = " " + " ".join(rng.choice(text_models.WORDS[:36], size=12))
                features: Any = "words"
            else:
                model, tok, riddle = rule, words_tokenizer, planted_rule.riddle(words, rng)
                prompt, answer = riddle.prompt, f" {riddle.answer} ." + " the" * 8
                inner = riddle.passages[riddle.where].removesuffix(" .").split()  # nine words, and two other passages
                others = [p for k, p in enumerate(riddle.passages) if k != riddle.where][:2]
                features = _in_order(prompt, [*others, *inner], riddle.passages[riddle.where])
            options = {"features": features, "absent": "pad", "seed": run}
            sampled = gralis.text.explain_generation(model, tok, prompt, answer, budget=budget, **options)
            truth = gralis.text.explain_generation(model, tok, prompt, answer, budget=None, **options)
            error, half = np.abs(sampled.values - truth.values), sampled.half_widths(0.95)
            inside = bool((error <= half + truth.half_widths()).all())
            held += inside
            misses += [] if inside else [float((error / half).max())]
            widths.append(float(np.median(half) / np.abs(truth.values).max()))
        results[name] = {"held": held / n_runs, "runs": n_runs, "misses": [round(m, 2) for m in misses],
                         "numbers": int(truth.values.size),
                         "half_width_over_largest": round(float(np.mean(widths)), 4)}  # fmt: skip
    return {**results, "budget": budget, "all": 2**11}


def _in_order(prompt: str, parts: list[str], passage: str) -> list[tuple[int, int, str]]:
    """Spans of two passages and of the words of another."""
    spans, start = [], prompt.index(passage)
    for number, part in enumerate(parts):
        place = prompt.index(part) if number < 2 else prompt.index(part, start)
        start = place + len(part) if number >= 2 else start
        spans.append((place, place + len(part), f"part {number}"))
    return sorted(spans)


def drill(n_runs: int = 6) -> dict[str, Any]:
    """One passage of ten opened, against all sentences from the start: agreement within both errors, and cost."""
    tokenizer, inside, numbers, costs, seconds = text_models.tokenizer(bos=False), 0, 0, [], []
    same = []
    for run in range(n_runs):
        rng = np.random.default_rng(run)
        model, prompt = writer(256, seed=run), passages(10, 3, rng)
        answer = " " + " ".join(rng.choice(text_models.WORDS[:30], size=10))
        began = time.perf_counter()
        fine = gralis.text.explain_generation(model, tokenizer, prompt, answer, features="sentences", budget=1024)
        middle = time.perf_counter()
        coarse = gralis.text.explain_generation(model, tokenizer, prompt, answer, budget=1024)
        start = time.perf_counter()
        closer = coarse.drill(3)
        seconds.append((time.perf_counter() - start) / (middle - began))
        parts, whole = slice(3, 6), slice(9, 12)  # the sentences of passage 4
        away = np.abs(closer.values[:, parts] - fine.values[:, whole])
        room = closer.half_widths()[:, parts] + fine.half_widths()[:, whole]
        inside, numbers = inside + int((away <= room).sum()), numbers + away.size
        costs.append(closer.cost.n_forwards / fine.cost.n_forwards)
        start_fine = gralis.text.explain_generation(
            model, tokenizer, prompt, answer, features=[(s.start, s.stop, s.name) for s in closer.spans], budget=1024
        )
        difference = np.abs(closer.values - start_fine.values)
        same.append(float((difference <= closer.half_widths() + start_fine.half_widths()).mean()))
        scale = float(np.abs(fine.values).max())
    larger = _drill_seconds(writer(256, width=256, layers=6), tokenizer, passages(10, 3, np.random.default_rng(0)))
    return {
        "within_both_errors_of_all_sentences": inside / numbers,
        "within_both_errors_of_the_same_features": float(np.mean(same)),
        "forwards_over_all_sentences": round(float(np.mean(costs)), 3),
        "seconds_over_all_sentences": round(float(np.mean(seconds)), 3),
        "seconds_over_all_sentences_six_layers": round(larger, 3),
        "largest_difference_over_largest_value": round(float(away.max()) / scale, 3),
        "runs": n_runs,
    }


def _drill_seconds(model: Any, tokenizer: Any, prompt: str) -> float:
    """The processor time of a closer look over that of all sentences, for a network whose forwards take the time."""
    answer = " the film was good"
    coarse = gralis.text.explain_generation(model, tokenizer, prompt, answer, budget=1024)
    began = time.process_time()
    coarse.drill(3)
    middle = time.process_time()
    gralis.text.explain_generation(model, tokenizer, prompt, answer, features="sentences", budget=1024)
    return (middle - began) / (time.process_time() - middle)


def captum(n_prompts: int = 5) -> dict[str, Any]:
    """LLMAttribution on the planted GPT, and LayerIntegratedGradients on a BERT."""
    from captum.attr import (
        LayerIntegratedGradients,
        LLMAttribution,
        ShapleyValues,
        ShapleyValueSampling,
        TextTemplateInput,
    )

    model, tokenizer, words = planted_rule.train(300)
    tokenizer.add_special_tokens({"eos_token": "[PAD]"})
    rng = np.random.default_rng(3)
    agree, times, errors = [], [], {"captum": [], "gralis": []}
    for _ in range(n_prompts):
        riddle = planted_rule.riddle(words, rng)
        slots = [f"{{p{k}}}" for k in range(5)]
        template = " ".join([*slots, planted_rule.QUESTION])
        blank = " ".join(["[PAD]"] * 10)
        inputs = TextTemplateInput(
            template,
            values={f"p{k}": p for k, p in enumerate(riddle.passages)},
            baselines={f"p{k}": blank for k in range(5)},
        )
        prompt = gralis.text.fill(template, {f"p{k}": p for k, p in enumerate(riddle.passages)})
        answer = f" {riddle.answer} ."
        began = time.perf_counter()
        theirs = LLMAttribution(ShapleyValues(model), tokenizer).attribute(
            inputs, target=answer.strip(), use_cached_outputs=False, show_progress=False
        )
        middle = time.perf_counter()
        ours = gralis.text.explain_generation(model, tokenizer, prompt, answer, absent="pad")
        times.append((middle - began) / (time.perf_counter() - middle))
        truth = ours.total.values
        agree.append(float(np.abs(theirs.seq_attr.numpy() - truth).max()))
        sampled = gralis.text.explain_generation(model, tokenizer, prompt, answer, absent="pad", budget=22)
        errors["gralis"].append(float(((sampled.total.values - truth) ** 2).mean()))
        torch.manual_seed(len(agree))
        rough = LLMAttribution(ShapleyValueSampling(model), tokenizer, attr_target="log_prob").attribute(
            inputs, target=answer.strip(), use_cached_outputs=False, n_samples=4, show_progress=False
        )  # 4 permutations of 5 features and two ends: 22 forwards at most
        errors["captum"].append(float(((rough.seq_attr.numpy() - truth) ** 2).mean()))
    bert, tok = text_models.network("bert"), text_models.tokenizer()
    text = "the film was not very good , but the book was"
    ids = tok(text, return_tensors="pt")["input_ids"]
    away = ids.clone()
    away[0, 1:-1] = tok.mask_token_id
    layer = LayerIntegratedGradients(lambda z: bert(input_ids=z).logits, bert.bert.embeddings.word_embeddings)
    attribute = lambda n: layer.attribute(ids, away, target=1, n_steps=n, internal_batch_size=16)  # noqa: E731
    ig = attribute(64).sum(-1)[0, 1:-1].detach().numpy()
    began = time.process_time()
    attribute(64)
    middle = time.process_time()
    explanation = gralis.text.explain(bert, tok, text, target=1, quadrature="gauss-legendre", n_nodes=16, budget=1024)
    per_gradient = (time.process_time() - middle) / explanation.cost.n_gradients * 64 / (middle - began)
    own = explanation.integrated_gradients().values
    truth = attribute(512).sum(-1)[0, 1:-1].detach().numpy()
    coarse = gralis.text.explain(bert, tok, text, target=1, quadrature="gauss-legendre", n_nodes=4, budget=1024)
    ig_errors = [
        float(np.abs(each - truth).max() / np.abs(truth).max())
        for each in (attribute(4).sum(-1)[0, 1:-1].detach().numpy(), coarse.integrated_gradients().values)
    ]
    return {
        "shapley_largest_difference": max(agree),
        "shapley_seconds_captum_over_gralis": round(float(np.median(times)), 2),
        "sampled_mse_captum_over_gralis": round(float(np.mean(errors["captum"]) / np.mean(errors["gralis"])), 1),
        "ig_largest_difference_over_largest": float(np.abs(ig - own).max() / np.abs(ig).max()),
        "ig_error_of_4_gradients_captum": ig_errors[0],
        "ig_error_of_4_gradients_gralis": ig_errors[1],
        "seconds_per_gradient_gralis_over_captum": round(per_gradient, 2),
        "prompts": n_prompts,
    }


def memory(megabytes: int = 200) -> dict[str, Any]:
    """A prompt of 4000 tokens under max_memory: how far the process grows beyond what it had before."""
    tokenizer = text_models.tokenizer(bos=False)
    model = writer(4096)
    prompt = "\n\n".join([" ".join(["the film was good and the book was bad ."] * 40)] * 10)
    with torch.no_grad():
        model(torch.tensor([tokenizer("the film")["input_ids"]]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    generation = gralis.text.explain_generation(
        model, tokenizer, prompt, " good .", max_memory=megabytes * 2**20, budget=40
    )
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    n_tokens = len(tokenizer(prompt)["input_ids"])
    return {
        "limit_megabytes": megabytes,
        "grown_megabytes": round(grown, 1),
        "tokens": n_tokens,
        "features": len(generation.names),
    }


PARTS = {
    f.__name__: f for f in (memory, planted, template, speed, coverage, drill, captum)
}  # memory first: it reads the peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--part", nargs="*", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    results = json.loads(arguments.out.read_text()) if arguments.out and arguments.out.exists() else {}
    for name in arguments.part:
        results[name] = PARTS[name]()
        print(name, json.dumps(results[name]), flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
