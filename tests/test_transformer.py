"""Theorem 1, Lemma 1 and their scope, the linear transformer, and the matrices they are made of."""

from __future__ import annotations

import numpy as np
import pytest
import strategies as literal
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from strategies import (
    assert_close,
    batches,
    contexts,
    examples,
    feature_tables,
    gammas,
    seeds,
    softmax,
)

import ictd

BOTH = [ictd.DualHeadTransformer, ictd.SoftmaxTransformer]
both = pytest.mark.parametrize("network", BOTH)


def literal_prompt(context: literal.Context, initial: np.ndarray | None = None) -> torch.Tensor:
    """Z₀ = [X; R; 0; 0] of (10); with start values v₀, row d+3 holds v₀(S_j) and row d+2 γ v₀(S_k)."""
    d, n = context.d, context.n
    Z = np.zeros((d + 3, n + 1))
    for k in range(n + 1):
        for i in range(d):
            Z[i, k] = context.features[context.states[k], i]
        if k < n:
            Z[d, k] = context.rewards[k]
    if initial is not None:
        for k in range(n + 1):
            Z[d + 2, k] = initial[context.states[k]]
            Z[d + 1, k] = context.gamma * initial[context.states[k + 1]] if k < n else 0.0
    return torch.from_numpy(Z)


def trajectory_of(context: literal.Context) -> ictd.Trajectory:
    return ictd.Trajectory(context.states, context.rewards)


def literal_td(context: literal.Context, initial: np.ndarray | None = None) -> np.ndarray:
    """v_0 … v_L of (8)–(9) at all states, with the scores of the construction and α = 1."""
    return literal.weighted_softmax_td(
        context.states,
        context.rewards,
        literal.inner_products(context.features),
        context.gamma,
        [1.0] * context.depth,
        initial,
    )


def literal_kernel(Z: np.ndarray, A: np.ndarray) -> np.ndarray:
    """K̃ = softmax(ZᵀAZ + M) column by column; the query column is never a source."""
    n = Z.shape[1] - 1
    K = np.zeros((n + 1, n + 1))
    for j in range(n + 1):
        K[:n, j] = softmax([Z[:, i] @ A @ Z[:, j] for i in range(n)])
    return K


def literal_shift(Y: np.ndarray) -> np.ndarray:
    """Y Π: column k takes column k+1, the last column becomes zero."""
    moved = np.zeros_like(Y)
    for k in range(Y.shape[1] - 1):
        moved[:, k] = Y[:, k + 1]
    return moved


def random_tensor(seed: int, *shape: int, scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, dtype=torch.float64, generator=generator)


# --- Theorem 1 and Lemma 1 --------------------------------------------------------------------------


@both
@given(context=contexts())
@examples(100)
def test_theorem_1(network, context) -> None:
    """Row d+3 of Z_l holds the l-th iterate of weighted softmax TD, at every column and every layer."""
    d, states = context.d, context.states
    model = network.td(d, context.gamma, context.depth)
    Z0 = literal_prompt(context)
    layers = model.layers(Z0).detach().numpy()
    assert layers.shape == (context.depth + 1, d + 3, context.n + 1)
    v = literal_td(context)
    scale = max(context.scale, np.abs(v).max())
    for Z, values in zip(layers, v, strict=True):
        assert_close(Z[d + 2], values[states], 1e-10, scale)
        following = np.append(context.gamma * values[states[1:]], 0.0)
        assert_close(Z[d + 1], following, 1e-10, scale)
        # Features and rewards stay as they were.
        np.testing.assert_array_equal(Z[: d + 1], Z0[: d + 1].numpy())
    final = model(Z0)
    torch.testing.assert_close(final, torch.from_numpy(layers[-1]), rtol=0, atol=0)
    assert_close(ictd.read_values(final)[-1].item(), v[-1][states[-1]], 1e-10, scale)


@both
@given(context=contexts(), data=st.data())
@examples(60)
def test_theorem_1_from_any_start_values(network, context, data) -> None:
    """Start values enter through the two memory rows of Z₀."""
    initial = data.draw(arrays(np.float64, (context.n_states,), elements=st.floats(-100, 100)))
    Z0 = literal_prompt(context, initial)
    layers = network.td(context.d, context.gamma, context.depth).layers(Z0).detach().numpy()
    v = literal_td(context, initial)
    assert_close(layers[:, -1], v[:, context.states], 1e-10, context.scale)


