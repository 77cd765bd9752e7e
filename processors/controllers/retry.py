"""How long to wait before what failed is tried again."""


def wait_before(attempts: int, first: float, most: float) -> float:
    """Seconds to wait after so many failed attempts: `first`, doubled each time up to `most`."""
    return min(first * 2.0 ** min(attempts - 1, 16), most)
