"""Use an installed ictd, from outside the project: `python -I install_smoke.py FOLDER`.

FOLDER is where it has to be installed. PyTorch is used if it is there. The versions that were found are
printed as JSON; a check that fails raises.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.resources
import importlib.util
import io
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

HEAVY = {"torch", "matplotlib"}


def check_import(folder: Path) -> None:
    import ictd

    file = Path(ictd.__file__).resolve()
    assert file.is_relative_to(folder.resolve()), f"ictd is {file}, not below {folder}"
    assert HEAVY.isdisjoint(sys.modules), f"import ictd loads {HEAVY & set(sys.modules)}"
    for name in ("py.typed", "book/page/page.css"):
        assert importlib.resources.files("ictd").joinpath(name).is_file(), f"{name} is missing"


def check_example() -> None:
    """The README's example, from the metadata of the installed library."""
    readme = importlib.metadata.metadata("ictd").get_payload()
    (code,) = re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    error = float(printed.getvalue())
    assert 0 < error < 1, f"the values of the README's example are off by {error}"
    assert HEAVY.isdisjoint(sys.modules)


def check_networks() -> None:
    """Both constructed networks against weighted softmax TD, and a few steps of pretraining."""
    import numpy as np
    import torch

    import ictd

    rng = np.random.default_rng(0)
    S, d, layers = 6, 4, 20
    chain = ictd.boyan_chain(S, 0.9, rng)
    context, x = chain.sample(30, rng), ictd.sphere_features(S, d, rng)
    scores = ictd.inner_product_scores(x)
    values = ictd.weighted_softmax_td(context, scores, chain.gamma, layers)
    for network in (ictd.DualHeadTransformer, ictd.SoftmaxTransformer):
        states = network.td(d, chain.gamma, layers).layers(ictd.prompt(context, x))
        difference = np.abs(states[:, -1].detach().numpy() - values[:, context.states]).max()
        assert difference < 1e-12, f"{network.__name__} differs by {difference}"
    A = torch.eye(d, dtype=torch.float64)
    V = torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64)
    passed = ictd.state_pass(context, x, A, V, chain.gamma, layers).numpy()
    assert np.abs(passed - values).max() < 1e-12
    trained = ictd.pretrain(ictd.PretrainConfig(n_steps=3, eval_tasks=2, seeds=2))
    assert all(np.isfinite(np.asarray(row)).all() for row in (trained.V, trained.A))


def check_without_torch() -> None:
    """A name that needs PyTorch says so."""
    import ictd

    missing = None
    try:
        _ = ictd.prompt
    except ModuleNotFoundError as error:
        missing = error.name
    assert missing == "torch", f"ictd.prompt does not ask for torch, but for {missing}"


def check_command() -> None:
    """Without the book's packages, the command says what it lacks."""
    if importlib.util.find_spec("psutil") is not None:
        return
    programs = Path(sys.executable).parent
    done = subprocess.run([programs / "ictd", "run", "02"], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "pip install '.[book]'" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def main() -> None:
    check_command()
    check_import(Path(sys.argv[1]))
    check_example()
    has_torch = importlib.util.find_spec("torch") is not None
    (check_networks if has_torch else check_without_torch)()
    found = {"python": platform.python_version(), "numpy": importlib.metadata.version("numpy")}
    found["torch"] = importlib.metadata.version("torch") if has_torch else None
    print(json.dumps(found))


if __name__ == "__main__":
    main()