@both
def test_theorem_1_in_a_deep_network_whose_values_diverge(network) -> None:
    angles = np.array([0, 0.4, 2.4])
    x = np.column_stack([np.cos(angles), np.sin(angles)])
    context = literal.Context(np.array([0, 1, 2]), np.array([1.0, -1.0]), x, 0.9, 1000)
    v = literal_td(context)
    Z = network.td(2, 0.9, 1000)(literal_prompt(context)).detach()
    assert v[-1, 2] < -1e8
    assert_close(ictd.read_values(Z), v[-1], 1e-10)


@given(context=contexts())
@examples(100)
def test_lemma_1(context) -> None:
    """The temporal shift and the second head are equal layer by layer."""
    Z0 = literal_prompt(context)
    dual, shifted = (
        network.td(context.d, context.gamma, context.depth).layers(Z0).detach() for network in BOTH
    )
    assert_close(shifted, dual, 1e-10)


@both
@given(context=contexts(), seed=seeds, data=st.data())
@examples(60)
def test_each_layer_with_its_own_scores_and_its_own_row(network, context, seed, data) -> None:
    """A on the features and a V row (a, b, c): v ← v + Σ_k (a R_k + b γ v(S_k) + c v(S_{k−1})) K_l."""
    d, n, gamma, L = context.d, context.n, context.gamma, context.depth
    states, rewards = context.states, context.rewards
    rng = np.random.default_rng(seed)
    x = context.features / max(1.0, np.abs(context.features).max())
    context = literal.Context(states, rewards, x, gamma, L)
    looped = data.draw(st.booleans())
    A = np.zeros((L, d + 3, d + 3))
    A[:, :d, :d] = 2 * rng.normal(size=(d, d)) if looped else 2 * rng.normal(size=(L, d, d))
    row = np.zeros((L, d + 3))
    row[:, d:] = rng.normal(size=3) if looped else rng.normal(size=(L, 3))

    expected, v = [], np.zeros(n + 1)
    for layer in range(L):
        K = literal_kernel(literal_prompt(context).numpy(), A[layer])
        a, b, c = row[layer, d:]
        error = [a * rewards[k] + b * gamma * v[k + 1] + c * v[k] for k in range(n)]
        v = np.array([v[j] + sum(error[k] * K[k, j] for k in range(n)) for j in range(n + 1)])
        expected.append(v)

    V = np.zeros((L, d + 3, d + 3))
    V[:, d + 2] = row
    target = np.zeros_like(V)
    target[:, d + 1] = gamma * row
    A, V, target = (torch.from_numpy(matrix) for matrix in (A, V, target))
    if looped:
        A, V, target = (matrix[:1].sum(0) for matrix in (A, V, target))
    n_layers = L if looped else None
    if network is ictd.DualHeadTransformer:
        model = network(A, V, target, n_layers)
    else:
        model = network(A, V, gamma, n_layers)
    assert model.n_layers == L
    assert model.looped == looped
    values = model.layers(literal_prompt(context)).detach()[1:, -1]
    assert_close(values, np.reshape(expected, (L, n + 1)), 1e-10, context.scale)


@given(
    seed=seeds,
    d=st.integers(1, 4),
    n=st.integers(1, 8),
    L=st.integers(0, 4),
    gamma=gammas,
    looped=st.booleans(),
)
@examples(100)
def test_any_matrices_are_applied_as_the_paper_writes_them(seed, d, n, L, gamma, looped) -> None:
    """Every entry of A, V^cur, V^tgt and V is used, features and rewards change from layer to layer."""
    m = d + 3
    shape = (m, m) if looped else (L, m, m)
    A, V_cur, V_tgt = (random_tensor(seed + k, *shape, scale=0.3) for k in range(3))
    Z0 = random_tensor(seed + 3, m, n + 1)
    n_layers = L if looped else None
    dual = ictd.DualHeadTransformer(A, V_cur, V_tgt, n_layers)
    shifted = ictd.SoftmaxTransformer(A, V_cur, gamma, n_layers)
    Z = Y = Z0.numpy()
    dual_layers, shifted_layers = (model.layers(Z0).detach().numpy() for model in (dual, shifted))
    assert_close(dual_layers[0], Z, 0.0)
    for layer in range(L):
        a, cur, tgt = ((M if looped else M[layer]).numpy() for M in (A, V_cur, V_tgt))
        K = literal_kernel(Z, a)
        Z = Z + cur @ Z @ K + literal_shift(tgt @ Z @ K)
        assert_close(dual_layers[layer + 1], Z, 1e-10)
        H = Y + cur @ Y @ literal_kernel(Y, a)
        Y = H.copy()
        Y[d + 1] = gamma * literal_shift(H)[d + 2]
        assert_close(shifted_layers[layer + 1], Y, 1e-10)
    assert_close(dual(Z0).detach(), dual_layers[-1], 0.0)
    assert_close(shifted(Z0).detach(), shifted_layers[-1], 0.0)


