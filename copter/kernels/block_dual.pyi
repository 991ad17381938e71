from copter.kernels.block_basis import BlockBasis
from copter.kernels.breakpoints import Breakpoints
from copter.kernels.reduced_costs import ReducedCosts

class BlockDual(BlockBasis):
    pivots: int
    flips: int
    passes: int
    costs: ReducedCosts
    ahead: Breakpoints
    def run(self, most: int) -> int: ...
