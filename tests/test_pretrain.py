"""Pretraining: seeds, what emerges, divergence, the result and its history."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch
from pretraining_cases import (
    configuration,
    each_protocol,
    each_variant,
    pretraining,
    relative,
    train,
    trajectories,
)

import ictd
from ictd import _models, _tasks


@each_protocol
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_a_seed_does_not_depend_on_the_others(protocol: str, dtype: str, attention: str) -> None:
    fields = {"protocol": protocol, "dtype": dtype, "attention": attention, "n_steps": 25}
    together = train(**fields, seeds=(4, 0, 9, 2, 7))
    for place, seed in ((0, 4), (2, 9)):
        alone = train(**fields, seeds=[seed])
        for name, values in alone.parameters.items():
            assert np.array_equal(values[0], together.parameters[name][place])
        for name, values in alone.history.items():
            if name != "step":
                assert np.allclose(values[:, 0], together.history[name][:, place], rtol=1e-5)


def test_seeds_start_from_their_own_streams() -> None:
    result = train(n_steps=0, seeds=40, n_features=10)
    entries = result.A.ravel()
    assert abs(entries.std() - 0.1) < 0.005
    assert len(np.unique(entries)) == entries.size
    assert np.array_equal(train(n_steps=0, seeds=[17], n_features=10).A[0], result.A[17])


def test_a_second_run_gives_the_same_bits() -> None:
    first, second = train(protocol="window"), train(protocol="window")
    for name, values in first.history.items():
        assert np.array_equal(values, second.history[name], equal_nan=True)
    assert np.array_equal(first.A, second.A)


def test_the_signs_of_td_emerge_and_attention_grows_more_diagonal() -> None:
    result = ictd.pretrain(
        ictd.PretrainConfig(n_steps=300, eval_every=100, context_length=60, n_layers=6, seeds=3),
        progress=False,
    )
    assert (np.sign(result.V) == [1, 1, -1]).all()
    seen = result.history["visit_weighted_diagonality"]
    assert (seen[-1] > seen[0] + 0.1).all()
    assert (result.history["value_error"][-1] < 0.6 * result.history["value_error"][0]).all()
    assert result.history["step"].tolist() == [0, 100, 200, 300]


@pytest.mark.parametrize("loss", ["td", "mc", "true"])
@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_every_loss_lowers_the_value_error(loss: str, attention: str) -> None:
    result = train(
        loss=loss, attention=attention, n_steps=200, learning_rate=0.01, gamma=0.5, eval_tasks=32
    )
    errors = result.history["value_error"]
    assert (errors[-1] < 0.9 * errors[0]).all()


@pytest.mark.parametrize("protocol", ["fresh", "window"])
def test_a_seed_that_diverges_stops_and_the_others_go_on(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"protocol": protocol, "n_steps": 9, "seeds": (1, 2, 3)}
    sound = train(**fields)
    right = pretraining.losses

    def one_breaks(model: object, parameters: object, batch: _tasks.Batch) -> torch.Tensor:
        loss = right(model, parameters, batch)
        calls.append(loss)
        # The loss of the evaluation before the first step comes first.
        return loss * torch.tensor([1.0, np.inf, 1.0]) if len(calls) == 6 else loss

    calls: list[torch.Tensor] = []
    monkeypatch.setattr(pretraining, "losses", one_breaks)
    with pytest.warns(RuntimeWarning, match=r"seed 2 stopped at step 4"):
        result = train(**fields)
    assert result.stopped == {2: 4}
    monkeypatch.setattr(pretraining, "losses", right)
    assert np.array_equal(result.A[1], train(**{**fields, "n_steps": 4}).A[1])
    for place in (0, 2):
        assert np.array_equal(result.A[place], sound.A[place])
    assert np.isfinite(result.history["loss"][:, [0, 2]]).all()
    assert np.isfinite(result.history["loss"][:2, 1]).all()
    assert np.isnan(result.history["loss"][2:, 1]).all()


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_a_learning_rate_far_too_high_ends_the_run_with_finite_parameters(attention: str) -> None:
    with pytest.warns(RuntimeWarning, match="stopped at step") as warned:
        result = train(
            attention=attention,
            learning_rate=1e30,
            n_steps=500,
            dtype="float32",
            seeds=2,
        )
    assert len(warned) == 2
    assert set(result.stopped) == {0, 1}
    assert max(result.stopped.values()) < 500
    assert all(np.isfinite(values).all() for values in result.parameters.values())


@each_variant
def test_the_network_of_a_seed_is_the_one_that_was_trained(variant: dict[str, object]) -> None:
    result = train(**variant)
    config = result.config
    own = {name: torch.from_numpy(p) for name, p in result.parameters.items()}
    batch = _tasks.Schedule(config).batch(0)
    values = _models.build(config).values(own, batch)
    network = result.network(8)
    for w, trajectory in enumerate(trajectories(batch, 1, 2)):
        x = batch.features[1, 2]
        if config.attention == "softmax":
            value = ictd.read_values(network(ictd.prompt(trajectory, x)))[-1]
        else:
            value = ictd.read_linear_value(network(ictd.linear_prompt(trajectory, x, config.gamma)))
        assert relative(value.detach(), values[1, 2, w]) < 1e-10
    with pytest.raises(ValueError, match=r"seed must be one of \(3, 8\), got 0"):
        result.network(0)


def test_shapes_of_the_parameters() -> None:
    d = 3
    assert train(n_steps=0).V.shape == (2, 3)
    assert train(n_steps=0).A.shape == (2, d, d)
    assert train(n_steps=0, shared_layers=False).A.shape == (2, 3, d, d)
    assert train(n_steps=0, masked=False).V.shape == (2, d + 3, d + 3)
    linear = train(n_steps=0, attention="linear")
    assert linear.P.shape == (2, 1, 1)
    assert linear.Q.shape == (2, 2 * d, 2 * d)
    with pytest.raises(AttributeError, match="linear attention has no V, only P, Q"):
        linear.V  # noqa: B018
    assert train(n_steps=0, attention="linear", masked=False).P.shape == (2, 2 * d + 1, 2 * d + 1)


def test_masked_entries_stay_zero_and_free_ones_move() -> None:
    masked = train().network(3)
    d = 3
    V, A = masked.V.detach().numpy(), masked.A.detach().numpy()
    free_V, free_A = np.zeros_like(V, bool), np.zeros_like(A, bool)
    free_V[d + 2, d:] = free_A[:d, :d] = True
    assert (V[~free_V] == 0).all()
    assert (A[~free_A] == 0).all()
    assert (V[free_V] != 0).all()
    assert (A[free_A] != 0).all()
    before, after = train(masked=False, n_steps=0), train(masked=False)
    target_row = d + 1  # the shift erases it, so it has no gradient
    moved = before.V != after.V
    assert not moved[:, target_row].any()
    assert np.delete(moved, target_row, 1).all()


def test_history_has_an_evaluation_before_the_first_and_after_the_last_step() -> None:
    result = train(n_steps=7, eval_every=3)
    assert result.history["step"].tolist() == [0, 3, 6, 7]
    for name, values in result.history.items():
        assert values.shape[0] == 4
        if name != "step":
            assert values.shape[1] == 2
    assert np.array_equal(result.history["A"][-1], result.A)
    for place, steps in enumerate((0, 3, 6)):
        assert np.array_equal(result.history["A"][place], train(n_steps=steps).A)
    assert train(n_steps=7, shared_layers=False).history["V"].shape == (4, 2, 3, 3)
    separate = train(n_steps=1, shared_layers=False).history["population_diagonality"]
    assert separate.shape == (2, 2, 3)


def test_the_recorded_loss_is_the_mean_since_the_evaluation_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[np.ndarray] = []
    right = pretraining.losses

    def recorded(*arguments: object) -> torch.Tensor:
        loss = right(*arguments)
        seen.append(loss.detach().numpy().copy())
        return loss

    monkeypatch.setattr(pretraining, "losses", recorded)
    result = train(n_steps=5, eval_every=3)
    loss = result.history["loss"]
    assert np.allclose(loss[0], seen[0])
    assert np.allclose(seen[0], seen[1])
    assert np.allclose(loss[1], np.mean(seen[1:4], axis=0))
    assert np.allclose(loss[2], np.mean(seen[4:6], axis=0))


def test_a_bar_shows_loss_and_rate_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ictd.pretrain(configuration(), progress=True)
    shown = capsys.readouterr().err
    assert "pretraining: 100%" in shown
    assert "loss=" in shown or "step/s" in shown
    ictd.pretrain(configuration(), progress=False)
    assert capsys.readouterr().err == ""


def test_names_stay_functions_when_their_modules_are_loaded() -> None:
    importlib.import_module("ictd.pretrain")
    importlib.import_module("ictd.neu")
    assert callable(ictd.pretrain)
    assert callable(ictd.neu)
