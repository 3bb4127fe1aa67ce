"""TorchModel: every misuse is one sentence; memory errors and interrupts are nobody's fault and pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from gralis import explain, models
from gralis.errors import GralisError, ModelError


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Two(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left.sum(dim=1) * right.square().sum(dim=1)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.detach().sum(dim=1),
        lambda x: x.argmax(dim=1),
        lambda x: torch.zeros(len(x)),
        torch.no_grad()(torch.exp),
    ],
)
def test_a_detached_output_is_a_sentence(fn):
    with pytest.raises(GralisError, match=r'is detached from its input .*plan="endpoint"'):
        models.torch(fn, lambda z: z.reshape(len(z), -1)[:, 0]).value_and_gradient(draw(2, 3))


def test_a_graph_that_does_not_reach_the_input_is_a_sentence():
    weight = torch.ones(3, dtype=torch.float64, requires_grad=True)  # a closure, out of reach of the session
    with pytest.raises(GralisError, match="is detached from its input"):
        models.torch(lambda x: (x.detach() * weight).sum(dim=1)).value_and_gradient(draw(2, 3))
    assert weight.grad is None


def test_integer_points_have_values_but_no_gradient():
    net = nn.Sequential(nn.Embedding(10, 2), nn.Flatten(), nn.Linear(6, 1)).eval()
    tokens = torch.tensor([[1, 2, 3]])
    assert models.torch(net).value(tokens).shape == (1,)
    with pytest.raises(GralisError, match=r"int64 cannot move along a ray.*layer="):
        models.torch(net).value_and_gradient(tokens)
    _, (moving, still) = models.torch(lambda a, b: a.sum(dim=1) * b[:, 1]).value_and_gradient((draw(1, 2), tokens))
    assert moving.tolist() == [[2, 2]]
    assert still.tolist() == [[0, 0, 0]]  # beside an input that moves, integers jump


def test_a_batch_axis_of_x_is_named():
    with pytest.raises(ModelError, match=r"on points of shape \(2, 1, 3, 8, 8\): .*without a batch axis.*give x\[0\]"):
        explain(nn.Conv2d(3, 2, 3).eval(), torch.ones(1, 3, 8, 8), target=0)
    assert "x has a batch axis of 1" in repr(explain(nn.Linear(4, 2).eval(), torch.ones(1, 4), target=0))
    with pytest.raises(GralisError, match=r"\(rows, 1, 1, 1, 2\).*give x without its batch axis"):
        explain(nn.Linear(4, 2).eval(), torch.ones(1, 1, 1, 4), target=0)
    with pytest.raises(ModelError) as e:
        explain(nn.Linear(5, 2).eval(), torch.ones(4), target=0)
    assert "batch axis" not in str(e.value)


def test_an_error_of_the_model_comes_with_shapes():
    with pytest.raises(
        ModelError, match=r"The model Sequential raised RuntimeError on points of shape \(2, 5\): mat1"
    ) as e:
        models.torch(nn.Sequential(nn.Linear(4, 1)).double().eval()).value(draw(2, 5))
    assert isinstance(e.value.__cause__, RuntimeError)
    assert "\n" not in str(e.value)
    with pytest.raises(ModelError, match=r"on points of shape left \(2, 3\), up \(2, 1\): "):
        models.torch(Two().eval()).value_and_gradient({"left": draw(2, 3), "up": draw(2, 1)})
    with pytest.raises(ModelError, match=r"raised .*models.blackbox"):
        models.torch(lambda x: torch.from_numpy(x.numpy().sum(axis=1))).value_and_gradient(draw(2, 3))
    with pytest.raises(ModelError, match=r"The target .* raised KeyError"):
        models.torch(lambda x: {"a": x}, lambda outputs: outputs["b"]).value(draw(2, 3))


def test_a_long_error_is_told_in_one_line_and_a_sentence_as_it_is():
    def fail(x):
        raise RuntimeError("first line\nsecond line")

    def refuse(x):
        raise GralisError("Not today.")

    with pytest.raises(ModelError, match="first line") as caught:
        models.torch(fail).value(draw(2, 3))
    assert "second" not in str(caught.value)
    with pytest.raises(GralisError, match=r"^Not today\.$"):
        models.torch(refuse).value(draw(2, 3))


def test_an_error_of_the_backward_pass_comes_with_shapes():
    def clobber(x):
        y = x.exp()
        z = y.sum(dim=1)
        y.mul_(2)
        return z + (y * 0).sum(dim=1)

    with pytest.raises(
        ModelError, match=r"The backward pass of .*clobber raised RuntimeError on points of shape \(2, 3\)"
    ):
        models.torch(clobber).value_and_gradient(draw(2, 3))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("MPS backend out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory"),
        RuntimeError("can't allocate memory: you tried to allocate 1 byte"),
        MemoryError(),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_out_of_memory_and_interrupts_pass_untouched(error):
    def fail(x):
        raise error

    for call in (models.torch(fail).value, models.torch(fail).value_and_gradient):
        with pytest.raises(type(error)) as caught:
            call(draw(2, 3))
        assert caught.value is error


@pytest.mark.parametrize(
    ("fn", "target", "says"),
    [
        (lambda x: x, None, r"returns 3 outputs per row; choose one with target=k \(0..2\)"),
        (lambda x: x[:1, 0], None, "returned 1 values for 2 rows"),
        (lambda x: x.sum(), None, "a single number for the whole batch"),
        (lambda x: x[:, 0] * 1j, None, "complex values"),
        (lambda x: (x, x), 0, "returned a tuple of 2"),
    ],
)
def test_unusable_outputs_are_sentences(fn, target, says):
    for call in (models.torch(fn, target).value, models.torch(fn, target).value_and_gradient):
        with pytest.raises(GralisError, match=says):
            call(draw(2, 3))


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((3,), {}, "'module' parameter of models.torch must be .* Got a int"),
        ((nn.Linear,), {}, "Got the class Linear"),
        ((torch.sin, "cat"), {}, "'target' parameter of models.torch"),
        ((torch.sin,), {"dtype": torch.int64}, "'dtype' parameter of models.torch"),
        ((torch.sin,), {"dtype": "float"}, "'dtype' parameter of models.torch"),
        ((torch.sin,), {"device": "abacus"}, "'device' parameter of models.torch"),
    ],
)
def test_bad_arguments_are_sentences(arguments, options, says):
    with pytest.raises(GralisError, match=says):
        models.torch(*arguments, **options)


@pytest.mark.parametrize("points", [np.zeros((2, 3)), (), {}, (torch.zeros(2), None)])
def test_points_must_be_tensors(points):
    with pytest.raises(GralisError, match="'points' parameter of a model must be a tensor"):
        models.torch(torch.sin).value(points)
