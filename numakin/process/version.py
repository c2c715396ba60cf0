"""The version that both programs report, to each other and to people."""

VERSION = "0.1.0"
