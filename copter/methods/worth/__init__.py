"""Models with concave worths: Newton's method on the smoothed dual (docs/method/concave_worth.md).

Start reading at `solve.py`.
"""
