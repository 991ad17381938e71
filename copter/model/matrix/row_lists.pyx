"""Resources as rows, and for each row the list of templates that use it, so that dropping a row needs no search."""

import numpy as np

from libc.math cimport fabs

from copter.model.matrix.template cimport INT, Template, contiguous, double_pointer, int_pointer


cdef class RowLists:
    """Rows in row slots and the templates over them; an edit takes time in proportion to the templates it touches.

    Every edit can be undone exactly, last one first, by the `retract` and `restore` methods. The rows' lists are built
    when the first row is dropped and kept from then on: most models never drop a row, and the lists of a million
    requests with patterns of their own would have tens of millions of entries.
    """

    def __init__(self):
        self.free_rows = []
        self.row_lower = np.zeros(0)
        self.row_upper = np.zeros(0)
        self.row_scale = np.zeros(0)
        self.row_generation = np.zeros(0, dtype=np.int64)
        self.row_serial = np.zeros(0, dtype=np.int64)
        self.row_templates = None
        self.templates = {}
        self.template_of_serial = {}

    # Rows ---------------------------------------------------------------------------------------------------------

    def add_row(self, double lower, double upper):
        """Add a row lower <= a'x <= upper without entries; return its row slot."""
        if self.free_rows:
            slot = self.free_rows.pop()
        else:
            slot = self.n_rows
            if slot >= len(self.row_lower):
                more = max(8, 2 * slot) - slot
                lows = np.concatenate((self.row_lower, np.full(more, -np.inf)))
                highs = np.concatenate((self.row_upper, np.full(more, np.inf)))
                scales = np.concatenate((self.row_scale, np.ones(more)))
                generations = np.concatenate((self.row_generation, np.zeros(more, dtype=np.int64)))
                serials = np.concatenate((self.row_serial, np.zeros(more, dtype=np.int64)))
                # all five grow or none: kernels trust that they have one length
                self.row_lower, self.row_upper, self.row_scale = lows, highs, scales
                self.row_generation, self.row_serial = generations, serials
            self.n_rows += 1
            if self.row_templates is not None:
                self.row_templates.append({})
        self.row_lower[slot], self.row_upper[slot], self.row_scale[slot] = lower, upper, 1.0
        self.row_serial[slot] = self.next_row
        self.next_row += 1
        return slot

    def retract_row(self, int slot, bint reused):
        """Undo :meth:`add_row`, which must be the last edit not yet undone; `reused`: its slot was a freed one."""
        self.row_lower[slot], self.row_upper[slot], self.row_scale[slot] = -np.inf, np.inf, 1.0
        self.next_row -= 1
        if reused:
            self.free_rows.append(slot)
        else:
            self.n_rows -= 1
            if self.row_templates is not None:
                self.row_templates.pop()

    def set_row_bounds(self, int slot, double lower, double upper):
        """Change the bounds of a row."""
        self.row_lower[slot], self.row_upper[slot] = lower, upper

    def set_rows_bounds(self, rows, lower, upper):
        """Change the bounds of many rows."""
        self.row_lower[rows], self.row_upper[rows] = lower, upper

    def drop_row(self, int slot):
        """Drop a row and its entries in all templates that use it; return what :meth:`restore_row` needs."""
        before = self.row_lower[slot], self.row_upper[slot], self.row_scale[slot], self.row_serial[slot]
        cdef Template template
        touched, others = [], []
        for template in list(self.lists()[slot]):
            touched.append((template, template.contents()))
            others.append(template.without_row(slot))
        for (template, _), other in zip(touched, others):  # from here on no instruction of Python's is run
            template.take(other)
        self.row_templates[slot] = {}
        self.row_lower[slot], self.row_upper[slot], self.row_scale[slot] = -np.inf, np.inf, 1.0
        self.row_generation[slot] += 1
        self.free_rows.append(slot)
        return before, touched

    def restore_row(self, int slot, before, touched):
        """Undo :meth:`drop_row`; may be begun again if a signal ends it."""
        cdef Template template
        others = [Template(*contents[:3], template.shared, contents[3]) for template, contents in touched]
        for (template, _), other in zip(touched, others):
            template.take(other)
            if self.row_templates is not None:
                self.row_templates[slot][template] = None
        self.free_rows.pop()
        self.row_generation[slot] -= 1
        self.row_lower[slot], self.row_upper[slot], self.row_scale[slot], self.row_serial[slot] = before

    # Templates ----------------------------------------------------------------------------------------------------

    def add_template(self, column_start, row, coefficient, bint shared=True):
        """Add a usage pattern and return its template; `row` holds row slots, ascending within a column."""
        return self.enlist(Template(column_start, row, coefficient, shared))

    def enlist(self, Template template):
        """Give a new template its serial number and list it."""
        self.require_rows(template.rows)
        template.serial = self.next_serial
        self.next_serial += 1
        self.hang_template(template)
        return template

    def hang_template(self, Template template):
        """List a template, and add it to the lists of the rows that it uses."""
        self.templates[template] = None
        self.template_of_serial[template.serial] = template
        self.list_template(template)
        self.raise_scales(template)

    def list_template(self, Template template):
        """Add a template to the lists of the rows that it uses, if these lists have been built."""
        if self.row_templates is not None:
            for slot in template.rows.tolist():
                self.row_templates[slot][template] = None

    def unlist_template(self, Template template, rows):
        """Remove a template from the lists of rows that it no longer uses."""
        if self.row_templates is not None:
            for slot in rows.tolist():
                del self.row_templates[slot][template]

    def lists(self):
        """Return the templates that use each row, a list of dicts by row slot; builds the lists on the first call."""
        if self.row_templates is None:
            self.row_templates = [{} for _ in range(self.n_rows)]
            for template in self.templates:
                self.list_template(template)
        return self.row_templates

    cdef void raise_scales(self, Template template) except *:
        """Raise the scale of each of a template's rows to at least the row's largest |coefficient| in it."""
        cdef Py_ssize_t e
        cdef const int* row = template.pattern.row
        cdef const double* coefficient = template.pattern.coefficient
        cdef double* scale = <double*>double_pointer(self.row_scale)
        for e in range(len(template.row)):
            if fabs(coefficient[e]) > scale[row[e]]:
                scale[row[e]] = fabs(coefficient[e])

    def drop_template(self, Template template):
        """Remove a template that no slab uses."""
        self.unlist_template(template, template.rows)
        del self.templates[template]
        del self.template_of_serial[template.serial]

    def sort_templates(self):
        """Restore the order in which templates were added, after some were listed again."""
        self.templates = {template: None for template in sorted(self.templates, key=lambda each: each.serial)}

    def update_template(self, Template template, column_start, row, coefficient, private=None):
        """Replace a template's pattern and coefficients for all its slabs; return its old contents."""
        before, rows = template.contents(), template.rows
        if len(column_start) - 1 != template.pattern.n_columns:
            raise ValueError(f"the template has {template.n_columns} columns, not {len(column_start) - 1}")
        if template.pattern.n_users and (0 if private is None else len(private[3])) != template.pattern.n_private:
            raise ValueError(f"the template is in use, with {template.n_private} private rows")
        self.require_rows(row)
        template.replace(column_start, row, coefficient, private)
        self.unlist_template(template, rows)
        self.hang_template(template)
        return before

    def require_rows(self, row):
        """Raise ValueError unless these are numbers of row slots."""
        rows = contiguous(row, INT)
        cdef const int* slots = int_pointer(rows)
        cdef Py_ssize_t e
        for e in range(len(rows)):
            if not 0 <= slots[e] < self.n_rows:
                raise ValueError(f"a row slot is outside 0 to {self.n_rows - 1}")

    def settle_scales(self):
        """Set each row's scale to the largest |coefficient| that it has now, and at least 1."""
        self.row_scale[:self.n_rows] = 1.0
        for template in self.templates:
            self.raise_scales(template)

    def restore_rows(self, lower, upper, scale, generation, serial, free_rows):
        """Lay out rows as another matrix had them; templates are added afterwards."""
        if not len(lower) == len(upper) == len(scale) == len(generation) == len(serial):
            raise ValueError("the rows' arrays differ in length")
        self.row_lower, self.row_upper, self.row_scale = lower, upper, scale
        self.row_generation, self.row_serial = generation, serial
        self.free_rows = [int(slot) for slot in free_rows]
        self.n_rows = <int>len(lower)
        self.row_templates = None
