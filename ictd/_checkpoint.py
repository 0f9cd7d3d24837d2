"""Checkpoints of a pretraining run: one safetensors file, written whole or not at all.

`pretraining.safetensors` holds the tensors and, in its header, what it is, the configuration and a digest
of the tensors. `pretraining.json` beside it says the same of the configuration to a human reader; nothing
reads it.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ictd._config import PretrainConfig
from ictd._files import write_bytes

_FORMAT = "ictd pretraining, 1"
# Fields that do not decide what a step computes.
_FREE = {"n_steps", "checkpoint_dir", "checkpoint_every", "device"}


class CheckpointError(ValueError):
    """A checkpoint that cannot be gone on with; nothing of it was taken over."""


class Checkpoint:
    """The checkpoint in the folder of a configuration.

    Raises:
        CheckpointError: the folder cannot be made or written to.
        ImportError: safetensors is not installed; the library needs it here alone.
    """

    def __init__(self, config: PretrainConfig) -> None:
        try:
            import safetensors.torch
        except ImportError:
            raise ImportError(
                "checkpoint_dir needs the package safetensors: pip install safetensors"
            ) from None
        self.safetensors: Any = safetensors
        self.config = config
        self.folder = Path(config.checkpoint_dir)
        self.path = self.folder / "pretraining.safetensors"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"checkpoint_dir {self.folder}: {error.strerror}") from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise CheckpointError(f"checkpoint_dir {self.folder}: the folder cannot be written to")

    def save(self, state: dict[str, Tensor], step: int) -> None:
        """Put the state in the place of the last one; a reader finds the one or the other."""
        header = {
            "format": _FORMAT,
            "config": json.dumps(self._decisive()),
            "digest": _digest(state),
            "torch": torch.__version__,
        }
        write_bytes(self.path, self.safetensors.torch.save(state, header))
        about = {"step": step, "torch": torch.__version__, "config": self.config.as_dict()}
        write_bytes(self.path.with_suffix(".json"), json.dumps(about, indent=2).encode())

    def load(self, template: dict[str, Tensor]) -> dict[str, Tensor] | None:
        """The saved state, or None if there is none.

        Args:
            template: a state of the configuration; all but the history must have its shapes and dtypes.

        Raises:
            CheckpointError: the file is damaged, something else, or of another configuration.
        """
        if not self.path.exists():
            return None
        try:
            with self.safetensors.safe_open(self.path, "pt") as file:
                header = file.metadata() or {}
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (self.safetensors.SafetensorError, OSError) as error:
            raise self._refused(f"it cannot be read ({error})") from None
        if header.get("format") != _FORMAT:
            raise self._refused("it is no checkpoint of ictd.pretrain")
        self._check_config(header)
        if header.get("digest") != _digest(state):
            raise self._refused("its tensors are not those that were saved")
        self._check_shapes(state, template)
        step = int(state["step"])
        if step > self.config.n_steps:
            raise self._refused(f"it is of step {step}, beyond n_steps = {self.config.n_steps}")
        return state

    def _check_config(self, header: dict[str, str]) -> None:
        try:
            saved = json.loads(header["config"])
        except (KeyError, ValueError):
            raise self._refused("its configuration cannot be read") from None
        own = self._decisive()
        if differing := [
            f"{name} = {saved.get(name)!r} there, {own.get(name)!r} here"
            for name in {**saved, **own}
            if saved.get(name) != own.get(name)
        ]:
            raise self._refused(f"it is of another configuration: {'; '.join(differing)}")

    def _check_shapes(self, state: dict[str, Tensor], template: dict[str, Tensor]) -> None:
        own = {name for name in template if not name.startswith("history.")}
        history = [tensor for name, tensor in state.items() if name.startswith("history.")]
        fits = own == {name for name in state if not name.startswith("history.")} and all(
            state[name].shape == template[name].shape and state[name].dtype == template[name].dtype
            for name in own
        )
        if not fits or not history or len({len(tensor) for tensor in history}) != 1:
            raise self._refused("its tensors are not those of this configuration")

    def _decisive(self) -> dict[str, Any]:
        return {name: value for name, value in self.config.as_dict().items() if name not in _FREE}

    def _refused(self, why: str) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {self.path} is not gone on with: {why}. Move it away to start anew, or give "
            "another checkpoint_dir."
        )


def _digest(state: dict[str, Tensor]) -> str:
    hashed = hashlib.sha256()
    for name, tensor in sorted(state.items()):
        hashed.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        hashed.update(tensor.contiguous().numpy().tobytes())
    return hashed.hexdigest()
