from tests.manifests.capabilities import as_root, named

__all__ = ["as_root", "named"]
