from copter.kernels.block_basis import BlockBasis
from copter.kernels.column_classes import ColumnClasses

class BlockItems(BlockBasis):
    classes: ColumnClasses
    work: int
