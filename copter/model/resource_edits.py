"""Edits of resources, and of the usage patterns that requests share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from copter.errors import EditNotAllowedError, InvalidDataError
from copter.matrix import Template
from copter.model.checks import finite, hashable
from copter.model.inventory import Inventory
from copter.model.usage import Usage, pattern_of

ROUNDING = 1e-12  # relative; sums of usage that differ by less are equal


class ResourceEdits(Inventory):
    """The part of :class:`copter.Model` that changes resources and templates."""

    # Resources ----------------------------------------------------------------------------------------------------

    def add_resources(self, resource: Hashable, count: float) -> None:
        """Add `count` units of a resource; its row is made when it is new.

        Raises
        ------
        InvalidDataError
            If count is negative, NaN or infinite.
        """
        hashable("resource", resource)
        count = finite(f"resource {resource!r}: count", count)
        if count < 0:
            raise InvalidDataError(
                f"resource {resource!r}: cannot add {count} units; to take some away, remove_resources"
            )
        if resource in self.ledger.row_of:
            count = finite(f"resource {resource!r}: count", self.count(resource) + count)
        self.ledger.apply("count", resource, count)

    def remove_resources(self, resource: Hashable, count: float) -> None:
        """Take `count` units of a resource away.

        Raises
        ------
        UnknownHandleError, InvalidDataError
            If the resource is not known; if count is negative, not finite, or more than there is.
        EditNotAllowedError
            If fixed requests use more than what would be left.
        """
        here = self.count(resource)
        count = finite(f"resource {resource!r}: count", count)
        if count < 0 or count > here:
            raise InvalidDataError(f"resource {resource!r}: cannot remove {count} units of {here}")
        used = self.fixed_usage(resource)
        if count > 0 and used > here - count + ROUNDING * (1.0 + here):
            raise EditNotAllowedError(
                f"resource {resource!r}: {used:g} units are in use by fixed requests, {here - count:g} would be left; "
                "unfix or remove some requests first"
            )
        self.ledger.apply("count", resource, here - count)

    def drop_resource(self, resource: Hashable) -> None:
        """Remove a resource's row with all its coefficients: what used it does so no longer."""
        self.ledger.row(resource)
        self.ledger.apply("drop_row", resource)

    # Templates ----------------------------------------------------------------------------------------------------

    def add_template(self, usage: Usage, resources: Sequence[Hashable] | None = None) -> Template:
        """Declare a usage pattern that many requests share.

        Parameters
        ----------
        usage : mapping of resource to array_like (n,), or sparse matrix (len(resources), n)
            Units of each resource that a unit of each column uses.
        resources : sequence, optional
            Ids of the rows of a sparse matrix, in order.

        Returns
        -------
        Template
            Pass it to :meth:`add_request`.
        """
        template: Template = self.ledger.apply("add_template", *pattern_of(usage, resources, self.ledger.row))
        return template

    def update_template(self, template: Template, usage: Usage, resources: Sequence[Hashable] | None = None) -> None:
        """Replace a template's usage for all requests that share it; the number of columns stays.

        Parameters
        ----------
        template : Template
        usage, resources
            As for :meth:`add_template`.

        Raises
        ------
        UnknownHandleError, DimensionError, InvalidDataError
        """
        self._require_template(template)
        pattern = pattern_of(usage, resources, self.ledger.row)
        self._require_columns("the template", pattern, template.n_columns)
        self.ledger.apply("update_template", template, *pattern)

    def drop_template(self, template: Template) -> None:
        """Forget a template; EditNotAllowedError while requests use it."""
        self._require_template(template)
        if template.users:
            raise EditNotAllowedError(f"the template is in use by {template.users} requests; remove them first")
        self.ledger.apply("drop_template", template)
