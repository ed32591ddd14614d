from datum import problem
from datum.problem import types


def test_the_four_problems_are_the_texts_of_the_older_library():
    assert problem.PROBLEMS == ("image_clf", "image_det", "image_seg", "text_clf")
    assert problem.IMAGE_CLF == "image_clf"
    assert problem.IMAGE_DET == "image_det"
    assert problem.IMAGE_SEG == "image_seg"
    assert problem.TEXT_CLF == "text_clf"


def test_the_problems_are_also_reached_through_types():
    assert {name.upper(): getattr(types, name.upper()) for name in problem.PROBLEMS} == {
        name.upper(): name for name in problem.PROBLEMS
    }
    assert problem.types.IMAGE_SEG is problem.IMAGE_SEG
