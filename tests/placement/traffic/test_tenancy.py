import pytest

from placement.traffic.tenancy import SEPARATE, Tenancy

WEIGHTS = {("a/D/x", "a/D/y"): 1.0, ("a/D/x", "b/D/x"): 2.0, ("b/D/x", "c/D/x"): 3.0}


def kept(tenancy: Tenancy) -> set[float]:
    return set(tenancy.within(WEIGHTS).values())


def test_kin_are_of_one_namespace():
    assert kept(SEPARATE) == {1.0}


def test_joined_namespaces_are_kin_of_each_other_alone():
    assert kept(Tenancy.parse("a+b")) == {1.0, 2.0}
    assert kept(Tenancy.parse("a+b,b+c")) == {1.0, 2.0, 3.0}
    assert kept(Tenancy.parse("a+c")) == {1.0}


def test_a_cluster_of_one_tenant_joins_all():
    assert kept(Tenancy.parse("*")) == {1.0, 2.0, 3.0}


def test_a_pod_counts_as_its_workload_and_an_unknown_one_not_at_all():
    pods = {("p", "q"): 1.0, ("p", "r"): 2.0, ("p", "nobody"): 3.0, ("no", "body"): 4.0}
    assert SEPARATE.within(pods, {"p": "a/D/x", "q": "a/D/y", "r": "b/D/x"}) == {("p", "q"): 1.0}


@pytest.mark.parametrize("text", ["a+B", "a+", "a b", "*,a", "a+b,../c"])
def test_what_is_no_namespace_is_named(text):
    with pytest.raises(ValueError, match="is not a namespace"):
        Tenancy.parse(text)
