"""Edits of resources and of shared usage patterns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from copter.model.checks import Floats, different, finite, hashable, listed, require_order
from copter.model.inventory import Inventory
from copter.model.matrix import Template
from copter.model.matrix.contents import Private
from copter.model.private_rows import PrivateRows, private_pattern
from copter.model.usage import Usage, pattern_of
from copter.problem.linear_program import as_floats
from copter.runtime.errors import DimensionError, EditNotAllowedError, InvalidDataError

ROUNDING = 1e-12  # sums of usage that differ by less than this relative amount count as equal


class ResourceEdits(Inventory):
    """The part of :class:`copter.Model` that changes resources and templates."""

    # Resources ----------------------------------------------------------------------------------------------------

    def add_resource(self, resource: Hashable, count: float, lower: float | None = None) -> None:
        """Add `count` units of a resource; a new resource gets a row.

        Parameters
        ----------
        resource : hashable
        count : float
        lower : float, optional
            Least sum of usage; None leaves it as it is (a new resource has none).

        Raises
        ------
        InvalidDataError
            If count is negative, NaN or infinite, or `lower` is above the new count.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> model.add_resource("gpu", 4)
        >>> model.count("gpu")
        8.0
        """
        hashable("resource", resource)
        count = finite(f"resource {resource!r}: count", count)
        if count < 0:
            raise InvalidDataError(f"resource {resource!r}: cannot add {count} units; to take some away, remove_units")
        if resource in self.ledger.row_of:
            count = finite(f"resource {resource!r}: count", self.count(resource) + count)
        if lower is None:
            self.ledger.apply("count", resource, count)
        else:
            self.set_count(resource, count, lower)

    def set_count(self, resource: Hashable, count: float, lower: float | None = None) -> None:
        """Set a resource's capacity: ``lower <= sum of usage <= count``; a new resource gets a row.

        The row keeps its price and its position.

        Parameters
        ----------
        resource : hashable
        count : float
            Upper bound of any sign; inf for no upper bound.
        lower : float, optional
            -inf for no lower bound; if equal to `count`, the row is an equation. None keeps the lower bound.

        Raises
        ------
        InvalidDataError
            If a bound is NaN, or `lower` is above `count`.
        EditNotAllowedError
            If fixed requests use more than would be left.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.set_count("gpu", 4, lower=2)
        >>> model.count("gpu"), model.lower_count("gpu")
        (4.0, 2.0)
        """
        hashable("resource", resource)
        if resource in self.ledger.row_of:
            self.update_counts([resource], [count], None if lower is None else [lower])
            return
        low, high = self._row_bounds([resource], [count], [-np.inf if lower is None else lower])
        self.ledger.apply("rows", [resource], low, high)

    def update_counts(self, resources: Sequence[Hashable], counts: ArrayLike, lower: ArrayLike | None = None) -> None:
        """Call :meth:`set_count` for many resources at once; on an error, none is changed.

        Parameters
        ----------
        resources : sequence of ids (k,)
        counts : float or array_like (k,)
        lower : float or array_like (k,), optional
            None leaves the lower bounds as they are.

        Raises
        ------
        UnknownHandleError, DuplicateHandleError, DimensionError, InvalidDataError, EditNotAllowedError
        """
        ids, matrix = listed("resources", resources), self.ledger.matrix
        require_order(ids, "resources", counts=counts, lower=lower)
        rows = np.array([self.ledger.row(resource) for resource in ids], dtype=np.intp)
        different(ids, "resources")
        low, high = self._row_bounds(ids, counts, matrix.row_lower[rows] if lower is None else lower)
        if matrix.fixed_slots:
            used, here = matrix.fixed_usages()[rows], matrix.row_upper[rows]
            short = (high < here) & (used > high + ROUNDING * (1.0 + np.abs(here)))
            for at in np.flatnonzero(short)[:1].tolist():
                raise EditNotAllowedError(
                    f"resource {ids[at]!r}: {used[at]:g} units are in use by fixed requests, {high[at]:g} would be "
                    "left; unfix or remove some requests first"
                )
        self.ledger.apply("rows", ids, low, high)

    @staticmethod
    def _row_bounds(ids: list[Hashable], counts: ArrayLike, lower: ArrayLike) -> tuple[Floats, Floats]:
        """Return checked bounds of rows, (k,) each."""
        k = len(ids)
        arrays = [as_floats(what, each) for what, each in (("lower", lower), ("counts", counts))]
        low, high = (np.full(k, float(each)) if each.ndim == 0 else each for each in arrays)
        for what, each in (("lower", low), ("counts", high)):
            if each.shape != (k,):
                raise DimensionError(f"{what} has shape {each.shape}, must be ({k},): one for each resource")
        wrong = np.isnan(high) | np.isneginf(high) | np.isnan(low) | np.isposinf(low) | (low > high)
        for at in np.flatnonzero(wrong)[:1].tolist():
            if low[at] > high[at]:
                raise InvalidDataError(f"resource {ids[at]!r}: lower is {low[at]:g}, above the count {high[at]:g}")
            raise InvalidDataError(
                f"resource {ids[at]!r}: count is {high[at]}, lower is {low[at]}: give numbers (inf and -inf for none)"
            )
        return low, high

    def add_units(self, resource: Hashable, count: float) -> None:
        """Add `count` units of a resource that the model has; :meth:`add_resource` makes a new one.

        Raises
        ------
        UnknownHandleError, InvalidDataError
            If the resource is not known; if count is negative or not finite.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> model.add_units("gpu", 2)
        >>> model.count("gpu")
        6.0
        """
        self.ledger.row(resource)
        self.add_resource(resource, count)

    def remove_units(self, resource: Hashable, count: float) -> None:
        """Remove `count` units of a resource.

        Raises
        ------
        UnknownHandleError, InvalidDataError
            If the resource is not known; if count is negative, not finite, or more than there is.
        EditNotAllowedError
            If fixed requests use more than would be left.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> model.remove_units("gpu", 1)
        >>> model.count("gpu")
        3.0
        """
        here = self.count(resource)
        count = finite(f"resource {resource!r}: count", count)
        if count < 0 or count > here:
            raise InvalidDataError(f"resource {resource!r}: cannot remove {count} units of {here}")
        if here - count < self.ledger.matrix.row_lower[self.ledger.row(resource)]:
            raise InvalidDataError(
                f"resource {resource!r}: {here - count:g} units would be left, below its lower bound; set_count "
                "changes both"
            )
        used = self.fixed_usage(resource)
        if count > 0 and used > here - count + ROUNDING * (1.0 + here):
            raise EditNotAllowedError(
                f"resource {resource!r}: {used:g} units are in use by fixed requests, {here - count:g} would be left; "
                "unfix or remove some requests first"
            )
        self.ledger.apply("count", resource, here - count)

    def remove_resource(self, resource: Hashable) -> None:
        """Remove a resource's row with all its coefficients; columns no longer use the resource."""
        self.ledger.row(resource)
        self.ledger.apply("drop_row", resource)

    # Their names up to 0.2, which go in 0.4.
    add_resources, remove_resources, drop_resource = add_resource, remove_units, remove_resource

    # Templates ----------------------------------------------------------------------------------------------------

    def add_template(
        self,
        usage: Usage,
        resources: Sequence[Hashable] | None = None,
        *,
        private_rows: PrivateRows | None = None,
    ) -> Template:
        """Declare a usage pattern, and optionally coefficients of private rows, that many requests share.

        Parameters
        ----------
        usage : mapping of resource to array_like (n,), or sparse matrix (len(resources), n)
            Units of each resource that a unit of each column uses.
        resources : sequence, optional
            Ids of the rows of a sparse matrix, in order.
        private_rows : PrivateRows, optional
            Rows with default bounds; a request may be given its own bounds.

        Returns
        -------
        Template
            Pass it to :meth:`add_request`.

        Examples
        --------
        >>> import copter
        >>> model = copter.Model()
        >>> model.add_resource("gpu", 4)
        >>> sizes = model.add_template({"gpu": [1, 2]})
        >>> model.add_request("job", [1.0, 1.8], template=sizes)
        >>> model.template_of("job") is sizes
        True
        """
        pattern = pattern_of(usage, resources, self.ledger.row)
        private = private_pattern("the template", private_rows, len(pattern[0]) - 1)
        template: Template = self.ledger.apply("add_template", *pattern, private)
        return template

    def update_template(
        self,
        template: Template,
        usage: Usage | None = None,
        resources: Sequence[Hashable] | None = None,
        *,
        private_rows: PrivateRows | None = None,
    ) -> None:
        """Replace a template's coefficients for all requests that share it.

        The numbers of columns and of private rows stay; so do the bounds of the requests' private rows.

        Parameters
        ----------
        template : Template
        usage, resources
            See :meth:`add_template`; None leaves the usage as it is.
        private_rows : PrivateRows, optional
            None leaves them as they are.

        Raises
        ------
        UnknownHandleError, DimensionError, InvalidDataError
        """
        self._require_template(template)
        pattern = template.contents()[:3] if usage is None else pattern_of(usage, resources, self.ledger.row)
        self._require_columns("the template", pattern, template.n_columns)
        private: Private | None = template.private
        if private_rows is not None:
            private = private_pattern("the template", private_rows, template.n_columns)
            self._require_rows("the template", private, template.n_private if template.users else None)
        self.ledger.apply("update_template", template, *pattern, private)

    def drop_template(self, template: Template) -> None:
        """Delete a template; raises EditNotAllowedError while requests use it."""
        self._require_template(template)
        if template.users:
            raise EditNotAllowedError(f"the template is in use by {template.users} requests; remove them first")
        self.ledger.apply("drop_template", template)
