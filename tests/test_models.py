"""The models that are pretrained: values and gradients of the literal network, at any scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretraining_cases import (
    VARIANTS,
    configuration,
    drawn_parameters,
    each_protocol,
    each_variant,
    literal_loss,
    literal_values,
    pretraining,
    relative,
)
from strategies import examples, seeds

import ictd
from ictd import _models, _tasks


@each_variant
@each_protocol
@pytest.mark.parametrize("loss", ["td", "mc", "true"])
def test_losses_and_gradients_are_the_literal_network_s(
    variant: dict[str, object], protocol: str, loss: str
) -> None:
    # Linear attention forms moments of columns only in more than three layers.
    depth = 5 if variant["attention"] == "linear" else 3
    config = configuration(**variant, protocol=protocol, loss=loss, n_layers=depth)
    model, parameters = drawn_parameters(config, 0.3)
    batch = _tasks.Schedule(config).batch(7)
    losses = pretraining.losses(model, parameters, batch)
    gradients = torch.autograd.grad(losses.sum(), list(parameters.values()))
    for seed in range(2):
        own = {name: p[seed].detach().requires_grad_() for name, p in parameters.items()}
        expected = literal_loss(config, own, batch, seed)
        assert relative(losses[seed], expected) < 1e-10
        for fast, slow in zip(
            gradients, torch.autograd.grad(expected, list(own.values())), strict=True
        ):
            assert relative(fast[seed], slow) < 1e-10


@examples(25)
@given(
    seed=seeds,
    n_states=st.integers(3, 7),
    d=st.integers(1, 4),
    n=st.integers(1, 12),
    L=st.integers(1, 4),
    gamma=st.sampled_from([0.0, 0.5, 0.95]),
    scale=st.sampled_from([0.1, 1.0, 3.0]),
    variant=st.sampled_from(VARIANTS[:4]),
    chain=st.sampled_from(["boyan", "loop", "random"]),
)
def test_a_step_is_a_step_of_the_literal_network(
    seed: int,
    n_states: int,
    d: int,
    n: int,
    L: int,
    gamma: float,
    scale: float,
    variant: dict[str, object],
    chain: str,
) -> None:
    """One step of Adam, with weight decay, from the literal network's loss."""
    config = configuration(
        **variant,
        n_states=n_states,
        n_features=d,
        context_length=n,
        n_layers=L,
        gamma=gamma,
        chain=chain,
        features="uniform",
        seeds=[seed],
        batch_size=2,
        initial_scale=scale,
        weight_decay=0.1,
        n_steps=1,
        eval_every=1,
        eval_tasks=1,
    )
    own = {name: p[0].requires_grad_() for name, p in _models.build(config).initial(scale).items()}
    adam = torch.optim.Adam(own.values(), lr=config.learning_rate, weight_decay=0.1)
    literal_loss(config, own, _tasks.Schedule(config).batch(0), 0).backward()
    adam.step()
    trained = ictd.pretrain(config, progress=False).parameters
    for name, p in own.items():
        # Adam divides by the gradient's size: where it is rounding alone, its sign is.
        clear = p.grad.abs() > 1e-9
        difference = np.abs(trained[name][0] - p.detach().numpy())[clear.numpy()]
        assert difference.max(initial=0.0) < 1e-8


@pytest.mark.parametrize("variant", VARIANTS[:2], ids=["shared", "separate"])
@pytest.mark.parametrize("scale", [3.0, 1e4])
def test_scores_of_any_size_pass_and_do_not_touch_other_seeds(
    variant: dict[str, object], scale: float
) -> None:
    config = configuration(**variant, seeds=(0, 1, 2), features="uniform", context_length=3)
    model, parameters = drawn_parameters(config)
    batch = _tasks.Schedule(config).batch(0)
    before = model.values(parameters, batch).detach()
    with torch.no_grad():
        parameters["A"][1] *= scale * 100
    wide = model.values(parameters, batch)
    assert torch.equal(wide[0], before[0])
    assert torch.equal(wide[2], before[2])
    own = {name: p[1].detach() for name, p in parameters.items()}
    assert relative(wide[1], literal_values(config, own, batch, 1)) < 1e-10
    assert torch.isfinite(torch.autograd.grad(wide.sum(), parameters["A"])[0]).all()


@each_variant
def test_reading_a_state_is_the_value_that_a_context_ending_there_gives(
    variant: dict[str, object],
) -> None:
    config = configuration(**variant)
    model, parameters = drawn_parameters(config)
    batch = _tasks.Schedule(config).batch(0).first_window()
    read = model.read(parameters, batch, batch.features)
    at_query = read.gather(-1, batch.queries)
    assert relative(at_query, model.values(parameters, batch)) < 1e-12
