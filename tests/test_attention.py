"""The mask, softmax attention and linear attention, in the paper's layout."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from strategies import assert_close, batches, examples, softmax

import ictd

entries = st.integers(-16, 16).map(lambda k: k / 4)
sizes = st.integers(1, 5)


def matrices(shape: tuple[int, ...]) -> st.SearchStrategy[torch.Tensor]:
    return arrays(np.float64, shape, elements=entries).map(torch.from_numpy)


def literal_softmax_attention(Z: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Column j: the softmax of z_iᵀ A z_j over the sources i ≤ n; the last row is zero."""
    rows, columns = Z.shape
    K = np.zeros((columns, columns))
    for j in range(columns):
        scores = [
            sum(Z[a, i] * A[a, b] * Z[b, j] for a in range(rows) for b in range(rows))
            for i in range(columns - 1)
        ]
        K[:-1, j] = softmax(scores)
    return K


def literal_linear_attention(Z: np.ndarray, P: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """(1/n) P Z M (ZᵀQZ) with M = diag(I_n, 0)."""
    n = Z.shape[1] - 1
    M = np.diag([1.0] * n + [0.0])
    return P @ Z @ M @ (Z.T @ Q @ Z) / n


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_mask_hides_the_query_from_all_columns(n: int) -> None:
    mask = ictd.context_mask(n)
    assert mask.dtype == torch.float64
    assert mask.shape == (n + 1, n + 1)
    for i in range(n + 1):
        for j in range(n + 1):
            assert mask[i, j] == (0 if i < n else -torch.inf)


@given(data=st.data(), m=sizes, n=st.integers(1, 6))
@examples(60)
def test_softmax_attention_is_a_distribution_over_sources_for_each_column(data, m, n) -> None:
    Z, A = data.draw(matrices((m, n + 1))), data.draw(matrices((m, m)))
    K = ictd.softmax_attention(Z, A)
    assert K.dtype == torch.float64
    expected = literal_softmax_attention(Z.numpy(), A.numpy())
    np.testing.assert_allclose(K.numpy(), expected, rtol=1e-11, atol=1e-300)
    assert_close(K.sum(0), np.ones(n + 1), 1e-14)
    assert (K[-1] == 0).all()


@given(data=st.data(), m=sizes, n=st.integers(1, 6))
@examples(60)
def test_linear_attention_is_the_product_of_the_paper(data, m, n) -> None:
    Z, P, Q = (data.draw(matrices(shape)) for shape in ((m, n + 1), (m, m), (m, m)))
    update = ictd.linear_attention(Z, P, Q)
    assert update.dtype == torch.float64
    assert_close(update, literal_linear_attention(Z.numpy(), P.numpy(), Q.numpy()), 1e-12)


@given(data=st.data(), batch=batches)
@examples(30)
def test_batches_of_prompts_and_of_matrices(data, batch: tuple[int, ...]) -> None:
    one_prompt = data.draw(st.booleans())
    Z = data.draw(matrices((*(() if one_prompt else batch), 3, 5)))
    A, B = (data.draw(matrices((*batch, 3, 3))) for _ in range(2))
    K, update = ictd.softmax_attention(Z, A), ictd.linear_attention(Z, A, B)
    shared = ictd.softmax_attention(Z, A.reshape(-1, 3, 3)[0])
    for index in np.ndindex(*batch):
        z = Z if one_prompt else Z[index]
        assert_close(K[index], ictd.softmax_attention(z, A[index]), 1e-13)
        assert_close(update[index], ictd.linear_attention(z, A[index], B[index]), 1e-13)
        one = shared if one_prompt else shared[index]
        assert_close(one, ictd.softmax_attention(z, A.reshape(-1, 3, 3)[0]), 1e-13)


@pytest.mark.parametrize("top", [1e4, -1e4])
def test_huge_scores(top: float) -> None:
    # Scores z_i · z_j of top and top − 1 on the first columns; the query itself would score most.
    Z = torch.tensor([[1.0, 1 - 1 / top, 2.0]], dtype=torch.float64)
    A = torch.tensor([[top]], dtype=torch.float64)
    K = ictd.softmax_attention(Z, A)
    first = 1 / (1 + np.exp(-np.array([1, 1 - 1 / top, 2.0])))
    np.testing.assert_allclose(K[0].numpy(), first, rtol=1e-11)
    np.testing.assert_allclose(K[1].numpy(), 1 - first, rtol=1e-11)


def test_linear_attention_of_a_long_context_needs_no_n_by_n_matrix() -> None:
    # ZᵀQZ would have 9e10 entries, 720 GB.
    n, generator = 300_000, torch.Generator().manual_seed(0)
    Z = torch.randn(3, n + 1, dtype=torch.float64, generator=generator)
    P, Q = torch.randn(2, 3, 3, dtype=torch.float64, generator=generator)
    update = ictd.linear_attention(Z, P, Q)
    context = Z[:, :-1]
    for j in (0, 1234, n):
        column = sum((P @ context[:, i]) * (context[:, i] @ Q @ Z[:, j]) for i in range(200))
        rest = P @ context[:, 200:] @ (context[:, 200:].T @ (Q @ Z[:, j]))
        assert_close(update[:, j], (column + rest) / n, 1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_attention_stays_in_its_dtype(dtype: torch.dtype) -> None:
    Z, A = torch.ones(2, 3, dtype=dtype), torch.eye(2, dtype=dtype)
    assert ictd.context_mask(2, dtype).dtype == dtype
    K = ictd.softmax_attention(Z, A)
    assert K.dtype == ictd.linear_attention(Z, A, A).dtype == dtype
    np.testing.assert_array_equal(K.double().numpy(), [[0.5] * 3, [0.5] * 3, [0] * 3])


def test_the_mask_is_made_on_the_device_asked_for() -> None:
    assert ictd.context_mask(3).device.type == "cpu"
    assert ictd.context_mask(3, device="meta").device.type == "meta"


def test_attention_is_differentiable() -> None:
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn(3, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    A, B = torch.randn(2, 3, 3, dtype=torch.float64, generator=generator)
    A.requires_grad_(True)
    B.requires_grad_(True)
    assert torch.autograd.gradcheck(ictd.softmax_attention, (Z, A))
    assert torch.autograd.gradcheck(ictd.linear_attention, (Z, A, B))


# --- errors -----------------------------------------------------------------------------------------

Z = torch.zeros(2, 5, 4, dtype=torch.float64)
A = torch.eye(5, dtype=torch.float64)
NAN = torch.full((5, 5), torch.nan, dtype=torch.float64)


@pytest.mark.parametrize("n", [0, -1, 2.0, True])
def test_wrong_sizes_of_the_mask_are_refused(n) -> None:
    with pytest.raises(ValueError, match=rf"^n must be an integer ≥ 1, got {n}"):
        ictd.context_mask(n)


def test_a_mask_of_integers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^dtype must be a floating dtype, got torch\.int64"):
        ictd.context_mask(3, torch.int64)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((5, 4)), r"^Z must be a tensor of a floating dtype, got .*ndarray"),
        (Z.to(torch.int64), r"^Z must be a tensor of a floating dtype, got .*torch\.int64"),
        (Z.to(torch.complex128), r"^Z must be a tensor of a floating dtype, got .*complex128"),
        (Z[0, 0], r"^Z must have shape \(\.\.\., m, n\+1\) with n ≥ 1, got \(4,\)"),
        (Z[..., :1], r"^Z must have shape \(\.\.\., m, n\+1\) with n ≥ 1, got \(2, 5, 1\)"),
        (Z[..., :0], r"^Z must have shape \(\.\.\., m, n\+1\) with n ≥ 1, got \(2, 5, 0\)"),
        (Z + torch.nan, r"^Z must be finite, got NaN or infinity"),
        (Z + torch.inf, r"^Z must be finite, got NaN or infinity"),
    ],
)
def test_wrong_prompts_are_refused(wrong, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ictd.softmax_attention(wrong, A)
    with pytest.raises(ValueError, match=message):
        ictd.linear_attention(wrong, A, A)


WRONG_MATRICES = [
    (A[:4], r"^{} must have shape \(\.\.\., 5, 5\), got \(4, 5\)"),
    (A[:4, :4], r"^{} must have shape \(\.\.\., 5, 5\), got \(4, 4\)"),
    (A[0], r"^{} must have shape \(\.\.\., 5, 5\), got \(5,\)"),
    (A.sum(), r"^{} must have shape \(\.\.\., 5, 5\), got \(\)"),
    (A.float(), r"^{} must be a tensor of the dtype of Z, torch\.float64, got .*torch\.float32"),
    (A.long(), r"^{} must be a tensor of the dtype of Z, torch\.float64, got .*torch\.int64"),
    (A.numpy(), r"^{} must be a tensor of the dtype of Z, torch\.float64, got .*ndarray"),
    (A.tolist(), r"^{} must be a tensor of the dtype of Z, torch\.float64, got .*list"),
    (NAN, r"^{} must be finite, got NaN or infinity"),
    (A.expand(3, 5, 5), r"^leading dimensions must broadcast, got {} \(3,\), Z \(2,\)"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG_MATRICES)
def test_wrong_matrices_are_refused(wrong, message: str) -> None:
    with pytest.raises(ValueError, match=message.format("A")):
        ictd.softmax_attention(Z, wrong)
    with pytest.raises(ValueError, match=message.format("P")):
        ictd.linear_attention(Z, wrong, A)
    with pytest.raises(ValueError, match=message.format("Q")):
        ictd.linear_attention(Z, A, wrong)
