"""How to cite the paper and this companion."""

_PAPER = """\
@misc{xie2026beyond,
  title         = {Beyond Linear Attention: Softmax Transformers Implement
                   In-Context Reinforcement Learning},
  author        = {Xie, Zixuan and Liu, Xinyu and Chen, Claire and Liu, Shuze Daniel and
                   Chandra, Rohan and Zhang, Shangtong},
  year          = {2026},
  eprint        = {2605.07333},
  archivePrefix = {arXiv}
}
"""

_COMPANION = """\
@software{ictd,
  title   = {ictd: an executable companion of "Beyond Linear Attention"},
  author  = {{The ictd authors}},
  year    = {2026},
  version = {VERSION}
}
"""


def citation() -> str:
    """BibTeX entries of the paper, arXiv:2605.07333, and of this companion in its present version."""
    from ictd import __version__

    return f"{_PAPER}\n{_COMPANION.replace('VERSION', __version__)}"
