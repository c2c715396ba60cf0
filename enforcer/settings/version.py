"""The version that the enforcer tells the extender and people."""

VERSION = "0.1.0"
