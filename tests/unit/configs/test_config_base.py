import copy
import pickle
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pytest

from datum.configs.config_base import (
    CALLABLE,
    FLAG,
    PATH,
    Settings,
    is_whole,
    list_of,
    settings_of,
    whole,
)

COUNT = whole("a count", least=1)
EVEN = list_of("even numbers", lambda item: is_whole(item) and item % 2 == 0)


@dataclass(kw_only=True, repr=False)
class Inner(Settings):
    evens: Annotated[list[int], EVEN] = field(default_factory=lambda: [2])


@dataclass(kw_only=True, repr=False)
class Outer(Settings):
    count: Annotated[int, COUNT] = 1
    limit: Annotated[int | None, COUNT] = None
    switch: Annotated[bool, FLAG] = False
    call: Annotated[Any, CALLABLE] = None
    by_name: Annotated[Any, settings_of(Inner)] = None
    inner: Annotated[Inner, settings_of(Inner)] = field(default_factory=Inner)


def test_a_setting_has_its_default_until_it_is_set():
    settings = Outer()
    assert (settings.count, settings.limit, settings.inner.evens) == (1, None, [2])
    settings.count = 5
    assert settings.count == 5
    assert Outer(count=6).count == 6
    assert Outer().count == 1


def test_defaults_that_can_be_changed_in_place_are_not_shared():
    Outer().inner.evens.append(4)
    assert Outer().inner.evens == [2]


def test_an_unknown_name_is_refused_wherever_it_is_used():
    with pytest.raises(AttributeError, match="Outer has no setting 'cuont'\nhint: .*'count'"):
        Outer().cuont = 1
    with pytest.raises(AttributeError, match="did you mean 'count'"):
        _ = Outer().cuont
    with pytest.raises(TypeError, match="did you mean 'count'"):
        Outer(cuont=1)
    with pytest.raises(AttributeError, match="there are count, limit, switch, call, by_name, in"):
        _ = Outer().zzz
    assert not hasattr(Outer(), "cuont")


def test_settings_are_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        Outer(3)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("count", 0, "a count"),
        ("count", True, "a count"),
        ("count", 1.0, "a count"),
        ("count", None, "a count"),
        ("limit", "1", "a count"),
        ("switch", 1, "True or False"),
        ("switch", None, "True or False"),
        ("call", "print", "a callable"),
        ("inner", None, "a Inner"),
        ("inner", {"evens": [2]}, "a Inner"),
    ],
)
def test_a_value_of_another_kind_is_refused(name, value, expected):
    settings = Outer()
    with pytest.raises(TypeError, match=f"^Outer.{name}: expected {expected}, got "):
        setattr(settings, name, value)
    with pytest.raises(TypeError, match=f"^Outer.{name}: expected {expected}, got "):
        Outer(**{name: value})
    assert settings == Outer()


def test_none_is_allowed_where_it_is_the_default():
    settings = Outer(limit=3, call=len, by_name=Inner())
    settings.limit = settings.call = settings.by_name = None
    assert settings == Outer()


def test_whole_numbers_may_be_of_numpy():
    assert Outer(count=np.int64(3)).count == 3
    assert is_whole(np.uint8(3))
    assert not is_whole(np.bool_(True))
    assert not is_whole(np.float64(3))


@pytest.mark.parametrize("value", ["24", b"24", [2, 3], {2: 4}, 2, None])
def test_a_list_has_items_of_one_kind(value):
    assert not EVEN.fits(value)
    assert EVEN.fits([2, 4])
    assert EVEN.fits(())


def test_a_path_is_a_text_or_a_path(tmp_path):
    assert PATH.fits("")
    assert PATH.fits(tmp_path)
    assert not PATH.fits(3)


def test_whole_numbers_may_have_a_stranger_among_them():
    kind = whole("-1, or from 1", least=1, also=[-1, None])
    assert [kind.fits(value) for value in (-2, -1, 0, 1, None)] == [False, True, False, True, True]


def test_equal_settings_are_equal_and_others_are_not():
    assert Outer(call=len) == Outer(call=len)
    assert Outer(call=len) != Outer(call=max)
    assert Outer(inner=Inner(evens=[4])) != Outer()
    assert Inner() != Outer()
    with pytest.raises(TypeError, match="unhashable"):
        hash(Outer())


def test_the_text_of_settings_is_what_was_changed():
    assert repr(Outer()) == "Outer()"
    settings = Outer(count=3, inner=Inner(evens=[4]))
    assert repr(settings) == "Outer(count=3, inner=Inner(evens=[4]))"
    assert eval(repr(settings)) == settings


def test_a_copy_does_not_change_with_the_original():
    function = OrderedDict  # as a stand-in for an object that can be called and must stay itself
    settings = Outer(call=function, inner=Inner(evens=[4]))
    twin = settings.copy()
    assert twin == settings
    assert type(twin) is Outer
    assert twin.call is function
    twin.inner.evens.append(6)
    twin.count = 9
    assert settings == Outer(call=function, inner=Inner(evens=[4]))


def test_settings_become_a_dict_of_dicts():
    settings = Outer(count=3)
    made = settings.to_dict()
    assert made == {
        "count": 3,
        "limit": None,
        "switch": False,
        "call": None,
        "by_name": None,
        "inner": {"evens": [2]},
    }
    made["inner"]["evens"].append(4)
    assert settings.inner.evens == [2]


def test_settings_survive_copying_and_pickling():
    settings = Outer(count=3, inner=Inner(evens=[4]))
    assert copy.copy(settings) == settings
    assert copy.deepcopy(settings) == settings
    assert copy.deepcopy(settings).inner is not settings.inner
    assert pickle.loads(pickle.dumps(Settings())) == Settings()


def test_a_class_made_from_one_has_its_settings_too():
    class Further(Outer):
        pass

    assert Further(count=4).count == 4
    with pytest.raises(TypeError, match="Further.count: expected a count"):
        Further().count = 0
