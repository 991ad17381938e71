from numpy.typing import ArrayLike

from copter.methods.simplex.basis_factor import BasisFactor

class MiddleFactor(BasisFactor):
    def exchange(self, column: ArrayLike, row: int) -> None: ...
