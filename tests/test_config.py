"""The configuration of a pretraining run: what it refuses, and by which name."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import ictd

BAD = {
    "n_states": [2, 0, 5.0, True, "5"],
    "n_features": [0],
    "context_length": [0],
    "n_layers": [0],
    "gamma": [1.0, -0.1, float("nan"), "0.5"],
    "features": ["onehot", None, 3],
    "chain": ["ring"],
    "n_steps": [-1],
    "batch_size": [0],
    "learning_rate": [0.0, -1.0, float("inf"), "fast"],
    "weight_decay": [-1e-6],
    "seeds": [(), 0, (1, 1), (-1,), (2**32,), (0.5,), "12", True, None],
    "attention": ["hard"],
    "masked": [1, None],
    "shared_layers": ["yes"],
    "loss": ["sarsa"],
    "protocol": ["slide"],
    "eval_every": [0],
    "checkpoint_dir": [3.5],
    "device": ["abacus", 3.5, "cuda:99", "meta"],
    "dtype": ["float16", torch.float16, np.float32],
    "initial_scale": [-0.1],
    "eval_tasks": [0],
    "checkpoint_every": [0],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_bad_fields_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        ictd.PretrainConfig(**{name: value})


def test_every_field_is_tried() -> None:
    assert set(BAD) == {field.name for field in dataclasses.fields(ictd.PretrainConfig)}


def test_smallest_chains_and_one_hot_features_are_refused_by_name() -> None:
    assert ictd.PretrainConfig(chain="random", n_states=1).n_states == 1
    with pytest.raises(ValueError, match="n_states must be an integer ≥ 2, got 1"):
        ictd.PretrainConfig(chain="loop", n_states=1)
    with pytest.raises(ValueError, match="n_features must be n_states, 5, for one-hot"):
        ictd.PretrainConfig(features="one-hot", n_features=4)


def test_a_device_that_is_missing_is_refused_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 0)
    monkeypatch.setattr(torch.mps, "device_count", lambda: 0)
    expected = "^device must be a device that torch has here, cpu, cuda:0, cuda:1, got 'cuda:99'$"
    with pytest.raises(ValueError, match=expected):
        ictd.PretrainConfig(device="cuda:99")
    assert ictd.PretrainConfig(device=torch.device("cpu")).device == "cpu"


def test_fields_take_the_types_that_users_have() -> None:
    config = ictd.PretrainConfig(seeds=np.arange(3), dtype=torch.float64, n_states=np.int64(6))
    assert config.seeds == (0, 1, 2)
    assert config.dtype == "float64"
    assert config.torch_dtype is torch.float64
    assert ictd.PretrainConfig(seeds=3).seeds == (0, 1, 2)
    assert ictd.PretrainConfig(seeds=[3]).seeds == (3,)


def test_pretrain_takes_a_configuration_alone() -> None:
    with pytest.raises(ValueError, match=r"config must be an ictd\.PretrainConfig, got dict"):
        ictd.pretrain({"n_states": 5})