@given(
    context=contexts(),
    seed=seeds,
    looped=st.booleans(),
    full=st.booleans(),
)
@examples(100)
def test_the_scope_of_lemma_1(context, seed: int, looped: bool, full: bool) -> None:
    """With V^tgt = W V^cur the two are equal for any A_l and any V_l whose row d+2 is zero."""
    d, L = context.d, context.depth
    m = d + 3
    shape = (m, m) if looped else (L, m, m)
    A, V = random_tensor(seed, *shape, scale=0.3), random_tensor(seed + 1, *shape, scale=0.3)
    if not full:
        # The paper's sparsity: A reads features, V writes the current values.
        keep = torch.zeros(m, m, dtype=torch.float64)
        keep[:d, :d] = 1
        A = A * keep
        keep = torch.zeros(m, m, dtype=torch.float64)
        keep[d + 2, d:] = 1
        V = V * keep
    V[..., d + 1, :] = 0
    _, W = ictd.temporal_shift_matrices(d, context.gamma)
    context = literal.Context(
        context.states,
        context.rewards / max(1.0, context.scale),
        context.features / max(1.0, np.abs(context.features).max()),
        context.gamma,
        L,
    )
    Z0 = literal_prompt(context)
    n_layers = L if looped else None
    dual = ictd.DualHeadTransformer(A, V, W @ V, n_layers).layers(Z0).detach()
    shifted = ictd.SoftmaxTransformer(A, V, context.gamma, n_layers).layers(Z0).detach()
    assert_close(shifted, dual, 1e-10)


@pytest.mark.parametrize("looped", [True, False])
def test_lemma_1_fails_where_the_row_of_the_target_memory_is_not_zero(looped: bool) -> None:
    d, n, L, gamma = 2, 5, 3, 0.9
    shape = (d + 3, d + 3) if looped else (L, d + 3, d + 3)
    A, V = random_tensor(0, *shape, scale=0.3), random_tensor(1, *shape, scale=0.3)
    Z0 = random_tensor(2, d + 3, n + 1)
    Z0[d + 1 :] = 0
    _, W = ictd.temporal_shift_matrices(d, gamma)
    n_layers = L if looped else None

    def gap(V: torch.Tensor) -> list[float]:
        dual = ictd.DualHeadTransformer(A, V, W @ V, n_layers).layers(Z0)
        shifted = ictd.SoftmaxTransformer(A, V, gamma, n_layers).layers(Z0)
        return (dual - shifted).detach().abs().amax((-1, -2)).tolist()

    assert min(gap(V)[1:]) > 0.01
    V[..., d + 1, :] = 0
    assert max(gap(V)) < 1e-14


def test_the_shift_erases_the_target_row_of_v_and_its_gradient() -> None:
    d, L = 2, 3
    model = ictd.SoftmaxTransformer(
        random_tensor(0, d + 3, d + 3), random_tensor(1, d + 3, d + 3), 0.9, L
    )
    model(random_tensor(2, d + 3, 6)).square().sum().backward()
    gradient = model.V.grad
    assert (gradient[d + 1] == 0).all()
    others = [row for row in range(d + 3) if row != d + 1]
    assert (gradient[others] != 0).all()


# --- batches ----------------------------------------------------------------------------------------


@both
@given(data=st.data(), batch=batches, separate=st.booleans())
@examples(40)
def test_a_batch_gives_what_its_members_give(network, data, batch, separate: bool) -> None:
    own_features = data.draw(st.booleans())
    context = data.draw(contexts(batch, batch if own_features else ()))
    d, L = context.d, context.depth
    model = network.td(d, context.gamma, L)
    if separate:
        matrices = [p.detach().expand(L, d + 3, d + 3) for p in model.parameters()]
        model = network(*matrices, *([context.gamma] if network is BOTH[1] else []))
    Z0 = ictd.prompt(trajectory_of(context), context.features)
    assert Z0.shape == (*batch, d + 3, context.n + 1)
    layers = model.layers(Z0).detach()
    assert layers.shape == (L + 1, *batch, d + 3, context.n + 1)
    assert_close(model(Z0).detach(), layers[-1], 0.0)
    for index in np.ndindex(*batch):
        one = literal.Context(
            context.states[index],
            context.rewards[index],
            context.features[index] if own_features else context.features,
            context.gamma,
            L,
        )
        assert_close(Z0[index], literal_prompt(one), 0.0)
        alone = model.layers(Z0[index]).detach()
        scale = max(np.abs(one.features).max(), one.scale)
        assert_close(layers[(slice(None), *index)], alone, 1e-11, scale)
        values = literal_td(one)[:, one.states]
        assert_close(layers[(slice(None), *index)][:, -1], values, 1e-10, one.scale)


