import pytest

from numakin.placement.traffic.tenancy import ALL, MOST_NAMES, SEPARATE, Tenancy, read

WEIGHTS = {("a/D/x", "a/D/y"): 1.0, ("a/D/x", "b/D/x"): 2.0, ("b/D/x", "c/D/x"): 3.0}


def kept(**allowed: str) -> set[float]:
    """The weights that count where namespaces allow these others."""
    tenancy = Tenancy({name: read(text)[0] for name, text in allowed.items()})
    return set(tenancy.within(WEIGHTS).values())


def test_kin_are_of_one_namespace():
    assert kept() == {1.0}


def test_two_namespaces_that_allow_each_other_are_kin():
    assert kept(a="b", b="a") == {1.0, 2.0}
    assert kept(a="b", b="a,c", c="b") == {1.0, 2.0, 3.0}
    assert kept(a="c", c="a") == {1.0}


@pytest.mark.parametrize("allowed", [{"a": "b"}, {"b": "a"}, {"a": "*"}, {"a": "b", "b": "c"}])
def test_what_one_side_allows_alone_counts_for_nothing(allowed):
    assert kept(**allowed) == {1.0}


def test_a_cluster_of_one_tenant_allows_all():
    assert kept(a="*", b="*", c="*") == {1.0, 2.0, 3.0}


def test_who_allows_all_is_kin_of_whoever_allows_it():
    assert kept(a="b", b="*") == {1.0, 2.0}


def test_a_pod_counts_as_its_workload_and_an_unknown_one_not_at_all():
    pods = {("p", "q"): 1.0, ("p", "r"): 2.0, ("p", "nobody"): 3.0, ("no", "body"): 4.0}
    workloads = {"p": "a/D/x", "q": "a/D/y", "r": "b/D/x"}
    assert SEPARATE.within(pods, workloads) == {("p", "q"): 1.0}
    everyone = Tenancy({name: frozenset({ALL}) for name in "ab"})
    assert everyone.within(pods, workloads) == {("p", "q"): 1.0, ("p", "r"): 2.0}


@pytest.mark.parametrize(
    ("text", "names", "left_out"),
    [
        ("", set(), ()),
        ("shop, payments,shop,", {"shop", "payments"}, ()),
        ("*", {"*"}, ()),
        ("shop,Shop,../etc,a b", {"shop"}, ("Shop", "../etc", "a b")),
    ],
)
def test_names_are_read_and_what_is_none_is_left_out(text, names, left_out):
    assert read(text) == (names, left_out)


def test_names_beyond_the_most_are_left_out():
    names = [f"ns-{number:02d}" for number in range(MOST_NAMES + 2)]
    assert read(",".join(names)) == (frozenset(names[:MOST_NAMES]), tuple(names[MOST_NAMES:]))
