"""Pages and pictures of `docs/` that are made from the code, so that neither can be out of date.

python -m tools.reference            write them
python -m tools.reference --check    name those that are not what the code says
"""
