"""Random models by seed. Recipes register as they are imported; their order is part of what a seed means."""

import graph_elements  # noqa: F401
import graph_moves  # noqa: F401
import graph_sums  # noqa: F401
import graph_control  # noqa: F401
import graph_more  # noqa: F401
import graph_flow  # noqa: F401
import graph_old  # noqa: F401
from graph_base import Gen


def make(seed, hostile=False, symbolic=False, n_node=None):
    """(model, feeds, output names) of a seed."""
    g = Gen(seed, hostile)
    g.grow(n_node or g.r.randint(2, 14))
    return g.model(symbolic)