# --- prompts and matrices ---------------------------------------------------------------------------


@given(context=contexts())
@examples(30)
def test_the_prompt_has_features_rewards_and_two_empty_memories(context) -> None:
    expected = literal_prompt(context)
    for features in (context.features, torch.from_numpy(context.features)):
        Z0 = ictd.prompt(trajectory_of(context), features)
        assert Z0.dtype == torch.float64
        assert_close(Z0, expected, 0.0)


TRAJECTORY = ictd.Trajectory([0, 1, 0], [1.0, 2.0])


def test_one_context_may_be_shown_with_many_features() -> None:
    x = np.arange(12.0).reshape(3, 2, 2)
    Z0 = ictd.prompt(TRAJECTORY, x)
    assert Z0.shape == (3, 5, 3)
    linear = ictd.linear_prompt(TRAJECTORY, x, 0.5, query=1)
    assert linear.shape == (3, 5, 3)
    for b in range(3):
        assert_close(Z0[b], ictd.prompt(TRAJECTORY, x[b]), 0.0)
        assert_close(linear[b], ictd.linear_prompt(TRAJECTORY, x[b], 0.5, query=1), 0.0)


@pytest.mark.parametrize("make", [ictd.prompt, lambda t, x: ictd.linear_prompt(t, x, 0.5)])
def test_the_prompt_takes_the_dtype_of_the_features(make) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert make(TRAJECTORY, torch.eye(2, dtype=dtype)).dtype == dtype
    for dtype in (np.float16, np.float32, np.float64):
        expected = getattr(torch, np.dtype(dtype).name)
        assert make(TRAJECTORY, np.eye(2, dtype=dtype)).dtype == expected
    for integers in (np.eye(2, dtype=int), torch.eye(2, dtype=torch.int32), [[1, 0], [0, 1]]):
        assert make(TRAJECTORY, integers).dtype == torch.float64


@pytest.mark.parametrize("make", [ictd.prompt, lambda t, x: ictd.linear_prompt(t, x, 0.5)])
def test_the_prompt_passes_gradients_to_the_features(make) -> None:
    x = random_tensor(0, 2, 3).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda table: make(TRAJECTORY, table), (x,))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_constructed_matrices(d: int) -> None:
    gamma = 0.75
    e = np.eye(d + 3)
    u = np.array([0.0] * d + [1, 1, -1])
    identity = np.diag([1.0] * d + [0.0] * 3)
    U, W = ictd.temporal_shift_matrices(d, gamma)
    for actual, expected in (
        (ictd.td_direction(d), u),
        (ictd.attention_matrix(d), identity),
        (ictd.current_value_matrix(d), np.outer(e[d + 2], u)),
        (ictd.target_value_matrix(d, gamma), gamma * np.outer(e[d + 1], u)),
        (U, np.eye(d + 3) - np.outer(e[d + 1], e[d + 1])),
        (W, gamma * np.outer(e[d + 1], e[d + 2])),
    ):
        assert actual.dtype == torch.float64
        np.testing.assert_array_equal(actual.numpy(), expected)
    dual, shifted = (network.td(d, gamma, 5) for network in BOTH)
    for name, parameter in dual.named_parameters():
        expected = {
            "A": ictd.attention_matrix(d),
            "V_cur": ictd.current_value_matrix(d),
            "V_tgt": ictd.target_value_matrix(d, gamma),
        }[name]
        assert torch.equal(parameter, expected)
    assert {name for name, _ in shifted.named_parameters()} == {"A", "V"}
    assert {name for name, _ in shifted.named_buffers()} == {"U", "W"}
    assert torch.equal(shifted.U, U)
    assert torch.equal(shifted.W, W)
    # W V^cur = V^tgt, as Lemma 1 needs it.
    assert torch.equal(W @ ictd.current_value_matrix(d), ictd.target_value_matrix(d, gamma))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_shift_moves_columns_one_step_back_in_time(n: int) -> None:
    Z = random_tensor(n, 3, n + 1)
    shift = ictd.shift_matrix(n)
    np.testing.assert_array_equal((Z @ shift).numpy(), literal_shift(Z.numpy()))
    assert shift.shape == (n + 1, n + 1)


