"""The judge by rule, case by case."""

import numpy as np
import pytest

from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.questions import Answer, AnswerType, Question

YES_NO, INTEGER, NUMBER, TEXT = map(AnswerType, ('yes_no', 'integer', 'number', 'text'))


def verdict(kind, right, said, tolerance=0.0):
    question = Question('q', 's', 'x', 'c', 't', kind, right, tolerance)
    answer = None if said == 'nothing at all' else Answer('q', said, 'a')
    (found,) = DeterministicJudge().judge([(question, answer)])
    return found


@pytest.mark.parametrize(
    ('kind', 'right', 'said', 'correct'),
    [
        (YES_NO, 'yes', 'Yes.', True),
        (YES_NO, 'No', 'answer: No', True),
        (YES_NO, 'no', 'No, there is no lamp.', True),
        (YES_NO, 'no', "I don't know", False),
        (YES_NO, 'no', 'No answer', False),
        (YES_NO, 'no', 'No information is given', False),
        (YES_NO, 'yes', 'Possibly yes', False),
        (YES_NO, 'yes', 'yes or no', False),
        (YES_NO, 'no', 'No / Yes', False),
        (INTEGER, 3, 'three', True),
        (INTEGER, 3, 'There are 3 chairs', True),
        (INTEGER, 3, '3 or 4', False),
        (INTEGER, 3, 4, False),
        (TEXT, 'Gray upholstered chair', 'chair', True),
        (TEXT, 'The lamp', 'lamp', True),
        (TEXT, 'sofa', 'couch', True),
        (TEXT, 'red chair', 'blue chair', False),
        (TEXT, 'grey', 'gray', True),
        (TEXT, 'brown', 'dark brown', True),
        (TEXT, 'blue', 'navy', True),
        (TEXT, 'white', 'black', False),
        (TEXT, 'wood', 'wooden', True),
        (TEXT, 'Wall', 'staircase', False),
        (TEXT, 'Wall', 'I am unable to answer this question.', False),
        (TEXT, 'Unknown', 'Cannot be determined.', True),
        (TEXT, 'shelf', 'shelves', True),
        (INTEGER, 0, 'There are no chairs.', True),
        (INTEGER, 2, 'There are no chairs.', False),
        (INTEGER, 0, 'No', False),
        (NUMBER, 2.0, 2.3, True),
        (NUMBER, 2.0, '1.7 m', True),
        (NUMBER, 2.0, 2.301, False),
        (NUMBER, 2.0, 'far', False),
        (NUMBER, 2.0, '2 feet', False),
        (NUMBER, 3.048, 'about 10 feet', True),
    ],
)
def test_verdicts(kind, right, said, correct):
    assert verdict(kind, right, said, 0.3).correct is correct


@pytest.mark.parametrize('said', [None, 'nothing at all'])
def test_no_answer_is_wrong_and_unanswered(said):
    found = verdict(YES_NO, 'no', said)
    assert not found.correct
    assert not found.answered


def test_a_refusal_is_unanswered_unless_it_is_the_right_answer():
    assert not verdict(TEXT, 'lamp', 'Not enough information').answered
    assert verdict(TEXT, 'Unknown', 'unknown').answered


class Alike:
    """Takes everything for the same."""

    def embed(self, texts):
        return np.ones((len(texts), 1), np.float32)


class Cosine:
    """Gives "wall" and "partition" one cosine, and other pairs 0."""

    def __init__(self, cosine):
        self.vectors = {'wall': (1, 0), 'partition': (cosine, (1 - cosine**2) ** 0.5)}

    def embed(self, texts):
        return np.array([self.vectors.get(text, (0, 0)) for text in texts])


@pytest.mark.parametrize(('cosine', 'same'), [(0.69, False), (0.71, True)])
def test_nouns_are_the_same_from_a_cosine_of_0_7(cosine, same):
    assert DeterministicJudge(Cosine(cosine)).same_text('wall', 'partition')[0] is same


def test_the_embedder_decides_only_what_no_rule_does():
    judge = DeterministicJudge(Alike())
    assert judge.same_text('wall', 'partition')[0]
    assert not judge.same_text('red lamp', 'blue lamp')[0]
    assert not judge.same_text('wall', 'unknown')[0]


