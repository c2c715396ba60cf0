import pytest

from enforcer.nri.errors import UsageError
from enforcer.nri.identity import Identity


def test_an_identity_reads_as_runtimes_log_it():
    assert str(Identity("10", "numakin")) == "10-numakin"


@pytest.mark.parametrize(
    ("index", "name", "words"),
    [
        ("1", "numakin", "NRI plugin index '1': must be two digits, 00 to 99"),
        ("100", "numakin", "NRI plugin index '100': must be two digits, 00 to 99"),
        ("1a", "numakin", "NRI plugin index '1a': must be two digits, 00 to 99"),
        ("10\n", "numakin", "NRI plugin index '10\\n': must be two digits, 00 to 99"),
        ("\u0661\u0660", "numakin", "NRI plugin index '\u0661\u0660': must be two digits, 00 to 99"),
        ("10", "", "NRI plugin name '': must be letters, digits, '_', '.', '+' or '-', at least one"),
        ("10", "a/b", "NRI plugin name 'a/b': must be letters, digits, '_', '.', '+' or '-', at least one"),
        ("10", "a b", "NRI plugin name 'a b': must be letters, digits, '_', '.', '+' or '-', at least one"),
    ],
)
def test_what_runtimes_refuse_is_refused_before_dialing(index, name, words):
    with pytest.raises(UsageError) as raised:
        Identity(index, name)
    assert str(raised.value) == words
