"""The pass over states: values and gradients of the literal network, from counts."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import strategies as literal
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from strategies import assert_close, contexts, examples, seeds, softmax
from torch.utils.flop_counter import FlopCounterMode

import ictd

TD = torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64)


def trajectory_of(context: literal.Context) -> ictd.Trajectory:
    return ictd.Trajectory(context.states, context.rewards)


def scale_of(context: literal.Context) -> float:
    """The largest reward; where it is subnormal, rounding is not relative to it."""
    return max(context.scale, 1e-290)


def random_grid(seed: int, *shape: int, scale: float) -> torch.Tensor:
    """Numbers up to ±scale. On a dyadic grid, so that the scores are exact in float64."""
    integers = np.random.default_rng(seed).integers(-16, 17, shape)
    return torch.from_numpy(integers * (scale / 16))


@st.composite
def parameters(
    draw: st.DrawFn,
    context: literal.Context,
    A_batch: tuple[int, ...] = (),
    V_batch: tuple[int, ...] = (),
) -> tuple[torch.Tensor, torch.Tensor, int | None]:
    """A, V and n_layers: shared by all layers, or a set for each and n_layers None."""
    looped, d = draw(st.booleans()), context.d
    layers = () if looped else (context.depth,)
    size = draw(st.sampled_from([0.25, 1.0, 4.0]))
    A = random_grid(draw(seeds), *A_batch, *layers, d, d, scale=size)
    V = random_grid(draw(seeds), *V_batch, *layers, 3, scale=2.0)
    return A, V, context.depth if looped else None


def literal_network(
    A: torch.Tensor, V: torch.Tensor, gamma: float, n_layers: int | None
) -> ictd.SoftmaxTransformer:
    """A in the feature block, (a, b, c) at the end of the last row, zero elsewhere."""
    d = A.shape[-1]
    matrices = A.new_zeros(2, *A.shape[:-2], d + 3, d + 3)
    matrices[0, ..., :d, :d] = A
    matrices[1, ..., -1, d:] = V
    return ictd.SoftmaxTransformer(*matrices, gamma, n_layers)


def literal_values(trajectory: ictd.Trajectory, x, A, V, gamma, n_layers) -> torch.Tensor:
    """Last rows of Z_0 … Z_L, shape (..., L+1, n+1)."""
    layers = literal_network(A, V, gamma, n_layers).layers(ictd.prompt(trajectory, x))
    return ictd.read_values(layers).movedim(0, -2).detach()


def literal_pass(context: literal.Context, A, V, n_layers: int | None) -> np.ndarray:
    """v + M̂(a r̃ + b γ P̃v + c v) at all states, M̂ the n-term sum of (20); shape (L+1, S)."""
    S, n, d, x = context.n_states, context.n, context.d, context.features
    L, states, rewards = context.depth, context.states, context.rewards
    r, P = np.zeros(S), np.zeros((S, S))
    for s in range(S):
        visits = [k for k in range(1, n + 1) if states[k - 1] == s]
        for k in visits:
            r[s] += rewards[k - 1] / len(visits)
            P[s, states[k]] += 1 / len(visits)
    v = np.zeros(S)
    iterates = [v]
    for layer in range(L):
        B, (a, b, c) = (np.asarray(m if n_layers is not None else m[layer]) for m in (A, V))
        M = np.zeros((S, S))
        for s in range(S):
            score = [
                sum(x[t, i] * B[i, j] * x[s, j] for i in range(d) for j in range(d))
                for t in range(S)
            ]
            K = softmax([score[states[k - 1]] for k in range(1, n + 1)])
            for k in range(1, n + 1):
                M[s, states[k - 1]] += K[k - 1]
        new = [0.0] * S
        for s in range(S):
            new[s] = v[s]
            for t in range(S):
                following = sum(P[t, u] * v[u] for u in range(S))
                new[s] += M[s, t] * (a * r[t] + b * context.gamma * following + c * v[t])
        v = np.array(new)
        iterates.append(v)
    return np.array(iterates)


# --- values -----------------------------------------------------------------------------------------


@given(context=contexts(), data=st.data())
@examples(100)
def test_it_is_the_literal_network_at_every_column_and_every_layer(context, data) -> None:
    A, V, n_layers = data.draw(parameters(context))
    trajectory = trajectory_of(context)
    v = ictd.state_pass(trajectory, context.features, A, V, context.gamma, n_layers)
    assert v.dtype == torch.float64
    assert v.shape == (context.depth + 1, context.n_states)
    expected = literal_values(trajectory, context.features, A, V, context.gamma, n_layers)
    assert_close(v[:, context.states], expected, 1e-10, scale_of(context))


@given(context=contexts(), data=st.data())
@examples(60)
def test_it_is_the_sum_over_positions_at_every_state(context, data) -> None:
    """States that the context does not visit included."""
    A, V, n_layers = data.draw(parameters(context))
    v = ictd.state_pass(
        trajectory_of(context), context.features, A, V, context.gamma, n_layers
    ).numpy()
    assert_close(v, literal_pass(context, A, V, n_layers), 1e-10, scale_of(context))


@given(context=contexts(), separate=st.booleans())
@examples(80)
def test_at_the_construction_it_is_weighted_softmax_td_at_every_state(context, separate) -> None:
    x, L = context.features, context.depth
    A, V = torch.eye(context.d, dtype=torch.float64), TD
    if separate:
        A, V = A.expand(L, -1, -1), V.expand(L, -1)
    trajectory = trajectory_of(context)
    v = ictd.state_pass(trajectory, x, A, V, context.gamma, None if separate else L)
    expected = ictd.weighted_softmax_td(trajectory, ictd.inner_product_scores(x), context.gamma, L)
    assert_close(v, expected, 1e-10, scale_of(context))


@pytest.mark.parametrize("size", [1e3, 1e4])
def test_an_unvisited_state_with_the_highest_score_takes_no_weight(size: float) -> None:
    """Subtracting its score from the others would leave 0/0."""
    A, x = torch.tensor([[size]]).double(), np.array([[0.125], [-0.25], [2.0]])
    for states in ([0, 1, 0, 1], [0, 1, 0, 2]):
        trajectory = ictd.Trajectory(states, [1.0, -2.0, 0.5])
        v = ictd.state_pass(trajectory, x, A, TD, 0.9, 3)
        assert torch.isfinite(v).all()
        assert_close(v[:, states], literal_values(trajectory, x, A, TD, 0.9, 3), 1e-12)
        # Every query takes its best visited source alone; the mean rewards are 0.75 and −2.
        assert_close(v[1], [0.75, -2.0, 0.75], 1e-12)


def test_a_deep_network_whose_values_diverge() -> None:
    angles = np.array([0, 0.4, 2.4])
    x = np.column_stack([np.cos(angles), np.sin(angles)])
    trajectory = ictd.Trajectory([0, 1, 2], [1.0, -1.0])
    parts = torch.eye(2, dtype=torch.float64), TD, 0.9, 1000
    v = ictd.state_pass(trajectory, x, *parts)
    assert v[-1, 2] < -1e8
    assert_close(v, literal_values(trajectory, x, *parts), 1e-10)


# --- gradients --------------------------------------------------------------------------------------


@given(context=contexts(), data=st.data(), seed=seeds)
@examples(100)
def test_gradients_are_those_of_the_literal_network(context, data, seed) -> None:
    """To A, to (a, b, c) and to the features, which the literal prompt gathers by state."""
    context = replace(context, depth=max(1, context.depth))
    A, V, n_layers = data.draw(parameters(context))
    x = torch.from_numpy(context.features)
    trajectory, d = trajectory_of(context), context.d
    cotangent = random_grid(seed, context.depth + 1, context.n + 1, scale=1.0)

    inputs = [tensor.requires_grad_(True) for tensor in (A, V, x)]
    v = ictd.state_pass(trajectory, x, A, V, context.gamma, n_layers)[:, context.states]
    to_A, to_V, to_x = torch.autograd.grad((v * cotangent).sum(), inputs)

    network = literal_network(A.detach(), V.detach(), context.gamma, n_layers)
    values = ictd.read_values(network.layers(ictd.prompt(trajectory, x)))
    expected = torch.autograd.grad((values * cotangent).sum(), [network.A, network.V, x])

    scale = max(scale_of(context), values.abs().max().item())
    size_x, size_A = (max(1.0, tensor.abs().max().item()) for tensor in (x, A))
    assert_close(to_V, expected[1][..., -1, d:], 1e-10, scale)
    assert_close(to_A, expected[0][..., :d, :d], 1e-10, scale * size_x**2)
    assert_close(to_x, expected[2], 1e-10, scale * size_x * size_A)


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("states", [[0, 1, 1, 0, 3], [[0, 1, 1, 0, 3], [2, 2, 2, 2, 2]]])
def test_gradients_of_every_value_are_those_of_finite_differences(separate: bool, states) -> None:
    """Of unvisited states as well."""
    rewards = np.broadcast_to([1.0, 2.0, -1.0, 0.5], (*np.shape(states)[:-1], 4))
    trajectory = ictd.Trajectory(states, rewards)
    layers, n_layers = ((3,), None) if separate else ((), 3)
    inputs = [
        random_grid(seed, *shape, scale=1.0).requires_grad_(True)
        for seed, shape in enumerate([(4, 2), (*layers, 2, 2), (*layers, 3)])
    ]
    assert torch.autograd.gradcheck(
        lambda x, A, V: ictd.state_pass(trajectory, x, A, V, 0.9, n_layers), inputs
    )


# --- batches ----------------------------------------------------------------------------------------


@given(data=st.data(), shapes=mutually_broadcastable_shapes(num_shapes=4, max_dims=2, max_side=3))
@examples(80)
def test_leading_dimensions_broadcast(data, shapes) -> None:
    """Those of the trajectory, the features, A and V; each member is what it is alone."""
    batch, batches = shapes.result_shape, shapes.input_shapes
    context = data.draw(contexts(*batches[:2]))
    A, V, n_layers = data.draw(parameters(context, *batches[2:]))
    states, rewards, x, gamma = context.states, context.rewards, context.features, context.gamma
    v = ictd.state_pass(ictd.Trajectory(states, rewards), x, A, V, gamma, n_layers)
    assert v.shape == (*batch, context.depth + 1, context.n_states)

    def members(array, leading: tuple[int, ...]):
        return np.broadcast_to(array, (*batch, *np.shape(array)[len(leading) :]))

    states, rewards = (members(array, batches[0]) for array in (states, rewards))
    x, A, V = (members(*pair) for pair in zip((x, A, V), batches[1:], strict=True))
    for index in np.ndindex(*batch):
        alone = ictd.state_pass(
            ictd.Trajectory(states[index], rewards[index]),
            x[index],
            torch.tensor(A[index]),
            torch.tensor(V[index]),
            gamma,
            n_layers,
        )
        assert_close(v[index], alone, 1e-11, scale_of(context))


@pytest.mark.parametrize("separate", [False, True])
def test_parameters_of_many_seeds_on_many_tasks(separate: bool) -> None:
    """A (seeds, 1, …) and V (seeds, 1, …) with tasks (tasks,): the literal network of each seed."""
    n_seeds, n_tasks, S, d, n, L = 3, 4, 5, 2, 9, 3
    rng = np.random.default_rng(0)
    trajectory = ictd.boyan_chain(S, 0.9, rng, (n_tasks,)).sample(n, rng)
    x = ictd.uniform_features(S, d, rng, (n_tasks,))
    layers, n_layers = ((L,), None) if separate else ((), L)
    A = random_grid(1, n_seeds, 1, *layers, d, d, scale=1.0).requires_grad_(True)
    V = random_grid(2, n_seeds, 1, *layers, 3, scale=1.0).requires_grad_(True)
    v = ictd.state_pass(trajectory, x, A, V, 0.9, n_layers)
    assert v.shape == (n_seeds, n_tasks, L + 1, S)
    at_query = v[:, np.arange(n_tasks), -1, trajectory.states[:, -1]]
    at_query.square().sum().backward()
    for seed in range(n_seeds):
        network = literal_network(A[seed, 0].detach(), V[seed, 0].detach(), 0.9, n_layers)
        values = ictd.read_values(network(ictd.prompt(trajectory, x)))
        assert_close(at_query[seed].detach(), values[:, -1].detach(), 1e-12)
        values[:, -1].square().sum().backward()
        assert_close(A.grad[seed, 0], network.A.grad[..., :d, :d], 1e-12)
        assert_close(V.grad[seed, 0], network.V.grad[..., -1, d:], 1e-12)


# --- dtypes -----------------------------------------------------------------------------------------

TRAJECTORY = ictd.Trajectory([0, 1, 0, 0, 2], [1.0, 2.0, -1.0, 0.5])
X = np.array([[1.0, 0.5], [-0.25, 1.0], [0.5, -1.0]])
EYE = torch.eye(2, dtype=torch.float64)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 0.05), (torch.float16, 0.01)]
)
def test_it_stays_in_the_dtype_of_the_features(dtype: torch.dtype, tolerance: float) -> None:
    exact = ictd.state_pass(TRAJECTORY, X, EYE, TD, 0.9, 4)
    v = ictd.state_pass(
        TRAJECTORY, torch.from_numpy(X).to(dtype), EYE.to(dtype), TD.to(dtype), 0.9, 4
    )
    assert v.dtype == dtype
    assert_close(v.double(), exact, tolerance)


@pytest.mark.parametrize(
    ("features", "dtype"),
    [
        (X, torch.float64),
        (X.tolist(), torch.float64),
        (X.astype(np.float32), torch.float32),
        (np.eye(3, 2, dtype=int), torch.float64),
        (torch.eye(3, dtype=torch.int32)[:, :2], torch.float64),
        (torch.from_numpy(X), torch.float64),
    ],
)
def test_features_may_be_arrays_or_tensors(features, dtype: torch.dtype) -> None:
    v = ictd.state_pass(TRAJECTORY, features, EYE.to(dtype), TD.to(dtype), 0.9, 2)
    assert v.dtype == dtype
    table = torch.tensor(np.asarray(features), dtype=dtype)
    assert torch.equal(v, ictd.state_pass(TRAJECTORY, table, EYE.to(dtype), TD.to(dtype), 0.9, 2))


# --- cost -------------------------------------------------------------------------------------------


def cost(values) -> tuple[int, int]:
    """Operations of a forward and backward pass, and numbers kept in between."""
    kept = []
    keep = torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.numel()) or tensor, lambda tensor: tensor
    )
    with FlopCounterMode(display=False) as counter, keep:
        values().sum().backward()
    return counter.get_total_flops(), sum(kept)


def test_the_cost_does_not_depend_on_the_length_of_the_context() -> None:
    rng = np.random.default_rng(0)
    chain, x = ictd.boyan_chain(10, 0.9, rng), ictd.sphere_features(10, 4, rng)
    A, V = torch.eye(4, dtype=torch.float64).requires_grad_(True), TD.clone().requires_grad_(True)
    network = ictd.SoftmaxTransformer.td(4, 0.9, 5)

    def costs(n: int) -> tuple[tuple[int, int], tuple[int, int]]:
        trajectory = chain.sample(n, rng)
        return (
            cost(lambda: ictd.state_pass(trajectory, x, A, V, 0.9, 5)),
            cost(lambda: network(ictd.prompt(trajectory, x))),
        )

    (short, _), (long, long_literal) = costs(50), costs(500)
    assert min(short) > 0
    assert short == long
    assert all(literal > 100 * states for states, literal in zip(long, long_literal, strict=True))


# --- errors -----------------------------------------------------------------------------------------


def refused(message: str, n_layers: int | None = 2, **changed) -> None:
    """state_pass says so of the changed arguments."""
    if n_layers is None:
        changed = {"A": EYE.expand(2, 2, 2), "V": TD.expand(2, 3)} | changed
    arguments = {"trajectory": TRAJECTORY, "features": X, "A": EYE, "V": TD, "gamma": 0.9} | changed
    with pytest.raises(ValueError, match=message):
        ictd.state_pass(**arguments, n_layers=n_layers)


@pytest.mark.parametrize(("name", "good"), [("A", EYE), ("V", TD)])
def test_wrong_parameters_are_refused(name: str, good: torch.Tensor) -> None:
    dtype = rf"^{name} must be a tensor of the dtype of the features, torch\.float64, got "
    refused(dtype + "ndarray", **{name: good.numpy()})
    refused(dtype + "list", **{name: good.tolist()})
    refused(dtype + r"a tensor of torch\.float32", **{name: good.float()})
    refused(dtype + r"a tensor of torch\.int64", **{name: good.long()})
    refused(
        dtype + r"a tensor of torch\.float32", None, **{name: good.float().expand(2, *good.shape)}
    )
    for bad in (torch.nan, torch.inf, -torch.inf):
        refused(
            f"^{name} must be finite, got NaN or infinity", **{name: torch.full_like(good, bad)}
        )


def test_features_of_another_dtype_than_the_parameters_are_refused() -> None:
    message = r"^A must be a tensor of the dtype of the features, torch\.float32, got .*float64"
    refused(message, features=X.astype(np.float32))
    refused(message, features=torch.from_numpy(X).float())


@pytest.mark.parametrize(
    ("name", "shape", "n_layers", "wanted"),
    [
        ("A", (3, 3), 2, "..., 2, 2"),
        ("A", (2, 3), 2, "..., 2, 2"),
        ("A", (5, 5), 2, "..., 2, 2"),
        ("A", (2,), 2, "..., 2, 2"),
        ("A", (), 2, "..., 2, 2"),
        ("A", (2, 2), None, "..., n_layers, 2, 2"),
        ("A", (2, 3, 2), None, "..., n_layers, 2, 2"),
        ("V", (2,), 2, "..., 3"),
        ("V", (5, 5), 2, "..., 3"),
        ("V", (), 2, "..., 3"),
        ("V", (3,), None, "..., n_layers, 3"),
        ("V", (2, 2), None, "..., n_layers, 3"),
    ],
)
def test_wrong_shapes_are_refused(name: str, shape, n_layers: int | None, wanted: str) -> None:
    message = f"{name} must have shape ({wanted}), got {shape}"
    refused(f"^{re.escape(message)}$", n_layers, **{name: torch.zeros(shape, dtype=torch.float64)})


def test_different_numbers_of_layers_are_refused() -> None:
    message = "^A and V must have the same number of layers where n_layers is None, got 3 and "
    A = EYE.expand(3, 2, 2)
    for layers in (0, 1, 2):
        refused(f"{message}{layers}$", None, A=A, V=TD.expand(layers, 3))


@pytest.mark.parametrize("n_layers", [-1, 2.0, True, "2"])
def test_wrong_numbers_of_layers_are_refused(n_layers) -> None:
    refused(rf"^n_layers must be an integer ≥ 0, got {n_layers!r}$", n_layers)


@pytest.mark.parametrize("gamma", [1.0, -0.1, float("nan"), float("inf"), True, "0.9", None])
def test_wrong_discount_factors_are_refused(gamma) -> None:
    refused(rf"^gamma must be .*\[0, 1\), got {gamma!r}$", gamma=gamma)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.eye(2), r"^trajectory\.states must be state indices in 0\.\.1 \(2 states\), got 2"),
        (np.zeros(2), r"^features must have shape \(\.\.\., S, d\), not empty, got \(2,\)"),
        (torch.zeros(3, 0), r"^features must have shape .* not empty, got \(3, 0\)"),
        (X * np.nan, r"^features must be finite, got nan at index \(0, 0\)"),
        (torch.full((3, 2), torch.inf), r"^features must be finite, got NaN or infinity"),
        ("x", r"^features must be an array of real numbers, got dtype <U1"),
        (EYE.to(torch.complex64), r"^features must be real, got torch\.complex64"),
    ],
)
def test_wrong_features_are_refused(features, message: str) -> None:
    refused(message, features=features)


@pytest.mark.parametrize("trajectory", [([0, 1], [1.0]), np.zeros(3, dtype=int), None])
def test_a_trajectory_is_needed(trajectory) -> None:
    kind = type(trajectory).__name__
    refused(rf"^trajectory must be an ictd\.Trajectory, got {kind}$", trajectory=trajectory)


def test_leading_dimensions_that_do_not_match_are_refused() -> None:
    message = "^leading dimensions must broadcast, got trajectory {}, features {}, A {}, V {}$"

    def said(*shapes: tuple[int, ...]) -> str:
        return message.format(*(re.escape(str(shape)) for shape in shapes))

    batch = ictd.Trajectory(np.tile(TRAJECTORY.states, (2, 1)), np.tile(TRAJECTORY.rewards, (2, 1)))
    A, V = EYE.expand(3, 2, 2), TD.expand(3, 3)
    refused(said((2,), (3,), (), ()), trajectory=batch, features=np.tile(X, (3, 1, 1)))
    refused(said((2,), (), (3,), ()), trajectory=batch, A=A)
    refused(said((2,), (), (), (3,)), trajectory=batch, V=V)
    refused(said((), (), (2,), (3,)), A=A[:2], V=V)
    refused(said((), (), (3,), (2,)), None, A=A[:, None], V=TD.expand(2, 1, 3))


def test_counts_beyond_a_half_precision_number_are_exact() -> None:
    """n rewards of 300 sum to more than float16 can hold; their mean does not."""
    n = 70_000
    trajectory = ictd.Trajectory(np.zeros(n + 1, dtype=int), np.full(n, 300.0))
    one = torch.ones(1, 1, dtype=torch.float16)
    values = ictd.state_pass(trajectory, one, one, TD.to(torch.float16), 0.5, 3)
    assert values[:, 0].tolist() == [0.0, 300.0, 450.0, 525.0]


def test_scores_that_overflow_are_refused() -> None:
    large = torch.tensor([[1.0, 0.0], [300.0, 0.0], [0.0, 1.0]], dtype=torch.float16)
    message = r"^features and A must give finite scores, got overflow in torch\.float16$"
    half = {"A": EYE.to(torch.float16), "V": TD.to(torch.float16)}
    refused(message, features=large, **half)


def test_rewards_that_overflow_are_refused() -> None:
    trajectory = ictd.Trajectory([0, 1, 0], [1e39, 0.0])
    message = r"^trajectory\.rewards must be finite in torch\.float32, got overflow$"
    single = {"features": EYE.float(), "A": EYE.float(), "V": TD.float()}
    refused(message, trajectory=trajectory, **single)