_OFFERS = 'Which is higher: the artwork or the painting?'


@pytest.mark.parametrize(
    ('question', 'right', 'said', 'correct'),
    [
        ('How far is the lamp?', '5.066 meters', 'The lamp is 9.9 meters from the door.', False),
        ('How far is the lamp?', '5.066 meters', 'The distance is approximately 5.07 m.', True),
        ('How far?', '5.066 meters', '506.6 cm', True),
        ('How far?', '5.066 meters', '5.066 feet', False),
        ('How far?', '5.066 meters', 'It is far.', False),
        ('How far?', 'The distance is 5.066 meters', 'The distance is 9.9 meters', False),
        ('What is there?', 'chair and table', 'table', False),
        ('What is there?', 'chair and table', 'A table and a wooden chair.', True),
        ('What is there?', 'chair, table', 'table', True),
        ('What is in the corner?', 'Dining table', 'There is no dining table.', False),
        (_OFFERS,'Painting', 'The painting is higher.', True),
        ('Are there any plants?', "No, there aren't.", 'No, there are not any plants.', True),
        ('Are there any plants?', "No, there aren't.", 'There are no plants.', True),
        ('Are there any plants?', "No, there aren't.", 'Yes, there are.', False),
        ('Are there any plants?', "No, there aren't.", 'There are plants on the table.', False),
        ('Are there any plants?', 'Yes, there are.', 'There are two plants.', True),
        ('How many chairs?', 'Two', '2', True),
        ('How many chairs?', 'Two chairs', 'There are 3 chairs.', False),
        ('How many chairs?', 'Two chairs', 'There are 2 chairs.', True),
        ('What color is the wall?', 'White', 'The wall is white.', True),
        ('What color is the wall?', 'White', 'Not white.', False),
        ('What is on the table?', 'Nothing', 'There is nothing on the table.', True),
        ('What is on the table?', 'A lamp', 'Not a lamp', False),
        ('Where is the lamp?', 'On the table', 'It is on the table.', True),
        ('Where is the lamp?', 'On the table', 'Under the table', False),
        ('Where is the lamp?', 'To the left of the sofa', 'To the right of the sofa', False),
        ('Which is larger, the sofa or the chair?', 'Sofa', 'Both', False),
        ('Which is larger, the sofa or the chair?', 'Sofa', 'The sofa and the chair', False),
        ('What material?', 'wooden', 'metal', False),
        ('What is on the wall?', 'Painting', 'Framed picture', True),
        ('Which is wider, the tv stand or the cabinet?', 'Cabinet', 'TV stand', False),
        ('What is it?', 'Dining table', 'Coffee table', False),
        ('What is it?', 'TV stand', 'Plant stand', False),
        ('Is the vase blue?', 'No, it is not.', "The vase isn't blue.", True),
        ('Is the vase blue?', 'No, it is not.', 'It is unclear.', False),
        ('What color is the sofa?', 'Beige', 'A tan couch with brown legs.', True),
        ('What color is the sofa?', 'Beige', 'A couch with beige legs.', False),
        ('What color is the sofa?', 'Dark blue', 'light blue', False),
        ('What color is the sofa?', 'White', 'black and white', False),
        ('What color is the sofa?', 'Black and white', 'white', True),
        ('What is the desk made of?', 'Wood', 'A brown wooden desk.', True),
        ('What is the desk made of?', 'Brown wood', 'brown', False),
        ('What is the desk made of?', 'Wood', 'wood, metal, plastic, glass', False),
        ('What is the desk made of?', 'Wood', 'wood or metal', False),
        ('What is the desk made of?', 'Wood and metal', 'metal', True),
        ('What is on the floor?', 'Beige, round rug', 'A carpet on the floor.', True),
        ('What is on the floor?', 'Beige, round rug', 'A blue rug', False),
        ('What is on the floor?', 'A floor lamp', 'A wooden floor', False),
        ('What is on the wall?', 'Black television', 'Flat-screen TV on the wall.', True),
        ('What holds the plant?', 'White pot', 'A plant', False),
        ('What is there?', 'Chest of drawers', 'A chest with three drawers', True),
        ('What is there?', 'Two set of shelves', 'shelves', True),
        ('What is on the bed?', 'Pillow', 'Yes', False),
        ('What is on the bed?', 'Pillow', 'answer', False),
        ('What is on the bed?', 'Nothing', 'Nothing is on the bed.', True),
        ('What is on the bed?', 'Nothing', 'I do not know.', False),
        ('What is on the bed?', 'Unclear', 'The graph does not specify it.', True),
        ('Which is darker: the oak door or the steel door?', 'Oak door', 'steel door', False),
        ('Which is darker: the oak door or the steel door?', 'Oak door', 'the oak door', True),
        ('Which is longer: the bed or the lamp?', 'Cannot be determined', 'The bed', False),
        ('What color is the floor?', 'Light wooden', 'wooden', True),
        ('What color is the floor?', 'Light brown', 'wooden', False),
        ('What has the railing?', 'Wooden stairs', 'Staircase', True),
        ('What is in front of it?', 'Gray countertop', 'counter', True),
        ('What is there?', 'Gray chair', 'armchair', False),
        ('What is there?', 'TV stand', 'television stand', True),
        ('What is above it?', 'White cabinets', 'kitchen cabinet', True),
        ('What holds it?', 'Pot', 'A planter with a plant.', True),
        ('What is below it?', 'Blue media console', 'Blue cabinet with white doors', True),
        ('What is below it?', 'Brown media console', 'Wooden entertainment center', True),
        ('What is there?', 'Clothes', 'sweater', False),
        ('What is next to it?', 'White wooden door', 'A closed wooden door', True),
        ('What is on the floor?', 'Blue rug', 'A yoga mat', False),
        ('What is there?', 'Black screen television', 'Flat screen TV', True),
        ('What is visible?', 'Door', 'A room with a bed, a door, and a lamp', False),
        ('What is visible?', 'Door', 'A bed with a blanket, a door', False),
        ('What is visible?', 'Door', 'A door, a bed, a lamp and a sofa', False),
        ('What is there?', 'chair, table', 'chair, table, sofa, lamp', False),
        ('Are there plants?', 'Yes', 'Yes or no', False),
        ('Are there plants?', 'No', 'Yes. No.', False),
        ('How wide is it?', '1.5 m', '2 m', False),
        ('How wide is it?', '1.525 m', '1.53 m', True),
        ('Where is the lamp?', 'At the top of the stairs', '3', False),
        ('What shape is it?', 'Circular', 'round', True),
        ('What shape is it?', 'Circular', 'square', False),
        ('What color is the wall?', 'Beige', 'cream-colored', True),
        ('What color is the chair?', 'Grayish brown', 'gray', True),
        ('What is on the table?', 'Plate', 'A white dish', True),
        ('What is there?', 'Beanbag', 'A gray bean bag', True),
        ('How wide is it?', '1.5 m', 'It is 150 centimetres wide.', True),
        ('How wide is it?', '1.5 m', 'between 1.5 m and 2 m', False),
    ],
)  # fmt: skip
def test_what_an_answer_says_decides_before_any_embedding(question, right, said, correct):
    found, reason = DeterministicJudge().same_text(right, said, question)
    assert found is correct, reason


def test_an_answer_in_other_units_is_converted():

    for names, metres in (
        ('m meter meters metre metres', 1.0),
        ('cm centimeter centimeters centimetre centimetres', 0.01),
        ('mm millimeter millimeters millimetre millimetres', 0.001),
        ('ft foot feet', 0.3048),
        ('inch inches', 0.0254),
    ):
        assert all(verdict(NUMBER, 50 * metres, f'50 {name}').correct for name in names.split())


def test_every_class_name_as_the_answer_is_wrong_for_any_right_answer():
    names = ('chair', 'table', 'lamp', 'sofa', 'rug', 'bed')
    everything = ', '.join(names)
    judge = DeterministicJudge(Alike())
    assert not any(judge.same_text(name, everything)[0] for name in names)
    assert not judge.same_text('lamp and rug', everything)[0]