def test_the_last_row_holds_the_values() -> None:
    Z = random_tensor(0, 2, 4, 5)
    assert torch.equal(ictd.read_values(Z), Z[:, 3])
    linear = ictd.read_linear_value(Z)
    assert torch.equal(linear, -Z[:, 3, 4])


# --- dtypes, devices, gradients ---------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.1), (torch.float16, 0.02)]
)
def test_a_network_stays_in_its_dtype(network, dtype: torch.dtype, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    x = ictd.sphere_features(4, 3, rng)
    trajectory = ictd.random_chain(4, 0.9, rng).sample(12, rng)
    exact = network.td(3, 0.9, 4)(ictd.prompt(trajectory, x))
    model = network.td(3, 0.9, 4, dtype=dtype)
    assert {t.dtype for t in model.state_dict().values()} == {dtype}
    Z = model(ictd.prompt(trajectory, torch.from_numpy(x).to(dtype)))
    assert Z.dtype == dtype
    assert_close(Z.detach().double(), exact.detach(), tolerance)
    converted = network.td(3, 0.9, 4).to(dtype)
    assert torch.equal(converted(ictd.prompt(trajectory, torch.from_numpy(x).to(dtype))), Z)


def test_the_linear_transformer_stays_in_its_dtype() -> None:
    model = ictd.LinearTransformer.td(2, 3, dtype=torch.float32)
    Z = model(ictd.linear_prompt(TRAJECTORY, torch.eye(2), 0.9))
    assert Z.dtype == torch.float32


def test_matrices_are_made_in_the_dtype_and_on_the_device_asked_for() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        made = [
            ictd.td_direction(2, dtype),
            ictd.attention_matrix(2, dtype),
            ictd.current_value_matrix(2, dtype),
            ictd.target_value_matrix(2, 0.9, dtype),
            ictd.shift_matrix(2, dtype),
            *ictd.temporal_shift_matrices(2, 0.9, dtype),
        ]
        assert {matrix.dtype for matrix in made} == {dtype}
        assert {matrix.device.type for matrix in made} == {"cpu"}
    assert ictd.shift_matrix(3, device="meta").device.type == "meta"
    assert ictd.prompt(TRAJECTORY, torch.eye(2, device="cpu")).device.type == "cpu"


@both
@pytest.mark.parametrize("separate", [False, True])
def test_gradients_are_those_of_finite_differences(network, separate: bool) -> None:
    d, n, L = 2, 4, 3
    Z0 = random_tensor(5, 2, d + 3, n + 1).requires_grad_(True)
    shape = (L, d + 3, d + 3) if separate else (d + 3, d + 3)
    matrices = [random_tensor(k, *shape, scale=0.3) for k in range(3 - BOTH.index(network))]
    others = [0.9] if network is ictd.SoftmaxTransformer else []
    model = network(*matrices, *others, None if separate else L)
    names = [name for name, _ in model.named_parameters()]

    def values(Z: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        parts = dict(zip(names, parameters, strict=True))
        return ictd.read_values(torch.func.functional_call(model, parts, (Z,)))

    inputs = (Z0, *(matrix.clone().requires_grad_(True) for matrix in matrices))
    assert torch.autograd.gradcheck(values, inputs)


@both
def test_a_network_owns_its_matrices(network) -> None:
    A, V = ictd.attention_matrix(2), ictd.current_value_matrix(2)
    rest = [ictd.target_value_matrix(2, 0.9)] if network is ictd.DualHeadTransformer else [0.9]
    model = network(A, V, *rest, 2)
    A.fill_(7)
    assert torch.equal(model.A.detach(), ictd.attention_matrix(2))
    assert all(parameter.requires_grad for parameter in model.parameters())
    Z0 = ictd.prompt(TRAJECTORY, np.eye(2))
    before = Z0.clone()
    model(Z0)
    model.layers(Z0)
    assert torch.equal(Z0, before)


@both
def test_a_trained_network_can_be_stored_and_loaded(network) -> None:
    model, other = network.td(2, 0.9, 3), network.td(2, 0.5, 3)
    other.load_state_dict(model.state_dict())
    Z0 = ictd.prompt(TRAJECTORY, np.eye(2))
    assert torch.equal(other(Z0), model(Z0))


# --- the linear transformer -------------------------------------------------------------------------


@given(context=contexts(), data=st.data())
@examples(100)
def test_the_linear_transformer_is_linear_td_with_step_one(context, data) -> None:
    d, L, gamma = context.d, context.depth, context.gamma
    x = context.features / max(1.0, np.abs(context.features).max())
    query = data.draw(st.none() | st.integers(0, context.n_states - 1))
    Z0 = ictd.linear_prompt(trajectory_of(context), x, gamma, query)
    layers = ictd.LinearTransformer.td(d, L).layers(Z0).detach()
    w = literal.linear_td_weights(context.states, context.rewards, x, gamma, [1.0] * L)
    q = context.states[-1] if query is None else query
    scale = max(context.scale, np.abs(w).max())
    assert_close(ictd.read_linear_value(layers), w @ x[q], 1e-12, scale)
    np.testing.assert_array_equal(layers[:, : 2 * d], Z0[: 2 * d].expand(L + 1, -1, -1))
    final = ictd.LinearTransformer.td(d, L)(Z0)
    assert_close(ictd.read_linear_value(final).item(), w[-1] @ x[q], 1e-12, scale)


@given(context=contexts(), data=st.data())
@examples(40)
def test_the_linear_prompt(context, data) -> None:
    d, n, x = context.d, context.n, context.features
    query = data.draw(st.none() | st.integers(0, context.n_states - 1))
    Z0 = ictd.linear_prompt(trajectory_of(context), x, context.gamma, query)
    assert Z0.shape == (2 * d + 1, n + 1)
    for k in range(1, n + 1):
        left, entered = x[context.states[k - 1]], x[context.states[k]]
        column = [*left, *(context.gamma * entered), context.rewards[k - 1]]
        np.testing.assert_array_equal(Z0[:, k - 1], column)
    q = context.states[-1] if query is None else query
    np.testing.assert_array_equal(Z0[:, n], [*x[q], *[0.0] * (d + 1)])


@given(seed=seeds, d=st.integers(1, 3), n=st.integers(1, 6), L=st.integers(0, 4), batch=batches)
@examples(60)
def test_any_linear_layers_are_applied_as_the_paper_writes_them(seed, d, n, L, batch) -> None:
    m = 2 * d + 1
    P, Q = random_tensor(seed, L, m, m, scale=0.3), random_tensor(seed + 1, L, m, m, scale=0.3)
    Z0 = random_tensor(seed + 2, *batch, m, n + 1)
    layers = ictd.LinearTransformer(P, Q).layers(Z0).detach().numpy()
    M = np.diag([1.0] * n + [0.0])
    for index in np.ndindex(*batch):
        Z = Z0[index].numpy()
        for layer in range(L):
            p, q = P[layer].numpy(), Q[layer].numpy()
            Z = Z + p @ Z @ M @ (Z.T @ q @ Z) / n
            assert_close(layers[layer + 1][index], Z, 1e-10)
    if L:
        looped = ictd.LinearTransformer(P[0], Q[0], 2)(Z0).detach()
        twice = ictd.LinearTransformer(P[:1].expand(2, m, m), Q[:1].expand(2, m, m))(Z0)
        assert_close(looped, twice.detach(), 1e-13)


@pytest.mark.parametrize("d", [1, 3])
def test_the_constructed_linear_matrices(d: int) -> None:
    model = ictd.LinearTransformer.td(d, 2)
    P, Q = np.zeros((2, 2 * d + 1, 2 * d + 1))
    P[2 * d, 2 * d] = 1
    for i in range(d):
        Q[i, i], Q[i, d + i] = -1, 1
    np.testing.assert_array_equal(model.P.detach(), P)
    np.testing.assert_array_equal(model.Q.detach(), Q)


def test_the_linear_transformer_is_differentiable() -> None:
    Z0 = random_tensor(0, 3, 5).requires_grad_(True)
    model = ictd.LinearTransformer(random_tensor(1, 3, 3), random_tensor(2, 3, 3), 2)
    assert torch.autograd.gradcheck(model, (Z0,))
    model(Z0).sum().backward()
    assert model.P.grad.abs().min() > 0
    assert model.Q.grad.abs().min() > 0


# --- errors -----------------------------------------------------------------------------------------

EYE = torch.eye(5, dtype=torch.float64)


@pytest.mark.parametrize("d", [0, -5, 2.0, True, "2", None])
def test_wrong_numbers_of_features_are_refused(d) -> None:
    for make in (
        ictd.td_direction,
        ictd.attention_matrix,
        ictd.current_value_matrix,
        lambda d: ictd.target_value_matrix(d, 0.9),
        lambda d: ictd.temporal_shift_matrices(d, 0.9),
        lambda d: ictd.DualHeadTransformer.td(d, 0.9, 2),
        lambda d: ictd.SoftmaxTransformer.td(d, 0.9, 2),
        lambda d: ictd.LinearTransformer.td(d, 2),
    ):
        with pytest.raises(ValueError, match=rf"^d must be an integer ≥ 1, got {d!r}"):
            make(d)


@pytest.mark.parametrize("gamma", [1.0, -0.1, float("nan"), float("inf"), True, "0.9", None])
def test_wrong_discount_factors_are_refused(gamma) -> None:
    for make in (
        lambda gamma: ictd.target_value_matrix(2, gamma),
        lambda gamma: ictd.temporal_shift_matrices(2, gamma),
        lambda gamma: ictd.DualHeadTransformer.td(2, gamma, 2),
        lambda gamma: ictd.SoftmaxTransformer.td(2, gamma, 2),
        lambda gamma: ictd.SoftmaxTransformer(EYE, EYE, gamma, 2),
        lambda gamma: ictd.linear_prompt(TRAJECTORY, np.eye(2), gamma),
    ):
        with pytest.raises(ValueError, match=r"^gamma must be .*\[0, 1\), got") as error:
            make(gamma)
        assert str(error.value).endswith(repr(gamma))


@pytest.mark.parametrize("n_layers", [-1, 2.0, True, "2"])
def test_wrong_numbers_of_layers_are_refused(n_layers) -> None:
    for make in (
        lambda L: ictd.DualHeadTransformer.td(2, 0.9, L),
        lambda L: ictd.SoftmaxTransformer.td(2, 0.9, L),
        lambda L: ictd.LinearTransformer.td(2, L),
        lambda L: ictd.LinearTransformer(EYE, EYE, L),
    ):
        with pytest.raises(ValueError, match=rf"^n_layers must be an .* ≥ 0, got {n_layers!r}"):
            make(n_layers)


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_wrong_sizes_of_the_shift_are_refused(n) -> None:
    with pytest.raises(ValueError, match=rf"^n must be an integer ≥ 1, got {n}"):
        ictd.shift_matrix(n)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ictd.LinearTransformer(EYE, EYE), r"^n_layers must be given .* P is shared"),
        (
            lambda: ictd.LinearTransformer(EYE.expand(2, 5, 5), EYE.expand(2, 5, 5), 3),
            r"^n_layers must be 2, the layers of P, or None, got 3",
        ),
        (
            lambda: ictd.SoftmaxTransformer(EYE, EYE.expand(2, 5, 5), 0.9, 2),
            r"^V must have the shape and dtype of A, \(5, 5\) torch\.float64, got \(2, 5, 5\)",
        ),
        (
            lambda: ictd.DualHeadTransformer(EYE, EYE, EYE[:4, :4], 2),
            r"^V_tgt must have the shape and dtype of A, .* got \(4, 4\)",
        ),
        (
            lambda: ictd.DualHeadTransformer(EYE, EYE.float(), EYE, 2),
            r"^V_cur must have the shape and dtype of A, .* got \(5, 5\) torch\.float32",
        ),
        (
            lambda: ictd.DualHeadTransformer(EYE[:4], EYE, EYE, 2),
            r"^A must have shape \(m, m\) or \(n_layers, m, m\), got \(4, 5\)",
        ),
        (
            lambda: ictd.DualHeadTransformer(EYE[0], EYE, EYE, 2),
            r"^A must have shape \(m, m\) or \(n_layers, m, m\), got \(5,\)",
        ),
        (
            lambda: ictd.SoftmaxTransformer(EYE.numpy(), EYE, 0.9, 2),
            r"^A must be a tensor of a floating dtype, got ndarray",
        ),
        (
            lambda: ictd.SoftmaxTransformer(EYE, EYE.long(), 0.9, 2),
            r"^V must be a tensor of a floating dtype, got .*torch\.int64",
        ),
        (
            lambda: ictd.SoftmaxTransformer(EYE, EYE * torch.nan, 0.9, 2),
            r"^V must be finite, got NaN or infinity",
        ),
        (
            lambda: ictd.SoftmaxTransformer(EYE[:3, :3], EYE[:3, :3], 0.9, 2),
            r"^A must have at least 4 rows, got 3",
        ),
    ],
)
def test_wrong_networks_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "model",
    [
        ictd.DualHeadTransformer.td(2, 0.9, 2),
        ictd.SoftmaxTransformer.td(2, 0.9, 0),
        ictd.LinearTransformer.td(2, 2),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize(
    ("Z", "message"),
    [
        (np.zeros((5, 3)), r"^Z must be a tensor of torch\.float64, got ndarray"),
        (torch.zeros(5, 3).long(), r"^Z must be a tensor of torch\.float64, got .*torch\.int64"),
        (torch.zeros(6, 3).double(), r"^Z must have shape \(\.\.\., 5, n\+1\) .* got \(6, 3\)"),
        (torch.zeros(5, 1).double(), r"^Z must have shape .* with n ≥ 1, got \(5, 1\)"),
        (torch.zeros(5).double(), r"^Z must have shape \(\.\.\., 5, n\+1\) .* got \(5,\)"),
        (torch.full((5, 3), torch.nan).double(), r"^Z must be finite, got NaN or infinity"),
        (torch.full((5, 3), -torch.inf).double(), r"^Z must be finite, got NaN or infinity"),
        (torch.zeros(5, 3), r"^Z must be a tensor of torch\.float64, got .*torch\.float32"),
    ],
)
def test_wrong_prompts_are_refused(model, Z, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(Z)
    with pytest.raises(ValueError, match=message):
        model.layers(Z)


@pytest.mark.parametrize("make", [ictd.prompt, lambda t, x: ictd.linear_prompt(t, x, 0.5)])
@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.eye(1), r"^trajectory\.states must be state indices in 0\.\.0 \(1 states\), got 1"),
        (torch.eye(1), r"^trajectory\.states must be state indices in 0\.\.0 .* got 1"),
        (np.zeros(2), r"^features must have shape \(\.\.\., S, d\), not empty, got \(2,\)"),
        (torch.zeros(2), r"^features must have shape \(\.\.\., S, d\), not empty, got \(2,\)"),
        (torch.zeros(2, 0), r"^features must have shape .* got \(2, 0\)"),
        ([[np.nan], [0.0]], r"^features must be finite, got nan at index \(0, 0\)"),
        (torch.tensor([[torch.inf], [0]]), r"^features must be finite, got"),
        ("x", r"^features must be an array of real numbers, got dtype <U1"),
        (torch.eye(2, dtype=torch.complex64), r"^features must be real, got torch\.complex64"),
    ],
)
def test_wrong_features_are_refused(make, features, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(TRAJECTORY, features)


@pytest.mark.parametrize("make", [ictd.prompt, lambda t, x: ictd.linear_prompt(t, x, 0.5)])
def test_prompts_of_batches_that_do_not_match_are_refused(make) -> None:
    batch = ictd.Trajectory([[0, 1]] * 2, [[1.0]] * 2)
    expected = r"^leading dimensions must broadcast, got features \(3,\), trajectory \(2,\)"
    with pytest.raises(ValueError, match=expected):
        make(batch, np.zeros((3, 2, 2)))


@pytest.mark.parametrize("query", [-1, 2, 1.0, True])
def test_a_query_out_of_range_is_refused(query) -> None:
    with pytest.raises(ValueError, match=rf"^query must be an integer .* ≤ 1, got {query}"):
        ictd.linear_prompt(TRAJECTORY, np.eye(2), 0.9, query)


@pytest.mark.parametrize("make", [ictd.prompt, lambda t, x: ictd.linear_prompt(t, x, 0.5)])
def test_prompts_need_a_trajectory(make) -> None:
    with pytest.raises(ValueError, match=r"^trajectory must be an ictd\.Trajectory, got tuple"):
        make(([0, 1], [1.0]), np.eye(2))


@given(data=st.data(), batch=batches)
@examples(10)
def test_a_prompt_of_no_layers_comes_back(data, batch: tuple[int, ...]) -> None:
    context = data.draw(contexts(batch))
    Z0 = ictd.prompt(trajectory_of(context), data.draw(feature_tables((8, 2))))
    for network in BOTH:
        assert network.td(2, 0.9, 0)(Z0) is Z0
