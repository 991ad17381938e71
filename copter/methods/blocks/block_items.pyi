from copter.methods.blocks.block_basis import BlockBasis
from copter.methods.blocks.column_classes import ColumnClasses

class BlockItems(BlockBasis):
    classes: ColumnClasses
    work: int
