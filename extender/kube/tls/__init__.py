"""Certificates that no operator has to make: numakin's own CA, kept in a Secret, and what it signs."""
