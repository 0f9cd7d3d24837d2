"""A Sphinx extension: the page on which a reader turns γ, β, n and the depth, without a kernel.

The directive ``{explorer}`` puts controls on the page, the numbers that the library gives at every setting
of them, and a figure of the setting that stands there first, which is all that paper and a reader without
JavaScript see. The role ``{setting}`` links a setting: ``{setting}`a flat kernel <gamma=0.9&beta=0>```.
`chapters/static/explorer.js` brings the controls to life.
"""

from .directive import setup

__all__ = ["setup"]
