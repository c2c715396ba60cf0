"""What pods ask for by annotation: the values as types (`options`), their parsing (`parsing`), Katalyst's keys
(`katalyst`).

Imports `model`. A new annotation begins here.
"""
