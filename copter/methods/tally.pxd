"""Running figures of a point and prices, for the proofs of block programs and of whole programs (F8 to F11)."""

from libc.math cimport INFINITY, fabs, sqrt

cdef enum:
    SPARE = 16  # additions beside those counted, for the margin


cdef struct Tally:
    double objective, squares, largest, size, bound, terms, error, wrong, wrong_most, costs


cdef inline void outside(Tally* tally, double over) noexcept nogil:
    """Count the distance of a value from its bounds; inside them it is negative."""
    if over > 0.0:
        tally.squares += over * over
        tally.largest = max(tally.largest, over)


cdef inline void add_term(Tally* tally, double term) noexcept nogil:
    """Add a term to the bound."""
    tally.bound += term
    tally.terms += fabs(term)


cdef inline void add_column(Tally* tally, double cost, double slack, double low, double high) noexcept nogil:
    """Add a column's least share of the bound for its reduced cost, which rounding may have moved by `slack`."""
    cdef double near = low if cost > 0.0 else high
    if low == 0.0 and cost > slack:
        return  # the most usual case
    if cost != 0.0:
        if fabs(near) == INFINITY:
            tally.wrong += cost * cost
            tally.wrong_most = max(tally.wrong_most, fabs(cost))
            tally.error = INFINITY
            return
        add_term(tally, cost * near)
    if slack > 0.0:
        if fabs(cost) <= slack:
            near = max(fabs(low), fabs(high))
        tally.error += slack * fabs(near)


cdef inline void add_row(Tally* tally, double activity, double price, double low, double high) noexcept nogil:
    """Add a row: its violation, the size of its bounds, and its price's share of the bound."""
    cdef double largest = max(fabs(low) if low > -INFINITY else 0.0, fabs(high) if high < INFINITY else 0.0)
    outside(tally, max(low - activity, activity - high))
    tally.size += largest * largest
    if price != 0.0:
        add_term(tally, price * (low if price > 0.0 else high))


cdef inline tuple figures_of(const Tally* tally, double half_ulp, int additions):
    """Return the figures of the proof; the bound is a sum of so many terms.

    Returns
    -------
    objective : float
    violation, largest : float
        Euclidean norm and maximum of the violations of rows and bounds.
    size : float
        Euclidean norm of the rows' bounds: for each row the finite bound larger in size.
    bound : float
        Dual objective; leaves out reduced costs of the wrong sign on columns that nothing bounds.
    margin : float
        Largest amount by which rounding may have raised the bound; infinite if there is, or may be, such a reduced
        cost.
    wrong, wrong_most, cost_size : float
        Euclidean norm and maximum of those reduced costs; Euclidean norm of the costs.
    """
    cdef double margin = 1.01 * (tally.error + half_ulp * (additions + SPARE) * tally.terms)
    return (tally.objective, sqrt(tally.squares), tally.largest, sqrt(tally.size), tally.bound, margin,
            sqrt(tally.wrong), tally.wrong_most, sqrt(tally.costs))
