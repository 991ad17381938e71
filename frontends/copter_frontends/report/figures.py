"""Conversion of a chart to PNG and SVG."""

from __future__ import annotations

from io import BytesIO

from copter_frontends.report.charts import Chart
from copter_frontends.report.theme import Theme

SIZE_IN = (5.6, 3.1)  # width and height of a figure in inches
PNG_DPI = 200  # dots per inch of PNG files


def image_of(chart: Chart, theme: Theme, form: str) -> bytes:
    """Draw a chart as ``png`` or ``svg``; equal charts give equal bytes."""
    import matplotlib as mpl  # in the optional extra `report`
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(theme.settings()):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        chart.draw(axes, theme)
        target = BytesIO()
        options = {"metadata": {"Date": None}} if form == "svg" else {"dpi": PNG_DPI}
        figure.savefig(target, format=form, **options)
    return target.getvalue()
