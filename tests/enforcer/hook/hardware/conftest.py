from tests.trees import tmp_path

__all__ = ["tmp_path"]
